"""The result of fitting any distribution to the ranks, and the checks of the counts it is fitted to."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.numeric.arrays import Floats
from rbpx.status import Status

Params = dict[str, float | int | None]


@dataclass(frozen=True)
class RankFit:
    """A fitted distribution of ranks; None where a number is unknown.

    params contains the parameters by name and n_tokens, the tokens that the fit covers. A lognormal has mu, sigma (None
    in the power-law limit), beta = 1 - mu / sigma^2 and gamma = 1 / (2 sigma^2) (0.0 there: fitted, not unknown).
    Fits over 1..V carry V, and where a parameter was put to the edge of its family, its value without that edge as
    ..._unconstrained. loglik (nats), aic and bic are of the ranks that the fit covers: 2 and up, given that R >= 2, for
    lognormal_paper; 1..V for all others. So they compare models of the same coverage only. Parameters at an edge were
    fitted too, and count. distance is the largest difference between the fitted and the observed CDF over those ranks
    (Kolmogorov).
    """

    distribution: str
    params: Params
    loglik: float | None = None
    aic: float | None = None
    bic: float | None = None
    distance: float | None = None
    status: Status = Status.ok


def scored(name: str, params: Params, loglik: float, n_parameters: int, distance: float, status: Status) -> RankFit:
    """A fit with its information criteria: AIC = 2 m - 2 ln L, BIC = m ln n - 2 ln L, n the params["n_tokens"]."""
    n = params["n_tokens"] or 0
    aic, bic = 2.0 * n_parameters - 2 * loglik, n_parameters * math.log(n) - 2 * loglik
    return RankFit(name, params, loglik, aic, bic, distance, status)


def checked_counts(rank: ArrayLike, n_tokens: ArrayLike) -> tuple[Floats, Floats]:
    """Distinct ranks that occur, ascending, and their counts, both of shape [R].

    Raises:
        ValueError: if shapes disagree, a rank is below 1 or a count is negative.
    """
    rank_R, n_R = np.asarray(rank, dtype=np.float64), np.asarray(n_tokens, dtype=np.float64)
    if rank_R.ndim != 1 or rank_R.shape != n_R.shape:
        raise ValueError(f"rank has shape {rank_R.shape}, n_tokens {n_R.shape}")
    if not np.all((rank_R >= 1) & np.isfinite(rank_R)) or not np.all((n_R >= 0) & np.isfinite(n_R)):
        raise ValueError("ranks must be >= 1 and counts >= 0")
    distinct_R, where_R = np.unique(rank_R[n_R > 0], return_inverse=True)
    return distinct_R, np.bincount(where_R, weights=n_R[n_R > 0], minlength=len(distinct_R)).astype(np.float64)
