"""Covariances of the scatter of models about a law: independent, correlated between neighbours, or with a departure.

A few sizes do not show whether large ones deviate or scatter more, so departures (`rbpx.laws.intervals.misfit`) have a
small prior weight, which the interval includes.

Shapes: N models, T other sizes.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.intervals.misfit import Covariance, Departure, departures
from rbpx.laws.numeric import Floats

SCATTER: Final = 0.01  # of ln y, prior of three sizes, which hardly show it
SCATTER_COUNTS: Final = 1  # points that this prior counts for
_HALF_DECADE: Final = 0.5 * math.log(10)
_CORRELATIONS: Final = {0.0: 0.7, 0.5: 0.2, 0.8: 0.1}  # between models half a decade apart: prior weight


@dataclass(frozen=True, eq=False)
class ScatterModel:
    """One covariance R of the scatter.

    Attributes:
        whiten_NN: L of R^-1 = L L'.
        onward: maps ln S of other sizes to the weights of the residuals there, [T, N], and the remaining variance of a
            new model over that of the scatter, [T].
        is_correlated: between neighbouring sizes.
        departs: the departure, if it is one.
    """

    prior: float
    whiten_NN: Floats
    ln_det: float
    onward: Callable[[Floats], tuple[Floats, Floats]]
    is_correlated: bool = False
    departs: Departure | None = None

    @classmethod
    def of(
        cls,
        prior: float,
        R_NN: Floats,
        onward: Callable[[Floats], tuple[Floats, Floats]],
        is_correlated: bool = False,
        departs: Departure | None = None,
    ) -> "ScatterModel":
        """The scatter of a covariance."""
        whiten_NN = np.linalg.cholesky(np.linalg.inv(R_NN))
        return cls(prior, whiten_NN, -2 * float(np.log(np.diag(whiten_NN)).sum()), onward, is_correlated, departs)


def scatters_at(x_N: Floats, departs: Mapping[Departure, float]) -> tuple[ScatterModel, ...]:
    """Even scatter, independent and correlated, then each departure, by prior weights with a sum below 1."""
    even = 1 - sum(departs.values())
    found = [correlated(x_N, rho, 1.0, even * weight) for rho, weight in _CORRELATIONS.items()]
    of = [each for each in departures(x_N) if each.kind in departs] if departs else []
    for each in of:
        prior = departs[each.kind] / sum(other.kind is each.kind for other in of)

        def onward(x_T: Floats, each: Covariance = each) -> tuple[Floats, Floats]:
            return np.zeros((len(x_T), len(x_N))), each.of_new(x_T, x_N)

        found.append(ScatterModel.of(prior, each.R_NN, onward, departs=each.kind))
    return tuple(found)


def correlated(x_N: Floats, rho: float, common: float, prior: float) -> ScatterModel:
    """Scatter with correlation `common` * rho^(half decades apart) between different models."""
    R_NN = common * _correlation(x_N, x_N, rho)
    np.fill_diagonal(R_NN, 1.0)
    # A new model shares no more with a measured one of its size than a neighbour half a decade away does, or
    # than models of one size do.
    most = rho if common == 1.0 else common

    def onward(x_T: Floats) -> tuple[Floats, Floats]:
        R_TN = np.minimum(common * _correlation(x_T, x_N, rho), most)
        carry_TN = np.asarray(np.linalg.solve(R_NN, R_TN.T).T if rho else R_TN, np.float64)
        return carry_TN, 1 - (carry_TN * R_TN).sum(axis=1)

    return ScatterModel.of(prior, R_NN, onward, rho > 0)


def _correlation(x_T: Floats, x_N: Floats, rho: float) -> Floats:
    apart_TN = np.abs(x_T[:, None] - x_N) / _HALF_DECADE
    return np.asarray(rho**apart_TN) if rho else np.zeros_like(apart_TN)
