"""Curves derived from a rank model: (mu, sigma) or (beta, gamma) in, -ln RBP_1 and cross-entropy out.

Shapes: B is the number of parameter pairs, V the width of the vocabulary, Q of the ranks that sums are evaluated at, K
values of k.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.ranks.sums import STEEPEST, RankNodes, every_rank, rank_nodes

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
