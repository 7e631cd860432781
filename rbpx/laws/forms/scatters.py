"""How models of a ladder scatter about a law: alone, together with their neighbours, or with seeds of the same size.

Models of one size that were trained more than once (equal S) have what is correlated in common, and the rest of their
scatter is their own: how large a share is common is averaged over too, since replicates say it.

Shapes: N models, T other sizes, R correlations.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from rbpx.laws.numeric import Floats

_HALF_DECADE: Final = 0.5 * math.log(10)
_CORRELATIONS: Final = {0.0: 0.7, 0.5: 0.2, 0.8: 0.1}  # of two models half a decade apart: prior weight
_COMMON: Final = (0.5, 0.8, 0.95, 0.99)  # share of the variance of replicates that they have in common, equally likely


def correlations(has_repeats: bool) -> dict[tuple[float, float], float]:
    """Correlation, common share, and prior weight; without replicates nothing says that not all is common."""
    weights: dict[tuple[float, float], float] = {}
    for rho, weight in _CORRELATIONS.items():
        shares = _COMMON if has_repeats and rho else (1.0,)
        weights |= {(rho, common): weight / len(shares) for common in shares}
    return weights


def scatter_of(x_N: Floats, rho: float, common: float) -> Floats:
    """Correlation of the scatter of models: `common` rho^(half decades apart) of different ones; positive definite."""
    R_NN = common * _correlation(x_N, x_N, rho)
    np.fill_diagonal(R_NN, 1.0)
    return R_NN


def carried(x_T: Floats, x_N: Floats, scatters: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    """How residuals are carried over to new models [R, T, N], and the variance that this leaves [R, T]."""
    # A new model of a size that was measured shares no more with that one than a neighbour half a decade away, or
    # than replicates do.
    most_R = [rho if common == 1.0 else common for rho, common in scatters]
    common_RTN = [common * _correlation(x_T, x_N, rho) for rho, common in scatters]
    R_RTN = np.array([np.minimum(*each) for each in zip(common_RTN, most_R, strict=True)])
    carry_RTN = R_RTN @ np.array([np.linalg.inv(scatter_of(x_N, *each)) for each in scatters])
    return carry_RTN, np.asarray(1 - (carry_RTN * R_RTN).sum(axis=2))


def _correlation(x_T: Floats, x_N: Floats, rho: float) -> Floats:
    """Correlation rho^(half decades apart) of what models have in common, none for rho = 0; shape [T, N]."""
    apart_TN = np.abs(x_T[:, None] - x_N) / _HALF_DECADE
    return np.asarray(rho**apart_TN) if rho else np.zeros_like(apart_TN)
