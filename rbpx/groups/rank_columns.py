"""The ranks that occur in a run, each a column of the tables that are made of its counts."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["distinct_ranks"]


def distinct_ranks(rank: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """The ranks that occur, ascending, and where each of some ranks is among them; they are multiples of 1/2."""
    halves = (2 * rank).astype(np.intp)
    occurs = np.zeros(halves.max(initial=0) + 1, bool)
    occurs[halves] = True
    return np.flatnonzero(occurs) / 2, np.asarray((np.cumsum(occurs) - 1)[halves])
