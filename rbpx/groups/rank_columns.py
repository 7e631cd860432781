"""The ranks that occur in a run, each a column of the tables that are made of its counts."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt


def distinct_ranks(rank: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """The ranks that occur, ascending, and where each of some ranks is among them; they are multiples of 1/2."""
    halves = (2 * rank).astype(np.intp)
    occurs = np.zeros(halves.max(initial=0) + 1, bool)
    occurs[halves] = True
    return np.flatnonzero(occurs) / 2, np.asarray((np.cumsum(occurs) - 1)[halves])


def rank_edges(V: int, per_decade: int) -> list[int]:
    """Where bins of ranks begin, from 1 up: evenly spaced in ln rank, whole numbers; the last is V + 1."""
    steps = range(int(per_decade * math.log10(V)) + 1)
    return [*sorted({round(10 ** (at / per_decade)) for at in steps}), V + 1]
