"""Lognormal model of the ranks: counts of ranks in, (mu, sigma) out; `derived` has the curves that follow.

Everything is written in t = ln(rank) and in the natural parameters theta = (beta, gamma), with
beta = 1 - mu / sigma^2 and gamma = 1 / (2 sigma^2), because the power law is then the plain boundary gamma = 0 and
not a place where mu and sigma run away. Shapes: R is the number of different ranks, B of resamples, V the vocabulary.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from rbpx.status import Status

__all__ = [
    "EQUATION",
    "SOURCE",
    "RankFit",
    "fit_full",
    "fit_paper",
    "resample_paper",
]

EQUATION: Final = "Pr(R = x) = psi(x) / c, psi(x) = exp(-(ln x - mu)^2 / (2 sigma^2)) / (x sigma sqrt(2 pi))"
SOURCE: Final = "RBP paper, arXiv 2510.20387, eq. 9 and appendix D"

Floats = NDArray[np.float64]

_T_FLOOR: Final = math.log(1.5)
_NODES, _NODE_WEIGHTS = (np.asarray(a, dtype=np.float64) for a in np.polynomial.legendre.leggauss(20))
_TAIL_NODES, _TAIL_WEIGHTS = (np.asarray(a, dtype=np.float64) for a in np.polynomial.legendre.leggauss(200))


@dataclass(frozen=True)
class RankFit:
    """A fitted distribution of ranks; None where a number is unknown.

    params: mu, sigma (None in the power-law limit), beta, gamma (0.0 there: fitted, not unknown), n_tokens (covered
    by the fit), and for lognormal_full V, beta_unconstrained and gamma_unconstrained. loglik (nats), aic and bic
    are of the ranks the fit covers: 2 and up, given that R >= 2, for lognormal_paper; 1..V for lognormal_full. So
    they compare models of the same coverage only. Both count 2 parameters, also in the limit, where gamma was fitted
    too. distance is the largest difference between the fitted and the observed CDF over those ranks (Kolmogorov).
    """

    distribution: str
    params: dict[str, float | int | None]
    loglik: float | None
    aic: float | None
    bic: float | None
    distance: float | None
    status: Status


@dataclass(frozen=True)
class _Moments:
    """Log-integral of exp((1 - beta) t - gamma t^2), and mean and covariance of (t, t^2) under it; shapes [...]."""

    ln_z: Floats
    mean_2: Floats
    cov_22: Floats


def fit_paper(rank: ArrayLike, n_tokens: ArrayLike) -> RankFit:
    """Fit mu and sigma as the paper does: to the ranks from 2 up, rank 1 being extrapolated to.

    Maximises sum_x n_x ln P(R = x | R >= 2), P = [Phi((ln(x+1/2) - mu)/sigma) - Phi((ln(x-1/2) - mu)/sigma)] /
    [1 - Phi((ln 1.5 - mu)/sigma)]. Written as a ratio of two integrals of exp((1-beta) t - gamma t^2) over t = ln x,
    it is an exponential family observed in cells: every log-probability, score and Hessian is a log-integral, a mean
    and a covariance, computed by Gauss-Legendre quadrature to rounding, with no difference of two normal CDFs.
    Newton's method does the rest. The boundary gamma = 0 (a power law) is solved first; if the likelihood does not
    rise from it into gamma > 0, that is the answer.

    Args:
        rank: ranks, shape [R], whole numbers >= 1 in any order.
        n_tokens: number of tokens of each rank, shape [R].

    Returns:
        The fit. Status power_law_limit: mu and sigma None, gamma 0; too_few_tokens: fewer than 3 different ranks from
        2 up; mid_ranks: a rank is a half.

    Raises:
        ValueError: if shapes disagree, a rank is below 1 or a count is negative.

    Source:
        The published (mu, sigma) of the RBP paper (arXiv 2510.20387, appendix D) are this maximum.
    """
    rank_R, n_R = _checked(rank, n_tokens)
    if np.any(rank_R != np.floor(rank_R)):
        return _without_numbers("lognormal_paper", Status.mid_ranks, {})
    rank_R, n_R = rank_R[rank_R >= 2], n_R[rank_R >= 2]
    n = float(n_R.sum())
    if len(rank_R) < 3:
        return _without_numbers("lognormal_paper", Status.too_few_tokens, {"n_tokens": round(n)})

    def objective(theta: Floats) -> tuple[float, Floats, Floats]:
        ln_p_R, score_R2, hessian_R22 = _per_rank(rank_R, theta)
        return float(n_R @ ln_p_R), n_R @ score_R2, np.tensordot(n_R, hessian_R22, 1)

    mean_t = float(n_R @ np.log(rank_R)) / n
    beta_limit = 1.0 + 1.0 / max(mean_t - _T_FLOOR, 1e-3)
    limit, limit_converged = _maximise(objective, np.array([beta_limit, 0.0]), free=[0], to_infinity=True)
    theta, converged, status = limit, limit_converged, Status.power_law_limit
    if objective(limit)[1][1] > 0:
        var_t = float(n_R @ np.log(rank_R) ** 2) / n - mean_t**2
        start = np.array([1.0 - mean_t / var_t, 0.5 / var_t])
        theta, converged = _maximise(objective, start, free=[0, 1], to_infinity=True)
        status = Status.ok
    if not converged:
        return _without_numbers("lognormal_paper", Status.not_converged, {"n_tokens": round(n)})
    # Both CDFs are compared at every observed rank and just below the next one, where a gap can be largest.
    below_next_R = np.append(rank_R[1:] - 1, rank_R[-1])
    cdf_R = np.cumsum(n_R) / n
    gaps = [np.abs(cdf_R - _cdf_paper(x_R, theta)).max() for x_R in (rank_R, below_next_R)]
    distance = float(max(*gaps, _cdf_paper(rank_R[:1] - 1, theta)[0]))
    return _fitted("lognormal_paper", theta, objective(theta)[0], n, distance, status, {})


def resample_paper(fit: RankFit, rank: ArrayLike, n_tokens_resampled: ArrayLike) -> Floats:
    """Refit mu and sigma to resampled counts by one Newton step from the maximum of the whole sample.

    theta_b = theta - H_b^-1 g_b, g_b = sum_x n_bx d ln p_x / d theta, H_b = sum_x n_bx d^2 ln p_x / d theta^2, both
    at the maximum of the whole sample; the derivatives of each rank are computed once, so B resamples cost one
    matrix product. The error is of second order in the distance of the resample from the sample. A step that would
    more than halve gamma is bent so that gamma stays positive: a resample whose own maximum is the power-law limit
    gets a large, finite sigma, and its derived curves stay close to those of the limit.

    Args:
        fit: result of `fit_paper` on the whole sample, status ok.
        rank: ranks, shape [R], whole numbers; rank 1 is ignored.
        n_tokens_resampled: tokens of each rank in each resample, shape [B, R].

    Returns:
        (mu, sigma), shape [B, 2]; NaN where a resample has too few different ranks for a step.

    Raises:
        ValueError: if the fit has no mu and sigma, or the shapes disagree.

    Source:
        One-step estimator (Le Cam); van der Vaart, Asymptotic Statistics, section 5.7.
    """
    beta, gamma = fit.params.get("beta"), fit.params.get("gamma")
    if fit.distribution != "lognormal_paper" or fit.status is not Status.ok or beta is None or gamma is None:
        raise ValueError(f"needs a lognormal_paper fit with status ok, got {fit.distribution} with {fit.status}")
    rank_R, n_BR = np.asarray(rank, dtype=np.float64), np.asarray(n_tokens_resampled, dtype=np.float64)
    if n_BR.ndim != 2 or rank_R.shape != n_BR.shape[1:]:
        raise ValueError(f"rank has shape {rank_R.shape}, n_tokens_resampled {n_BR.shape}")
    covered_R = rank_R >= 2
    _, score_R2, hessian_R22 = _per_rank(rank_R[covered_R], np.array([beta, gamma]))
    sums_B6 = n_BR[:, covered_R] @ np.column_stack([score_R2, hessian_R22.reshape(-1, 4)])
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


def fit_full(rank: ArrayLike, n_tokens: ArrayLike, V: int) -> RankFit:
    """Maximum likelihood over all ranks 1..V.

    p_x = x^(-beta) exp(-gamma ln^2 x) / Z: a concave exponential family with the sufficient statistics mean ln R and
    mean ln^2 R. If the best gamma is <= 0 no lognormal fits; then gamma = 0 (a truncated power law), mu and sigma are
    None, the status is power_law_limit and the free maximum is in params as beta_unconstrained, gamma_unconstrained.

    Args:
        rank: ranks, shape [R], whole numbers in 1..V.
        n_tokens: number of tokens of each rank, shape [R].
        V: width of the vocabulary of this model.

    Returns:
        The fit. Status as in `fit_paper`; too_few_tokens: fewer than 3 different ranks.

    Raises:
        ValueError: as in `fit_paper`, and if a rank exceeds V.

    Source:
        The family of the RBP paper (arXiv 2510.20387), eq. 9, truncated at V; fitted by rbpx, not by the paper.
    """
    rank_R, n_R = _checked(rank, n_tokens)
    if len(rank_R) and rank_R[-1] > V:
        raise ValueError(f"rank {rank_R[-1]:g} exceeds the vocabulary of {V}")
    n = float(n_R.sum())
    if np.any(rank_R != np.floor(rank_R)):
        return _without_numbers("lognormal_full", Status.mid_ranks, {"V": V})
    if len(rank_R) < 3:
        return _without_numbers("lognormal_full", Status.too_few_tokens, {"V": V, "n_tokens": round(n)})
    t_R, t_V = np.log(rank_R), np.log(np.arange(1, V + 1, dtype=np.float64))
    seen_2 = np.array([n_R @ t_R, n_R @ t_R**2]) / n

    def objective(theta: Floats) -> tuple[float, Floats, Floats]:
        ln_w_V = -(theta[0] * t_V + theta[1] * t_V**2)
        model = _moments(t_V, ln_w_V)
        ln_lik = -float(theta @ seen_2) - float(model.ln_z)
        return n * ln_lik, n * (model.mean_2 - seen_2), -n * model.cov_22

    free, converged_free = _maximise(objective, np.array([1.0, 0.0]), free=[0, 1], to_infinity=False)
    theta, converged, status = free, converged_free, Status.ok
    if converged_free and free[1] <= 0:
        theta, converged = _maximise(objective, np.array([1.0, 0.0]), free=[0], to_infinity=False)
        status = Status.power_law_limit
    if not converged:
        return _without_numbers("lognormal_full", Status.not_converged, {"V": V, "n_tokens": round(n)})
    ln_p_V = -(theta[0] * t_V + theta[1] * t_V**2)
    ln_p_V -= float(_moments(t_V, ln_p_V).ln_z)
    seen_V = np.bincount(rank_R.astype(np.int64) - 1, weights=n_R, minlength=V) / n
    distance = float(np.abs(np.cumsum(seen_V - np.exp(ln_p_V))).max())
    more: dict[str, float | int | None] = {"V": V, "beta_unconstrained": float(free[0])}
    more["gamma_unconstrained"] = float(free[1])
    return _fitted("lognormal_full", theta, objective(theta)[0], n, distance, status, more)


def _per_rank(rank_R: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
    """Log of P(R = x | R >= 2), its gradient and its Hessian in (beta, gamma), for each rank >= 2."""
    lo_R1 = np.log(rank_R - 0.5)[:, None]
    half_R1 = np.log1p(1.0 / (rank_R - 0.5))[:, None] / 2
    t_RQ = lo_R1 + half_R1 * (1.0 + _NODES)
    cell = _moments(t_RQ, (1 - theta[0]) * t_RQ - theta[1] * t_RQ**2 + np.log(half_R1 * _NODE_WEIGHTS))
    tail = _tail(theta)
    # d/d theta of ln of the integral of exp(t - theta . (t, t^2)) is minus the mean of (t, t^2).
    return cell.ln_z - tail.ln_z, tail.mean_2 - cell.mean_2, cell.cov_22 - tail.cov_22


def _tail(theta: Floats) -> _Moments:
    """Moments over t from ln 1.5 to infinity; needs gamma > 0, or gamma = 0 and beta > 1."""
    slope, gamma = 1 - theta[0] - 2 * theta[1] * _T_FLOOR, theta[1]
    # With s = t - ln 1.5 the exponent is slope s - gamma s^2; the quadrature covers where it is within 50 of its top.
    top_s = slope / (2 * gamma) if slope > 0 else 0.0
    fall = slope if slope <= 0 else 0.0
    reach = 100.0 / (-fall + math.sqrt(fall * fall + 200.0 * gamma))
    lo = max(0.0, top_s - reach) + _T_FLOOR
    hi = top_s + reach + _T_FLOOR
    t_Q = (hi + lo) / 2 + (hi - lo) / 2 * _TAIL_NODES
    return _moments(t_Q, (1 - theta[0]) * t_Q - gamma * t_Q**2 + np.log((hi - lo) / 2 * _TAIL_WEIGHTS))


def _moments(t_XQ: Floats, ln_weight_XQ: Floats) -> _Moments:
    """Log-sum of the weights, and mean and covariance of (t, t^2) under them, over the last axis."""
    top_X1 = ln_weight_XQ.max(axis=-1, keepdims=True)
    w_XQ = np.exp(ln_weight_XQ - top_X1)
    sum_X1 = w_XQ.sum(axis=-1, keepdims=True)
    w_XQ /= sum_X1
    mean_1_X, mean_2_X = np.sum(w_XQ * t_XQ, axis=-1), np.sum(w_XQ * t_XQ**2, axis=-1)
    d1_XQ, d2_XQ = t_XQ - mean_1_X[..., None], t_XQ**2 - mean_2_X[..., None]
    c11, c12, c22 = (np.sum(w_XQ * a * b, axis=-1) for a, b in ((d1_XQ, d1_XQ), (d1_XQ, d2_XQ), (d2_XQ, d2_XQ)))
    cov = np.stack([np.stack([c11, c12], axis=-1), np.stack([c12, c22], axis=-1)], axis=-2)
    return _Moments(np.asarray((top_X1 + np.log(sum_X1))[..., 0]), np.stack([mean_1_X, mean_2_X], axis=-1), cov)


def _maximise(
    objective: Callable[[Floats], tuple[float, Floats, Floats]],
    theta: Floats,
    free: list[int],
    *,
    to_infinity: bool,
) -> tuple[Floats, bool]:
    """Newton's method with step halving over the free parameters; True if the gradient has vanished.

    With `to_infinity` the law runs over all ranks, and steps to where its sum diverges are halved too.
    """
    value, gradient, hessian = objective(theta)
    for _ in range(200):
        curvature = -hessian[np.ix_(free, free)]
        eigenvalues, axes = np.linalg.eigh(curvature)
        # A direction that curves up is climbed as if it curved down as much.
        floor = np.abs(eigenvalues).max() * 1e-14
        step = axes @ ((axes.T @ gradient[free]) / np.maximum(np.abs(eigenvalues), floor))
        gain = float(step @ gradient[free])
        if gain < 1e-12:
            return theta, bool(eigenvalues.min() > 0)
        for _ in range(60):
            candidate = theta.copy()
            candidate[free] += step
            if not to_infinity or _integrable(candidate, 1 in free):
                new_value, new_gradient, new_hessian = objective(candidate)
                if new_value > value or (gain < 1e-6 and new_value > value - 1e-9 * abs(value)):
                    break
            step = step / 2
        else:
            return theta, gain < 1e-6
        theta, value, gradient, hessian = candidate, new_value, new_gradient, new_hessian
    return theta, False


def _integrable(theta: Floats, gamma_is_free: bool) -> bool:
    return bool(theta[1] > 0 if gamma_is_free else theta[0] > 1)


def _cdf_paper(x_R: Floats, theta: Floats) -> Floats:
    """Pr(R <= x | R >= 2)."""
    t_R, (beta, gamma) = np.log(x_R + 0.5), theta
    if gamma == 0:
        return np.asarray(-np.expm1((1 - beta) * (t_R - _T_FLOOR)))
    mu, sigma = (1 - beta) / (2 * gamma), math.sqrt(0.5 / gamma)
    return np.asarray(-np.expm1(log_ndtr((mu - t_R) / sigma) - log_ndtr((mu - _T_FLOOR) / sigma)))


def _fitted(
    name: str,
    theta: Floats,
    loglik: float,
    n: float,
    distance: float,
    status: Status,
    more: dict[str, float | int | None],
) -> RankFit:
    beta, gamma = float(theta[0]), float(theta[1])
    mu, sigma = ((1 - beta) / (2 * gamma), math.sqrt(0.5 / gamma)) if gamma > 0 else (None, None)
    params = {"mu": mu, "sigma": sigma, "beta": beta, "gamma": gamma, "n_tokens": round(n)} | more
    return RankFit(name, params, loglik, 4.0 - 2 * loglik, 2 * math.log(n) - 2 * loglik, distance, status)


def _without_numbers(name: str, status: Status, known: dict[str, float | int | None]) -> RankFit:
    params: dict[str, float | int | None] = {"mu": None, "sigma": None, "beta": None, "gamma": None}
    return RankFit(name, params | known, None, None, None, None, status)


def _checked(rank: ArrayLike, n_tokens: ArrayLike) -> tuple[Floats, Floats]:
    """Distinct ranks that occur, ascending, and their counts."""
    rank_R, n_R = np.asarray(rank, dtype=np.float64), np.asarray(n_tokens, dtype=np.float64)
    if rank_R.ndim != 1 or rank_R.shape != n_R.shape:
        raise ValueError(f"rank has shape {rank_R.shape}, n_tokens {n_R.shape}")
    if not np.all((rank_R >= 1) & np.isfinite(rank_R)) or not np.all((n_R >= 0) & np.isfinite(n_R)):
        raise ValueError("ranks must be >= 1 and counts >= 0")
    distinct_R, where_R = np.unique(rank_R[n_R > 0], return_inverse=True)
    return distinct_R, np.bincount(where_R, weights=n_R[n_R > 0], minlength=len(distinct_R)).astype(np.float64)
