"""Widens the intervals of predictions by the errors of backtests, for any number of axes; never narrows them.

Backtests are few and dependent, so their squared errors are averaged with those of calibrated intervals. The constants
were chosen on simulated data.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, Z

_TRUST: Final = 4.0  # independent predictions that the trust in intervals is worth
_OF_ONE: Final = 2.0  # independent predictions that one backtest counts for
_SHARE: Final = 0.8  # quantile of the errors of a backtest; normal errors have `_QUANTILE`
_FARTHEST: Final = 5.0  # standard deviations; limits the heavy tails of few points
_QUANTILE: Final = 1.2815515655446004


def error_in_sd(predicted: Estimate, measured: float) -> float | None:
    """The error in standard deviations of ln |y|, by the interval on the side of the measured value."""
    values = (predicted.value, predicted.lo, predicted.hi, measured)
    if any(value is None or value == 0 or not math.isfinite(value) for value in values):
        return None
    y, lo, hi, at = (math.log(abs(value)) for value in values if value is not None)
    lo, hi = sorted((lo, hi))
    half = (hi - y) if at > y else (y - lo)
    return (at - y) * Z / half if half > 0 else None


def widening_factor(backtests: Iterable[tuple[float, Sequence[float]]]) -> float:
    """The factor, at least 1, that widens intervals in ln y.

    Each backtest is the share of the data that it was fitted to, with its errors in standard deviations.
    """
    known = [
        (_OF_ONE * share, min(float(np.quantile(np.abs(errors), _SHARE)), _FARTHEST))
        for share, errors in backtests
        if len(errors)
    ]
    square = sum(weight * (quantile / _QUANTILE) ** 2 for weight, quantile in known)
    return math.sqrt(max(1.0, (_TRUST + square) / (_TRUST + sum(weight for weight, _ in known))))


def widen(y: Estimate, factor: float) -> Estimate:
    """The estimate with an interval that is `factor` times as wide in ln |y|."""
    if factor == 1 or y.value is None or y.ends is None or y.value * y.ends[0] <= 0:
        return y
    with np.errstate(over="ignore"):  # an end beyond any float is infinite
        ends = y.value * np.power(np.array(y.ends) / y.value, factor)
    return Estimate(y.value, *ends.tolist())
