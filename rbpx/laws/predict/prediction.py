"""Predictions of a fitted law in size at sizes that were not fitted, with their intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.intervals.resampled import Resampled
from rbpx.laws.names import Method
from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.numeric.logarithms import exp_or_none
from rbpx.laws.numeric.side_by_side import Searching
from rbpx.laws.power.fitted import PowerLawFit
from rbpx.laws.power.found import estimate
from rbpx.laws.power.uncertainty import Uncertainty
from rbpx.status import Status


@dataclass(frozen=True)
class Prediction:
    """The prediction of a law at one size.

    Attributes:
        S: the size.
        y: the value that the law gives.
        lo: lower end of the 95 % interval of what a model of this size would show; None where the fit has none.
        hi: upper end.
        beyond: the factor by which S lies outside the fitted sizes; 1 within them.
    """

    S: float
    y: float
    lo: float | None
    hi: float | None
    beyond: float

    @property
    def estimate(self) -> Estimate:
        """The value with its interval."""
        return Estimate(self.y, self.lo, self.hi)


@dataclass(frozen=True, eq=False)
class Predictor:
    """What a law predicts from.

    Attributes:
        theta_P: ln C at S_ref, alpha and, where it has one, E.
        S_ref: a size.
        sign: of the values.
        S: the sizes that were fitted.
        about: the uncertainty of theta_P; None where predictions have no interval.
    """

    theta_P: Floats
    S_ref: float
    sign: int
    S: Sequence[float]
    about: Uncertainty | None

    def at(self, S: float) -> Prediction:
        """The value of the law, with an interval for a single model of that size."""
        x = math.log(S / self.S_ref)
        ln_C_ref, alpha, *offset = self.theta_P.tolist()
        power = math.exp(ln_C_ref - alpha * x)
        y = power + sum(offset)
        lo = hi = None
        if self.about is not None:
            gradient_P = np.array([power / y, -x * power / y, *(1 / y for _ in offset)])
            lo, hi = (exp_or_none(end) for end in self.about.interval(math.log(y), gradient_P, new_model=True))
        ends = sorted(self.sign * end for end in (lo, hi)) if lo is not None and hi is not None else [None, None]
        return Prediction(S, self.sign * y, ends[0], ends[1], outside(S, self.S))


def predictor(fit: PowerLawFit) -> Predictor | None:
    """What a fit predicts from; None if it has no numbers."""
    if fit.theta_P is None:
        return None
    return Predictor(fit.theta_P, fit.S_ref, fit.sign or 1, fit.S, fit.uncertainty)


def predictor_of(
    S: ArrayLike, y: ArrayLike, resampled: Resampled | None, method: Method, sign: int = 1
) -> Searching[Predictor | None]:
    """The same of the fit to these points, without the rest of it.

    Args:
        S: as in `rbpx.laws.power.law.fit_power_law`.
        y: the values; where their law is that of |y|, values of the other sign have none.
        resampled: of |y|.
        method: how ln |y| is regressed on ln S.
        sign: of the law.
    """
    S_N, y_N = np.asarray(S, dtype=np.float64), sign * np.asarray(y, dtype=np.float64)
    found = yield from estimate(S_N, y_N, resampled, method)
    S_ref = math.exp(float(np.log(S_N).mean()))
    if found is Status.no_variation:
        return Predictor(np.array([math.log(y_N[0]), 0.0]), S_ref, sign, S_N.tolist(), None)
    if isinstance(found, Status):
        return None
    about = found.spread if found.has_interval else None
    return Predictor(found.regression.theta_P, S_ref, sign, S_N.tolist(), about)


def predict(fit: PowerLawFit, S: float) -> Prediction:
    """The value of the law at another size, with an interval for a single model of that size.

    Args:
        fit: a fit that has numbers.
        S: non-embedding parameters.

    Raises:
        ValueError: the fit has no numbers, or S is not positive and finite.
    """
    law = predictor(fit)
    if law is None or not 0 < S < math.inf:
        raise ValueError(f"nothing to predict at S = {S}: status {fit.status}")
    return law.at(S)


def outside(S: float, sizes: Sequence[float]) -> float:
    """The factor by which S lies outside the sizes; 1 within them."""
    return max(S / max(sizes), min(sizes) / S, 1.0)


def along(fit: PowerLawFit, n: int) -> list[Prediction]:
    """The predictions of the law at n sizes from its smallest to its largest, evenly spaced in ln S.

    Raises:
        ValueError: the fit has no numbers.
    """
    return [predict(fit, float(S)) for S in np.geomspace(min(fit.S), max(fit.S), n)]
