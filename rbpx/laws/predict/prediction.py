"""Predictions of a fitted law in size at sizes that were not fitted, with their intervals.

Scores of forecasts: a predicted interval and what was measured in; error, score and coverage out.

All is on the scale of ln y, on which predictions are made and their intervals are about even.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.bootstrap import Resampled
from rbpx.laws.intervals.estimate import LEVEL, Estimate, Z, of_share
from rbpx.laws.names import Method
from rbpx.laws.numeric.arrays import Floats, exp_or_none
from rbpx.laws.numeric.solvers import Searching
from rbpx.laws.power.intervals import estimate
from rbpx.laws.power.law import PowerLawFit
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


@dataclass(frozen=True)
class Score:
    """How one forecast did.

    Attributes:
        error: (predicted - measured) / measured.
        in_sd: (ln measured - ln predicted) over the sd that the interval stands for, its width / (2 * 1.96).
        is_inside: whether the interval contains the measured value.
        interval_score: width of the interval in ln y, plus 2 / 0.05 times how far the measured value lies outside it;
            the less the better, so neither a wide interval nor one that misses pays.
    """

    error: float
    in_sd: float
    is_inside: bool
    interval_score: float


def score(y: float, lo: float, hi: float, measured: float) -> Score | None:
    """Score one forecast; None where a value is 0, not finite or of another sign, which has no logarithm.

    Args:
        y: the prediction.
        lo: lower end of its 95 % interval.
        hi: upper end.
        measured: what the model showed.

    Source:
        T. Gneiting, A. E. Raftery, Strictly Proper Scoring Rules, Prediction, and Estimation, JASA 102, 2007, eq. 43.
    """
    values = (y, lo, hi, measured)
    signs = {math.copysign(1.0, value) for value in values if value != 0 and math.isfinite(value)}
    if len(signs) != 1 or not all(value != 0 and math.isfinite(value) for value in values) or lo == hi:
        return None
    ln_y, ln_measured = math.log(abs(y)), math.log(abs(measured))
    ln_lo, ln_hi = sorted((math.log(abs(lo)), math.log(abs(hi))))
    width = ln_hi - ln_lo
    outside = max(ln_lo - ln_measured, ln_measured - ln_hi, 0.0)
    return Score(
        error=(y - measured) / measured,
        in_sd=(ln_measured - ln_y) * 2 * Z / width,
        is_inside=lo <= measured <= hi,
        interval_score=width + 2 / (1 - LEVEL) * outside,
    )


def coverage(inside: Sequence[bool], models: Sequence[Hashable]) -> Estimate:
    """The share of intervals that contained what was measured, with an interval; all None without any.

    The quantities of one model err together, so each model counts once, whatever the number of its forecasts: the
    interval is Wilson's for as many independent forecasts as there are models. It is too wide where they err apart.

    Args:
        inside: of each forecast.
        models: which model each was about.
    """
    if not inside:
        return Estimate()
    n = len(set(models))
    return of_share(n * sum(inside) / len(inside), n)
