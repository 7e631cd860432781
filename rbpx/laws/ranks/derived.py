"""Curves derived from a rank model: (mu, sigma) or (beta, gamma) in, -ln RBP_1 and cross-entropy out.

Shapes: B is the number of parameter pairs, V the width of the vocabulary, Q of the ranks that sums are evaluated at, K
values of k.

Sums over the ranks 1..V at a few hundred of them: V in, nodes and weights out, as good as the whole sum.

Beyond the first few ranks a distribution is smooth: in a block of ranks whose last is at most 1.5 times its first,
x^(-beta) and its like are polynomials of degree 15 to rounding. So their sum over the block is Gaussian quadrature for
the measure that counts its ranks, and a sum with any counts n_x is one with the counts moved to the nodes by Lagrange's
interpolation. Shapes: Q nodes, R ranks that occur.

Source: the polynomials that are orthogonal over N equidistant points, of Chebyshev and Gram, have the recurrence
p_(n+1) = y p_n - b_n p_(n-1), b_n = n^2 (N^2 - n^2) / (4 (4 n^2 - 1)); Golub and Welsch, Math. Comp. 23 (1969), 221.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

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


_BLOCK_BYTES: Final = 2**20  # stays in the cache of a core


@dataclass(frozen=True)
class Derived:
    """What a rank model says about the two measured curves, in nats; arrays of the shape of its parameters.

    neg_ln_rbp_1 is -ln p_1; cross_entropy_nats is -sum_x p_x ln p_x, the entropy of the rank model.
    """

    neg_ln_rbp_1: Floats
    cross_entropy_nats: Floats


def derived_power_law(beta: ArrayLike, gamma: ArrayLike, V: int) -> Derived:
    """-ln RBP_1 and cross-entropy of p_x = x^(-beta) exp(-gamma ln^2 x) / Z over 1..V, for any real beta and gamma.

    -ln p_1 = ln Z, CE = ln Z + beta E[ln x] + gamma E[ln^2 x].

    Args:
        beta: any shape.
        gamma: a shape that broadcasts with beta; 0 is the truncated power law.
        V: width of the vocabulary.

    Returns:
        Derived, nats, arrays of the broadcast shape.

    Raises:
        ValueError: if a number is not finite.

    Source:
        RBP paper (arXiv 2510.20387), eq. 9, in natural parameters.
    """
    return derived_curve(beta, gamma, V, ())[1]


def derived_curve(beta: ArrayLike, gamma: ArrayLike, V: int, k: Sequence[int]) -> tuple[Floats, Derived]:
    """RBP_k = Pr(R <= k), a last axis [K], and the rest as `derived_power_law`, from the same exact sums.

    Args:
        beta: any shape.
        gamma: a shape that broadcasts with beta; 0 is the truncated power law.
        V: width of the vocabulary.
        k: whole numbers from 1, in any order; from V on the share is 1.

    Raises:
        ValueError: if a number is not finite, or a k is below 1.
    """
    if len(k) and min(k) < 1:
        raise ValueError(f"k must be whole numbers from 1, got {list(k)}")
    beta_f64, gamma_f64 = np.broadcast_arrays(np.asarray(beta, np.float64), np.asarray(gamma, np.float64))
    if not np.all(np.isfinite(beta_f64) & np.isfinite(gamma_f64)):
        raise ValueError("beta and gamma must be finite")
    theta_B2 = np.column_stack([beta_f64.ravel(), gamma_f64.ravel()])
    upto, where_K = np.unique(np.minimum(np.asarray(k, np.int64), V), return_inverse=True)
    rbp_BK, out_B2 = np.empty((len(theta_B2), len(k))), np.empty((len(theta_B2), 2))
    for block, nodes, top_b, weight_bQ in _weights(theta_B2, V, tuple(upto.tolist())):
        t_Q = np.log(nodes.x_Q)
        sums_b3 = weight_bQ @ np.column_stack([np.ones(len(t_Q)), t_Q, t_Q**2])
        ln_z_b = top_b + np.log(sums_b3[:, 0])
        mean_b2 = sums_b3[:, 1:] / sums_b3[:, :1]
        out_B2[block] = np.column_stack([ln_z_b, ln_z_b + np.sum(theta_B2[block] * mean_b2, axis=1)])
        if len(upto):
            ends = nodes.upto(upto)
            sums = np.cumsum(np.add.reduceat(weight_bQ, np.concatenate([[0], ends[upto < V]]), axis=1), axis=1)
            rbp_BK[block] = (sums[:, : len(upto)] / sums[:, -1:])[:, where_K]
    ln_z_B, entropy_B = out_B2.T
    rest = Derived(ln_z_B.reshape(beta_f64.shape), entropy_B.reshape(gamma_f64.shape))
    return rbp_BK.reshape((*beta_f64.shape, len(k))), rest


def _weights(
    theta_B2: Floats, V: int, breaks: tuple[int, ...] = ()
) -> Iterator[tuple[NDArray[np.intp], RankNodes, Floats, Floats]]:
    """Blocks of pairs: which, the nodes of their sums, the logarithm of their largest weight and their weights over it.

    Shapes [b] and [b, Q]; a weight is multiplied by how many ranks its node stands for. Pairs too steep for nodes are
    summed at every rank.
    """
    ends_2 = np.log([1.0, max(V, 2)])
    steep_B = np.abs(theta_B2[:, :1] + 2 * theta_B2[:, 1:] * ends_2).max(axis=1) > STEEPEST
    for which_B, nodes_of in ((~steep_B, partial(rank_nodes, breaks=breaks)), (steep_B, every_rank)):
        if not which_B.any():
            continue
        at_B, nodes = np.flatnonzero(which_B), nodes_of(V)
        t_Q = np.log(nodes.x_Q)
        t_2Q = np.stack([t_Q, t_Q**2])
        rows = max(1, _BLOCK_BYTES // (8 * len(t_Q)))
        for begin in range(0, len(at_B), rows):
            block = at_B[begin : begin + rows]
            weight_bQ = -(theta_B2[block] @ t_2Q)
            top_b = weight_bQ.max(axis=1)
            weight_bQ -= top_b[:, None]
            np.exp(weight_bQ, out=weight_bQ)
            weight_bQ *= nodes.weight_Q
            yield block, nodes, top_b, weight_bQ


def derived_approximation(mu: ArrayLike, sigma: ArrayLike) -> Derived:
    """-ln RBP_1 and cross-entropy of the rank model as the paper approximates them.

    a = -mu / sigma, P = Phi(mu / sigma), c ~ P + phi(a) / (2 sigma),
    -ln p_1 = ln c + ln(sqrt(2 pi) sigma) + mu^2 / (2 sigma^2),
    CE ~ -ln p_1 + (1/c) [P ((sigma^2 - mu^2) / (2 sigma^2) + mu) + phi(a) (sigma - mu / (2 sigma))].

    Args:
        mu: of ln R, any shape.
        sigma: of ln R, positive, a shape that broadcasts with mu.

    Returns:
        Derived, nats, arrays of the broadcast shape.

    Raises:
        ValueError: if a number is not finite or a sigma is not positive.

    Source:
        RBP paper (arXiv 2510.20387), eq. 22 (its eq. 19 has a misprint).
    """
    mu_f64, sigma_f64 = np.asarray(mu, dtype=np.float64), np.asarray(sigma, dtype=np.float64)
    if not (np.all(np.isfinite(mu_f64)) and np.all((sigma_f64 > 0) & np.isfinite(sigma_f64))):
        raise ValueError("mu must be finite and sigma positive and finite")
    share = ndtr(mu_f64 / sigma_f64)
    phi = np.exp(-(mu_f64**2) / (2 * sigma_f64**2)) / math.sqrt(2 * math.pi)
    c = share + phi / (2 * sigma_f64)
    neg_ln_p_1 = np.log(c) + np.log(math.sqrt(2 * math.pi) * sigma_f64) + mu_f64**2 / (2 * sigma_f64**2)
    body = share * ((sigma_f64**2 - mu_f64**2) / (2 * sigma_f64**2) + mu_f64)
    edge = phi * (sigma_f64 - mu_f64 / (2 * sigma_f64))
    return Derived(np.asarray(neg_ln_p_1), np.asarray(neg_ln_p_1 + (body + edge) / c))
