"""Sums over the ranks 1..V at a few hundred of them: V in, nodes and weights out, as good as the whole sum.

Beyond the first few ranks a distribution is smooth: in a block of ranks whose last is at most 1.5 times its first,
x^(-beta) and its like are polynomials of degree 15 to rounding. So their sum over the block is Gaussian quadrature for
the measure that counts its ranks, and a sum with any counts n_x is one with the counts moved to the nodes by Lagrange's
interpolation. Shapes: Q nodes, R ranks that occur.

Source: the polynomials that are orthogonal over N equidistant points, of Chebyshev and Gram, have the recurrence
p_(n+1) = y p_n - b_n p_(n-1), b_n = n^2 (N^2 - n^2) / (4 (4 n^2 - 1)); Golub and Welsch, Math. Comp. 23 (1969), 221.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.numeric.arrays import Floats

STEEPEST: Final = 50.0
"""Of d ln f / d ln x beyond the first ranks: sums of functions up to there are right to 1e-13, of steeper ones they may
be wrong."""

_EACH: Final = 32  # the first ranks, each a node
_RATIO: Final = 1.5  # last rank of a block over its first
_N_NODES: Final = 16  # of a block


@dataclass(frozen=True, eq=False)
class RankNodes:
    """Where to evaluate a function of the rank in order to sum it over 1..V.

    Attributes:
        x_Q: ascending; ranks as they are where a block has few of them, real numbers elsewhere.
        weight_Q: how many ranks each stands for: sum_x f(x) = sum_q weight_q f(x_q).
        first_B: index of the first node of each block, ascending from 0.
        last_rank_B: the last rank of each block; the last is V.
    """

    x_Q: Floats
    weight_Q: Floats
    first_B: NDArray[np.intp]
    last_rank_B: NDArray[np.int64]

    def upto(self, ranks: NDArray[np.int64]) -> NDArray[np.intp]:
        """How many nodes lie in the blocks up to each of some ranks, each of which has to be the end of a block."""
        ends_B = np.append(self.first_B[1:], len(self.x_Q))
        return np.asarray(ends_B[np.searchsorted(self.last_rank_B, ranks)])

    def moved(self, rank_R: Floats, n_R: Floats) -> Floats:
        """Counts of ranks at the nodes, [Q], so that sum_r n_r f(rank_r) = sum_q n_q f(x_q); some are negative."""
        at_R = np.searchsorted(self.x_Q, rank_R).clip(max=len(self.x_Q) - 1)
        is_node_R = self.x_Q[at_R] == rank_R
        n_Q = np.bincount(at_R[is_node_R], n_R[is_node_R], len(self.x_Q)).astype(np.float64)
        rank_R, n_R = rank_R[~is_node_R], n_R[~is_node_R]
        block_R = np.searchsorted(self.last_rank_B, rank_R)
        ends_B = np.append(self.first_B[1:], len(self.x_Q))
        for block in np.unique(block_R):
            at = slice(self.first_B[block], ends_B[block])
            here = block_R == block
            n_Q[at] += _interpolation(self.x_Q[at], rank_R[here]) @ n_R[here]
        return n_Q


def every_rank(V: int) -> RankNodes:
    """Each rank of 1..V a node, for functions that are not smooth enough for fewer."""
    ranks = np.arange(1, V + 1)
    return RankNodes(ranks.astype(np.float64), np.ones(V), ranks - 1, ranks)


@lru_cache(maxsize=64)
def rank_nodes(V: int, breaks: tuple[int, ...] = ()) -> RankNodes:
    """The nodes of the ranks 1..V, with a block that ends at each of `breaks`, ranks below V.

    Args:
        V: width of the vocabulary.
        breaks: for sums up to some ranks.
    """
    ends = sorted({*(k for k in breaks if 0 < k < V), V})
    x, weight, first, last = [], [], [], []
    begin, n = 1, 0
    while begin <= V:
        block_end = begin if begin <= _EACH else int(_RATIO * begin)
        block_end = min(block_end, next(end for end in ends if end >= begin))
        x_q, weight_q = _block(begin, block_end)
        first.append(n)
        last.append(block_end)
        x.append(x_q)
        weight.append(weight_q)
        begin, n = block_end + 1, n + len(x_q)
    return RankNodes(np.concatenate(x), np.concatenate(weight), np.array(first), np.array(last))


def _block(begin: int, end: int) -> tuple[Floats, Floats]:
    """Nodes and weights of the ranks from `begin` to `end`."""
    n_ranks = end - begin + 1
    if n_ranks <= _N_NODES:
        return np.arange(begin, end + 1, dtype=np.float64), np.ones(n_ranks)
    y_q, weight_q = _gauss(n_ranks)
    return (begin + end) / 2 + y_q, weight_q


@lru_cache(maxsize=1024)
def _gauss(n_ranks: int) -> tuple[Floats, Floats]:
    """Gaussian quadrature for the sum over `n_ranks` points one apart about 0."""
    n = np.arange(1, _N_NODES, dtype=np.float64)
    beside = np.sqrt(n**2 * (float(n_ranks) ** 2 - n**2) / (4 * (4 * n**2 - 1)))
    y_q, vectors = np.linalg.eigh(np.diag(beside, -1))  # of the lower triangle
    return y_q, n_ranks * vectors[0] ** 2


def _interpolation(x_q: Floats, rank_r: Floats) -> Floats:
    """Lagrange's polynomials of the nodes of one block at some ranks, shape [q, r], in the barycentric form."""
    scale = max(float(x_q[-1] - x_q[0]), 1.0) / 4  # the capacity of the interval, which keeps the products near 1
    apart_qq = (x_q[:, None] - x_q) / scale
    np.fill_diagonal(apart_qq, 1.0)
    barycentric_q = 1 / apart_qq.prod(axis=1)
    difference_qr = (rank_r - x_q[:, None]) / scale
    exact_r = (difference_qr == 0).any(axis=0)
    difference_qr[:, exact_r] = np.where(difference_qr[:, exact_r] == 0, 1.0, np.inf)
    terms_qr = barycentric_q[:, None] / difference_qr
    return np.asarray(terms_qr / terms_qr.sum(axis=0))
