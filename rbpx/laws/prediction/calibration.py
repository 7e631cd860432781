"""What backtests say of the intervals and of the errors of a prediction: one rule for every number of axes.

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
_ERROR: Final = (0.21, 0.57, 0.87)  # factor, exponent of the spread, exponent of the decades; benchmarks/errors.py
_NEAREST: Final = 0.1  # decades: what lies within the measured models is taken to be this far off
_MEDIAN: Final = 0.6744897501960817  # of |error| over the standard deviation of a normal distribution


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


def expected_error(y: Estimate, beyond: float) -> float | None:
    """The median |error| to expect of a prediction, relative to it; None without an interval.

    By the spread of the interval alone errors nearby are less than expected, and those of narrow intervals more: the
    constants make half of the errors smaller than this at every distance, over public series (docs/explanation/
    uncertainty.md).

    Args:
        y: the prediction with its 95 % interval.
        beyond: the factor by which it lies outside the measured models, in size; in size and tokens the square root of
            that in compute.
    """
    values = (y.lo, y.hi)
    if any(value is None or value == 0 or not math.isfinite(value) for value in values):
        return None
    lo, hi = sorted(math.log(abs(value)) for value in values if value is not None)
    factor, of_spread, of_decades = _ERROR
    spread = _MEDIAN * (hi - lo) / (2 * Z)
    return float(factor * spread**of_spread * max(math.log10(max(beyond, 1.0)), _NEAREST) ** of_decades)
