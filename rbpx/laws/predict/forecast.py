"""Scores of forecasts: a predicted interval and what was measured in; error, score and coverage out.

All is on the scale of ln y, on which predictions are made and their intervals are about even.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from rbpx.laws.intervals.estimate import LEVEL, Estimate, Z, of_share


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
