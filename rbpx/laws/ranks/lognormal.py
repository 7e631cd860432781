"""Fits the lognormal model of the ranks as the RBP paper does, and derives -ln RBP_k and cross-entropy from it.

All is written in t = ln(rank), beta = 1 - mu / sigma^2 and gamma = 1 / (2 sigma^2), because the power law is then the
boundary gamma = 0, while mu and sigma would diverge.

Shapes: R different ranks, B replicates or pairs of parameters, V the vocabulary, Q ranks that sums are evaluated at, K
values of k.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from rbpx.laws.numeric import Floats
from rbpx.laws.ranks.family import Params, RankFit, checked_counts, scored
from rbpx.laws.ranks.quadrature import STEEPEST, curve_of, every_rank, nodes_of
from rbpx.laws.solver import maximise
from rbpx.status import Status

_BLOCK_BYTES: Final = 2**20  # stays in the cache of a core


def derived_curve(beta: ArrayLike, gamma: ArrayLike, V: int, k: Sequence[int]) -> Floats:
    """-ln RBP_k at each k, then the entropy, for p_x = x^(-beta) exp(-gamma ln^2 x) / Z over 1..V, [B, K + 1].

    The entropy, nats, predicts cross-entropy. gamma = 0 is the truncated power law; NaN parameters give NaN.

    Source:
        RBP paper (arXiv 2510.20387), eq. 9, in natural parameters.
    """
    theta_B2 = np.column_stack([np.asarray(beta, np.float64), np.asarray(gamma, np.float64)])
    curve_BK = np.full((len(theta_B2), len(k) + 1), np.nan)
    ends_2 = np.log([1.0, max(V, 2)])
    steepness_B = np.abs(theta_B2[:, :1] + 2 * theta_B2[:, 1:] * ends_2).max(axis=1)  # NaN is neither
    for which_B, nodes in ((steepness_B <= STEEPEST, nodes_of(V, k)), (steepness_B > STEEPEST, every_rank(V, k))):
        t_2Q = np.stack([nodes.ln_x_Q, nodes.ln_x_Q**2])
        rows = max(1, _BLOCK_BYTES // t_2Q.nbytes)
        for begin in range(0, int(which_B.sum()), rows):
            block = np.flatnonzero(which_B)[begin : begin + rows]
            curve_BK[block] = curve_of(nodes.normalised(-(theta_B2[block] @ t_2Q)), nodes)
    return curve_BK


def derived_approximation(mu: ArrayLike, sigma: ArrayLike) -> tuple[Floats, Floats]:
    """-ln RBP_1 and cross-entropy of the rank model, nats, in the paper's approximation.

    mu and sigma are of ln R. a = -mu / sigma, P = Phi(mu / sigma), c ~ P + phi(a) / (2 sigma),
    -ln p_1 = ln c + ln(sqrt(2 pi) sigma) + mu^2 / (2 sigma^2),
    CE ~ -ln p_1 + (1/c) [P ((sigma^2 - mu^2) / (2 sigma^2) + mu) + phi(a) (sigma - mu / (2 sigma))].

    Source:
        RBP paper (arXiv 2510.20387), eq. 22 (its eq. 19 has a misprint).
    """
    m, s = np.asarray(mu, dtype=np.float64), np.asarray(sigma, dtype=np.float64)
    share, phi = ndtr(m / s), np.exp(-(m**2) / (2 * s**2)) / math.sqrt(2 * math.pi)
    c = share + phi / (2 * s)
    neg_ln_p_1 = np.log(c) + np.log(math.sqrt(2 * math.pi) * s) + m**2 / (2 * s**2)
    body, edge = share * ((s**2 - m**2) / (2 * s**2) + m), phi * (s - m / (2 * s))
    return np.asarray(neg_ln_p_1), np.asarray(neg_ln_p_1 + (body + edge) / c)


EQUATION: Final = "Pr(R = x) = psi(x) / c, psi(x) = exp(-(ln x - mu)^2 / (2 sigma^2)) / (x sigma sqrt(2 pi))"
SOURCE: Final = "RBP paper, arXiv 2510.20387, eq. 9 and appendix D"

_UNKNOWN: Final[Params] = {"mu": None, "sigma": None, "beta": None, "gamma": None}
_T_FLOOR: Final = math.log(1.5)
_NODES, _TAIL_NODES = (np.polynomial.legendre.leggauss(n) for n in (20, 200))


@dataclass(frozen=True)
class _Moments:
    """Log-integral of exp((1 - beta) t - gamma t^2), and mean and covariance of (t, t^2) under it; shapes [...]."""

    ln_z: Floats
    mean_2: Floats
    cov_22: Floats


def fit_paper(rank: ArrayLike, n_tokens: ArrayLike) -> RankFit:
    """Fits mu and sigma to the ranks from 2 up, as the paper does; rank 1 is extrapolated.

    Maximises sum_x n_x ln P(R = x | R >= 2), P = [Phi((ln(x+1/2) - mu)/sigma) - Phi((ln(x-1/2) - mu)/sigma)] / [1 -
    Phi((ln 1.5 - mu)/sigma)]. As a ratio of two integrals of exp((1-beta) t - gamma t^2) over t = ln x this is an
    exponential family observed in cells: every log-probability, score and Hessian is a log-integral, a mean and a
    covariance, by Gauss-Legendre quadrature to rounding. Where the likelihood does not rise from gamma = 0 (a power
    law) into gamma > 0, that is the fit: at_bound, mu and sigma None.

    Raises:
        ValueError: if shapes disagree, a rank is below 1 or a count is negative.

    Source:
        The published (mu, sigma) of the RBP paper (arXiv 2510.20387, appendix D) are this maximum.
    """
    rank_R, n_R = checked_counts(rank, n_tokens)
    if np.any(rank_R != np.floor(rank_R)):
        return RankFit("lognormal_paper", _UNKNOWN, status=Status.not_known)
    rank_R, n_R = rank_R[rank_R >= 2], n_R[rank_R >= 2]
    n = float(n_R.sum())
    if len(rank_R) < 3:
        return RankFit("lognormal_paper", _UNKNOWN | {"n_tokens": round(n)}, status=Status.too_few_tokens)
    nodes = nodes_of(int(rank_R[-1]))
    x_Q, n_Q = nodes.x_Q[1:], nodes.moved(rank_R, n_R)[1:]  # rank 1 is a node of its own
    theta, converged, status = _maximum(x_Q, n_Q)
    loglik = float(n_R @ _per_rank(rank_R, theta)[0])
    at_nodes = float(n_Q @ _per_rank(x_Q, theta)[0])
    if not (converged and abs(at_nodes - loglik) <= 1e-12 * abs(loglik)):  # too steep for nodes
        theta, converged, status = _maximum(rank_R, n_R)
        loglik = float(n_R @ _per_rank(rank_R, theta)[0])
    if not converged:
        return RankFit("lognormal_paper", _UNKNOWN | {"n_tokens": round(n)}, status=Status.not_converged)
    # Both CDFs are compared at every observed rank and just below the next one, where a gap can be largest.
    below_next_R = np.append(rank_R[1:] - 1, rank_R[-1])
    cdf_R = np.cumsum(n_R) / n
    gaps = [np.abs(cdf_R - _cdf_paper(x_R, theta)).max() for x_R in (rank_R, below_next_R)]
    distance = float(max(*gaps, _cdf_paper(rank_R[:1] - 1, theta)[0]))
    beta, gamma = float(theta[0]), float(theta[1])
    mu, sigma = ((1 - beta) / (2 * gamma), math.sqrt(0.5 / gamma)) if gamma > 0 else (None, None)
    params: Params = {"mu": mu, "sigma": sigma, "beta": beta, "gamma": gamma, "n_tokens": round(n)}
    return scored("lognormal_paper", params, theta, loglik, distance, status)


def _maximum(rank_R: Floats, n_R: Floats) -> tuple[Floats, bool, Status]:
    def objective(theta: Floats) -> tuple[float, Floats, Floats]:
        ln_p_R, score_R2, hessian_R22 = _per_rank(rank_R, theta)
        return float(n_R @ ln_p_R), n_R @ score_R2, np.tensordot(n_R, hessian_R22, 1)

    n, t_R = float(n_R.sum()), np.log(rank_R)
    mean_t = float(n_R @ t_R) / n
    beta_limit = 1.0 + 1.0 / max(mean_t - _T_FLOOR, 1e-3)
    limit, converged = maximise(objective, np.array([beta_limit, 0.0]), lambda theta: bool(theta[0] > 1), held=1)
    if not objective(limit)[1][1] > 0:
        return limit, converged, Status.at_bound
    var_t = float(n_R @ t_R**2) / n - mean_t**2
    start = np.array([1.0 - mean_t / var_t, 0.5 / var_t])
    return *maximise(objective, start, lambda theta: bool(theta[1] > 0)), Status.ok


def paper_slopes(fit: RankFit, rank: ArrayLike) -> Floats:
    """The gradient and the Hessian of ln p_x in (beta, gamma) at an ok fit, [R, 2 + 4]; 0 for rank 1."""
    rank_R = np.asarray(rank, dtype=np.float64)
    slopes_R6, covered_R = np.zeros((len(rank_R), 6)), rank_R >= 2
    theta = np.array(fit.theta)
    _, score_R2, hessian_R22 = _per_rank(rank_R[covered_R], theta)
    slopes_R6[covered_R] = np.column_stack([score_R2, hessian_R22.reshape(-1, 4)])
    return slopes_R6


def step_paper(fit: RankFit, sums_B6: Floats) -> Floats:
    """Takes one Newton step from an ok fit for each replicate, from the sums of `paper_slopes` over its tokens, [B, 6].

    Returns (mu, sigma), [B, 2]; NaN where a replicate has too few different ranks for a step.
    """
    beta, gamma = fit.theta
    score_B2, hessian_B22 = sums_B6[:, :2], sums_B6[:, 2:].reshape(-1, 2, 2)
    concave_B = (np.linalg.det(hessian_B22) > 0) & (hessian_B22[:, 0, 0] < 0)
    hessian_B22[~concave_B] = -np.eye(2)
    step_B2 = -np.linalg.solve(hessian_B22, score_B2[:, :, None])[:, :, 0]
    relative_B = step_B2[:, 1] / gamma
    # Below half of gamma the step goes on exponentially (value and slope join), with beta along the likelihood ridge.
    kept_B = np.where(relative_B > -0.5, 1 + relative_B, 0.5 * np.exp(2 * np.minimum(relative_B, -0.5) + 1))
    gamma_B = gamma * kept_B
    ridge_B = -hessian_B22[:, 0, 1] / hessian_B22[:, 0, 0]
    beta_B = beta + step_B2[:, 0] + ridge_B * (gamma_B - gamma - step_B2[:, 1])
    sigma2_B = 0.5 / gamma_B
    mu_sigma_B2 = np.column_stack([(1.0 - beta_B) * sigma2_B, np.sqrt(sigma2_B)])
    mu_sigma_B2[~concave_B] = np.nan
    return mu_sigma_B2


def _per_rank(rank_R: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """Log of P(R = x | R >= 2), its gradient and its Hessian in (beta, gamma), for each rank >= 2."""
    cell, tail = _moments(*_cells(rank_R, theta)), _tail(theta)
    # d/d theta of ln of the integral of exp(t - theta . (t, t^2)) is minus the mean of (t, t^2).
    return cell.ln_z - tail.ln_z, tail.mean_2 - cell.mean_2, cell.cov_22 - tail.cov_22


def _cells(rank_R: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """Quadrature points t of each rank's cell, and the logarithms of their weights."""
    lo_R1 = np.log(rank_R - 0.5)[:, None]
    half_R1 = np.log1p(1.0 / (rank_R - 0.5))[:, None] / 2
    t_RQ = lo_R1 + half_R1 * (1.0 + _NODES[0])
    return t_RQ, (1 - theta[0]) * t_RQ - theta[1] * t_RQ**2 + np.log(half_R1) + np.log(_NODES[1])


