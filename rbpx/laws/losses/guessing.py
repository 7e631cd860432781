"""Converts a task's share of misses to odds, misses over hits beyond guessing, and back.

Success is a sigmoid in the loss, flat at chance c. The odds y = (1 - a) / (a - c), for an accuracy a, are a power of x
where a is a sigmoid in ln x between c and 1.
"""

import math
from dataclasses import replace

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, student_t
from rbpx.laws.losses.calibration import Calibration
from rbpx.laws.numeric import Floats
from rbpx.laws.prediction.verdict import Backtest


def odds(misses: Floats, chance: float) -> Floats:
    """Misses over hits beyond guessing; shares of misses must be below 1 - chance."""
    return misses / (1 - chance - misses)


def misses_of(value: float | None, chance: float) -> float | None:
    """The share of misses of some odds; None stays None."""
    return None if value is None else (1 - chance) * (value / (1 + value) if value < 1 else 1 / (1 + 1 / value))


def as_misses(y: Estimate, chance: float, scatter: float = 0.0) -> Estimate:
    """The share of misses of odds with an interval, each end at least `scatter` away.

    Near chance, where odds are uninformative, misses lie on both sides of 1 - chance.
    """
    value, lo, hi = (misses_of(each, chance) for each in (y.value, y.lo, y.hi))
    if value is None or lo is None or hi is None:
        return Estimate(value, lo, hi)
    return Estimate(value, max(min(lo, value - scatter), 0.0), min(max(hi, value + scatter), 1.0))


def scatter_of(calibration: Calibration, x_N: Floats, misses_N: Floats, chance: float) -> float:
    """Half of the 95 % interval of misses about their predictions for the same models and those at chance."""
    told = [misses_of(y.value, chance) or 0.0 for y in calibration.at(x_N.tolist())]
    dof = len(told) - 2
    left_N = misses_N - np.array(told)
    return student_t(dof) * math.sqrt(float(left_N @ left_N) / dof)


def backtest_of_misses(test: Backtest, chance: float) -> Backtest:
    """Converts a backtest of odds to one of the share of misses."""
    y = as_misses(test.predicted.estimate, chance)
    measured = misses_of(test.measured, chance)
    assert y.value is not None, "a backtest has a value"
    assert measured is not None, "a backtest has a measured value"
    predicted = replace(test.predicted, y=y.value, lo=y.lo, hi=y.hi)
    return replace(test, predicted=predicted, measured=measured, error=(y.value - measured) / measured)
