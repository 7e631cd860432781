"""The ranks that occur in a run, each a column of the tables that are made of its counts."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rbpx.display.column import Column, magnitude, whole

__all__ = ["BINS", "RankBin", "distinct_ranks", "rank_edges"]


@dataclass(frozen=True)
class RankBin:
    """Tokens with a rank from the first to the last of a bin."""

    first_rank: int
    last_rank: int
    n_tokens: int

    @property
    def rank(self) -> float:
        """The geometric mean of the first and the last."""
        return float((self.first_rank * self.last_rank) ** 0.5)


BINS: Final[tuple[Column[RankBin], ...]] = (
    whole("ranks from", "first_rank", lambda found: found.first_rank),
    whole("to", "last_rank", lambda found: found.last_rank),
    magnitude("middle", "rank", lambda found: found.rank, "geometric mean of the ranks"),
    whole("tokens", "n_tokens", lambda found: found.n_tokens),
)
"""The columns of a table of bins, which has more of its own."""


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
