"""Sums smooth functions of the rank over 1..V at a few hundred nodes, and derives curves from shares of ranks.

Beyond the first few ranks a smooth function of the rank is, to rounding, a polynomial of degree 15 in a block whose
last rank is at most 1.5 times its first. So a block is summed by Gaussian quadrature for the measure that counts its
ranks, with counts n_x moved to the nodes by Lagrange interpolation.

Source: the polynomials that are orthogonal over N equidistant points, of Chebyshev and Gram, have the recurrence
p_(n+1) = y p_n - b_n p_(n-1), b_n = n^2 (N^2 - n^2) / (4 (4 n^2 - 1)); Golub and Welsch, Math. Comp. 23 (1969), 221.

Shapes: any leading axes "..." of sets of parameters, Q nodes, R ranks that occur, K values of k.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.numeric import Floats, ln_sum_exp

STEEPEST: Final = 50.0
"""Largest |d ln f / d ln x| beyond the first ranks for which sums are exact to 1e-13; steeper ones may be wrong."""

_EACH: Final = 32  # the first ranks, each a node
_RATIO: Final = 1.5  # last rank of a block over its first
_N_NODES: Final = 16  # of a block


Shares = tuple[Floats, Floats]
"""Ln of the weight of each kind of token, [..., C], and ln of the share of each rank among its tokens, [..., C, Q]."""


@dataclass(frozen=True, eq=False)
class RankNodes:
    """Nodes at which functions of the rank are summed over 1..V: a few hundred, or every rank.

    Attributes:
        x_Q: ascending; ranks where a block has few, real numbers elsewhere.
        weight_Q: how many ranks each stands for: sum_x f(x) = sum_q weight_q f(x_q).
        upto_K: number of nodes up to each k.
        first_B: index of the first node of each block.
    """

    x_Q: Floats
    weight_Q: Floats
    V: int
    upto_K: NDArray[np.intp]
    first_B: NDArray[np.intp]
    last_rank_B: NDArray[np.int64]

    @cached_property
    def ln_x_Q(self) -> Floats:
        """Logarithms of the nodes."""
        return np.log(self.x_Q)

    @cached_property
    def ln_ranks_Q(self) -> Floats:
        """Logarithms of the weights."""
        with np.errstate(divide="ignore"):  # a node that is in no sum has weight 0
            return np.log(self.weight_Q)

    def one(self, ln_weight_Q: Floats) -> Shares:
        """The shares of a form without kinds, from ln of weights up to a factor, [..., Q]."""
        ln_p_Q = self.normalised(ln_weight_Q)
        return np.zeros((*ln_p_Q.shape[:-1], 1)), ln_p_Q[..., None, :]

    def normalised(self, ln_weight_Q: Floats) -> Floats:
        """Ln of shares that sum to 1 over the ranks, in the last axis."""
        return np.asarray(ln_weight_Q - ln_sum_exp(ln_weight_Q + self.ln_ranks_Q, axis=-1))

    def moved(self, rank_R: Floats, n_R: Floats) -> Floats:
        """Moves counts to the nodes, [Q], so that sum_r n_r f(rank_r) = sum_q n_q f(x_q); some become negative."""
        at_R = np.searchsorted(self.x_Q, rank_R).clip(max=len(self.x_Q) - 1)
        is_node_R = self.x_Q[at_R] == rank_R
        n_Q = np.bincount(at_R[is_node_R], n_R[is_node_R], len(self.x_Q)).astype(np.float64)
        rank_R, n_R = rank_R[~is_node_R], n_R[~is_node_R]
        block_R, ends_B = np.searchsorted(self.last_rank_B, rank_R), np.append(self.first_B[1:], len(self.x_Q))
        for block in np.unique(block_R):
            at, here = slice(self.first_B[block], ends_B[block]), block_R == block
            n_Q[at] += _interpolation(self.x_Q[at], rank_R[here]) @ n_R[here]
        return n_Q


def nodes_of(V: int, k_grid: Sequence[int] = ()) -> RankNodes:
    """The nodes of the ranks 1..V, with a block that ends at each k."""
    return _nodes(V, tuple(min(k, V) for k in k_grid))


def every_rank(V: int, k_grid: Sequence[int] = ()) -> RankNodes:
    """Every rank as a node, for functions too steep for nodes."""
    rank_V = np.arange(1, V + 1)
    return RankNodes(
        rank_V.astype(np.float64), np.ones(V), V, np.minimum(k_grid, V).astype(np.intp), rank_V - 1, rank_V
    )


@lru_cache(maxsize=64)
def _nodes(V: int, k_grid: tuple[int, ...]) -> RankNodes:
    ends = sorted({*k_grid, V})
    blocks, last, begin = list[tuple[Floats, Floats]](), list[int](), 1
    while begin <= V:
        end = begin if begin <= _EACH else int(_RATIO * begin)
        last.append(min(end, next(end for end in ends if end >= begin)))
        blocks.append(_block(begin, last[-1]))
        begin = last[-1] + 1
    x_B, weight_B = zip(*blocks, strict=True)
    upto_B = np.cumsum([len(x_q) for x_q in x_B])
    upto_K = upto_B[np.searchsorted(last, k_grid)]
    return RankNodes(
        np.concatenate(x_B), np.concatenate(weight_B), V, upto_K, np.append(0, upto_B[:-1]), np.array(last)
    )


def _block(begin: int, end: int) -> tuple[Floats, Floats]:
    n_ranks = end - begin + 1
    if n_ranks <= _N_NODES:
        return np.arange(begin, end + 1, dtype=np.float64), np.ones(n_ranks)
    y_q, weight_q = _gauss(n_ranks)
    return (begin + end) / 2 + y_q, weight_q


@lru_cache(maxsize=1024)
def _gauss(n_ranks: int) -> tuple[Floats, Floats]:
    """Nodes and weights for the sum over `n_ranks` points one apart, centred at 0."""
    n = np.arange(1, _N_NODES, dtype=np.float64)
    beside = np.sqrt(n**2 * (float(n_ranks) ** 2 - n**2) / (4 * (4 * n**2 - 1)))
    y_q, vectors = np.linalg.eigh(np.diag(beside, -1))  # of the lower triangle
    return y_q, n_ranks * vectors[0] ** 2


def _interpolation(x_q: Floats, rank_r: Floats) -> Floats:
    scale = max(float(x_q[-1] - x_q[0]), 1.0) / 4  # the capacity of the interval, which keeps the products near 1
    apart_qq = (x_q[:, None] - x_q) / scale
    np.fill_diagonal(apart_qq, 1.0)
    barycentric_q = 1 / apart_qq.prod(axis=1)
    difference_qr = (rank_r - x_q[:, None]) / scale
    exact_r = (difference_qr == 0).any(axis=0)
    difference_qr[:, exact_r] = np.where(difference_qr[:, exact_r] == 0, 1.0, np.inf)
    terms_qr = barycentric_q[:, None] / difference_qr
    return np.asarray(terms_qr / terms_qr.sum(axis=0))


def curve_of(ln_p_Q: Floats, nodes: RankNodes) -> Floats:
    """-ln RBP_k at each k, then the entropy, nats, [..., K + 1], from ln of the shares at the nodes."""
    ln_share_Q = ln_p_Q + nodes.ln_ranks_Q
    curve_K = -np.minimum(np.logaddexp.accumulate(ln_share_Q, axis=-1), 0.0)[..., nodes.upto_K - 1]
    return np.concatenate([curve_K, entropy_of(ln_p_Q, np.exp(ln_share_Q))[..., None]], axis=-1)


def entropy_of(ln_p_Q: Floats, p_Q: Floats) -> Floats:
    """-sum p ln p over the ranks; a share that underflows counts as 0."""
    return np.asarray(-np.where(p_Q > 0, p_Q * np.where(np.isfinite(ln_p_Q), ln_p_Q, 0.0), 0.0).sum(axis=-1))
