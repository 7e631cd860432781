"""What backtests say of the intervals of a prediction: one rule for every number of axes.

An interval is widened where those of backtests were too narrow, never narrowed. Backtests are few and depend on each
other, so their squares are averaged with that of intervals which hold what they say (a weight of `_TRUST`), and those
from a small part of the points count less. The numbers were chosen on drawn worlds (benchmarks/surface_predictions.py).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, Z

_TRUST: Final = 4.0  # how many independent predictions the intervals are trusted like
_OF_ONE: Final = 2.0  # how many one backtest, of whatever number of points, counts like
_SHARE: Final = 0.8  # of the errors of one backtest; `_QUANTILE` is that of a normal distribution
_FARTHEST: Final = 5.0  # standard deviations; an error beyond, of few points and so of heavy tails, counts as this
_QUANTILE: Final = 1.2815515655446004


def in_sd(predicted: Estimate, measured: float) -> float | None:
    """How many standard deviations a measured value lies from the prediction, on the scale of ln |y|; None if unknown.

    A standard deviation is that which the 95 % interval stands for on the side of the measured value.
    """
    values = (predicted.value, predicted.lo, predicted.hi, measured)
    if any(value is None or value == 0 or not math.isfinite(value) for value in values):
        return None
    y, lo, hi, at = (math.log(abs(value)) for value in values if value is not None)
    lo, hi = sorted((lo, hi))
    half = (hi - y) if at > y else (y - lo)
    return (at - y) * Z / half if half > 0 else None


def widening(backtests: Iterable[tuple[float, Sequence[float]]]) -> float:
    """The factor, at least 1, by which intervals in ln y are to be widened.

    Args:
        backtests: of each how much of what is known it was made from, at most 1, and its errors in standard deviations.
    """
    known = [
        (_OF_ONE * share, min(float(np.quantile(np.abs(errors), _SHARE)), _FARTHEST))
        for share, errors in backtests
        if len(errors)
    ]
    square = sum(weight * (quantile / _QUANTILE) ** 2 for weight, quantile in known)
    return math.sqrt(max(1.0, (_TRUST + square) / (_TRUST + sum(weight for weight, _ in known))))


def widened(y: Estimate, factor: float) -> Estimate:
    """The same number, its interval as many times as wide in ln |y|."""
    if factor == 1 or y.value is None or y.ends is None or y.value * y.ends[0] <= 0:
        return y
    lo, hi = (y.value * _power(end / y.value, factor) for end in y.ends)
    return Estimate(y.value, lo, hi)


def _power(ratio: float, factor: float) -> float:
    try:
        return math.pow(ratio, factor)
    except OverflowError:  # an end beyond any number is none
        return math.inf
