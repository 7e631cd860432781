"""Sums over all ranks 1..V at a few hundred places, and the curve that follows from the shares of ranks.

Beyond the first few ranks a smooth function of the rank is a polynomial of degree 15 to rounding in a block whose last
rank is at most 1.5 times its first. So the sum over a block is Gaussian quadrature for the measure that counts its
ranks, and a sum with any counts n_x is one with the counts moved to the nodes by Lagrange's interpolation.

Source: the polynomials that are orthogonal over N equidistant points, of Chebyshev and Gram, have the recurrence
p_(n+1) = y p_n - b_n p_(n-1), b_n = n^2 (N^2 - n^2) / (4 (4 n^2 - 1)); Golub and Welsch, Math. Comp. 23 (1969), 221.

Shapes: any leading axes "..." of sets of parameters, Q nodes, R ranks that occur, K values of k.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.numeric import Floats, ln_sum_exp

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


Shares = tuple[Floats, Floats]
"""Ln of the weight of each kind, [..., C], and ln of the share of each rank among its tokens, [..., C, Q]."""


@dataclass(frozen=True, eq=False)
class Places:
    """Where forms are evaluated: the nodes of the ranks 1..V.

    Attributes:
        x_Q: the ranks, or places between them.
        ln_x_Q: their logarithms.
        ln_ranks_Q: logarithm of how many ranks each stands for.
        V: width of the vocabulary.
        upto_K: how many places lie up to each k.
        nodes: the nodes themselves.
    """

    x_Q: Floats
    ln_x_Q: Floats
    ln_ranks_Q: Floats
    V: int
    upto_K: NDArray[np.intp]
    nodes: RankNodes

    def one(self, ln_weight_Q: Floats) -> Shares:
        """A form without kinds: ln of shares from ln of weights up to a factor, [..., Q]."""
        ln_p_Q = self.normalised(ln_weight_Q)
        return np.zeros((*ln_p_Q.shape[:-1], 1)), ln_p_Q[..., None, :]

    def normalised(self, ln_weight_Q: Floats) -> Floats:
        """Ln of shares that sum to 1 over the ranks, in the last axis."""
        return np.asarray(ln_weight_Q - ln_sum_exp(ln_weight_Q + self.ln_ranks_Q, axis=-1))


def places_of(V: int, k_grid: Sequence[int] = ()) -> Places:
    """The places of the ranks 1..V, with an end at each k."""
    upto = np.minimum(np.asarray(k_grid, dtype=np.int64), V)
    nodes = rank_nodes(V, tuple(upto.tolist()))
    return Places(nodes.x_Q, np.log(nodes.x_Q), np.log(nodes.weight_Q), V, nodes.upto(upto), nodes)


def every_place(V: int, k_grid: Sequence[int] = ()) -> Places:
    """Each rank a place, for functions that are not smooth enough for fewer."""
    nodes, upto = every_rank(V), np.minimum(np.asarray(k_grid, dtype=np.int64), V)
    return Places(nodes.x_Q, np.log(nodes.x_Q), np.zeros(V), V, upto, nodes)


def curve_of(ln_p_Q: Floats, places: Places) -> Floats:
    """-ln RBP_k at each k, then the entropy, nats, [..., K + 1], of ln of the shares of the ranks at the places."""
    ln_share_Q = ln_p_Q + places.ln_ranks_Q
    curve_K = -np.minimum(np.logaddexp.accumulate(ln_share_Q, axis=-1), 0.0)[..., places.upto_K - 1]
    return np.concatenate([curve_K, entropy_of(ln_p_Q, np.exp(ln_share_Q))[..., None]], axis=-1)


def entropy_of(ln_p_Q: Floats, p_Q: Floats) -> Floats:
    """-sum p ln p over the ranks; a share too small for a number counts as 0."""
    return np.asarray(-np.where(p_Q > 0, p_Q * np.where(np.isfinite(ln_p_Q), ln_p_Q, 0.0), 0.0).sum(axis=-1))