def _tail(theta: Floats) -> _Moments:
    """Moments over t from ln 1.5 on; needs gamma > 0, or gamma = 0 and beta > 1."""
    slope, gamma = 1 - theta[0] - 2 * theta[1] * _T_FLOOR, theta[1]
    # With s = t - ln 1.5 the exponent is slope s - gamma s^2; the quadrature covers where it is within 50 of its top.
    top_s = slope / (2 * gamma) if slope > 0 else 0.0
    fall = slope if slope <= 0 else 0.0
    reach = 100.0 / (-fall + math.sqrt(fall * fall + 200.0 * gamma))
    lo = max(0.0, top_s - reach) + _T_FLOOR
    hi = top_s + reach + _T_FLOOR
    t_Q = (hi + lo) / 2 + (hi - lo) / 2 * _TAIL_NODES[0]
    return _moments(t_Q, (1 - theta[0]) * t_Q - gamma * t_Q**2 + np.log((hi - lo) / 2 * _TAIL_NODES[1]))


def _moments(t_XQ: Floats, ln_weight_XQ: Floats) -> _Moments:
    top_X1 = ln_weight_XQ.max(axis=-1, keepdims=True)
    w_XQ = np.exp(ln_weight_XQ - top_X1)
    sum_X1 = w_XQ.sum(axis=-1, keepdims=True)
    w_XQ /= sum_X1
    mean_1_X, mean_2_X = np.sum(w_XQ * t_XQ, axis=-1), np.sum(w_XQ * t_XQ**2, axis=-1)
    d1_XQ, d2_XQ = t_XQ - mean_1_X[..., None], t_XQ**2 - mean_2_X[..., None]
    c11, c12, c22 = (np.sum(w_XQ * a * b, axis=-1) for a, b in ((d1_XQ, d1_XQ), (d1_XQ, d2_XQ), (d2_XQ, d2_XQ)))
    cov = np.stack([np.stack([c11, c12], axis=-1), np.stack([c12, c22], axis=-1)], axis=-2)
    return _Moments(np.asarray((top_X1 + np.log(sum_X1))[..., 0]), np.stack([mean_1_X, mean_2_X], axis=-1), cov)


def _cdf_paper(x_R: Floats, theta: Floats) -> Floats:
    t_R, (beta, gamma) = np.log(x_R + 0.5), theta
    if gamma == 0:
        return np.asarray(-np.expm1((1 - beta) * (t_R - _T_FLOOR)))
    mu, sigma = (1 - beta) / (2 * gamma), math.sqrt(0.5 / gamma)
    return np.asarray(-np.expm1(log_ndtr((mu - t_R) / sigma) - log_ndtr((mu - _T_FLOOR) / sigma)))
