"""Two models with one tokenizer, token by token: hits gained and lost at k, and which way ranks move.

Shapes: N tokens that both scored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rbpx.analyses.compare.difference import share_of
from rbpx.laws.interval import Estimate

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Hits:
    """Hits at one k, as shares of the tokens.

    Attributes:
        k: up to which a rank is a hit.
        rbp_a: hits of a.
        rbp_b: hits of b.
        gained: hits of b that a misses.
        lost: hits of a that b misses.
        same: tokens that both hit or both miss.
    """

    k: int
    rbp_a: Estimate
    rbp_b: Estimate
    gained: Estimate
    lost: Estimate
    same: Estimate


@dataclass(frozen=True)
class Moves:
    """Which way ranks move from a to b, as shares of the tokens."""

    better: Estimate
    equal: Estimate
    worse: Estimate


def hits(
    rank_a_N: Floats, rank_b_N: Floats, doc_N: npt.NDArray[np.intp], n_documents: int, k_grid: Sequence[int]
) -> tuple[tuple[Hits, ...], Moves]:
    """Hits of both at each k, and the moves of ranks, with intervals over documents."""

    def share(meets_N: npt.NDArray[np.bool_]) -> Estimate:
        return share_of(meets_N, doc_N, n_documents)

    at = []
    for k in k_grid:
        a, b = rank_a_N <= k, rank_b_N <= k
        at.append(Hits(k, share(a), share(b), share(b & ~a), share(a & ~b), share(a == b)))
    moves = Moves(share(rank_b_N < rank_a_N), share(rank_b_N == rank_a_N), share(rank_b_N > rank_a_N))
    return tuple(at), moves
