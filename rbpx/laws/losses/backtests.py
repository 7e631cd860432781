"""Judges a calibration by its backtests: whether too few intervals hold, and by how much to widen them.

All predict the same models and those of one fit err alike, so they count as many as there are fits.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from scipy.special import bdtr

from rbpx.laws.intervals.estimate import LEVEL, Z
from rbpx.laws.prediction.calibration import error_in_sd, widen
from rbpx.laws.prediction.verdict import Backtest, widening_of

_LEVEL: Final = 0.02  # of a binomial test of the intervals that hold: fits are not quite independent


def significantly_few_hold(tests: Sequence[Backtest]) -> bool:
    """Whether significantly fewer intervals than 95 % hold, counting as many tests as fits."""
    held = [(test.n_fitted, test.is_inside) for test in tests if test.is_inside is not None]
    if not held:
        return False
    n_fits = len({n for n, _ in held})
    n_held = math.ceil(n_fits * sum(is_inside for _, is_inside in held) / len(held))
    return float(bdtr(n_held, n_fits, LEVEL)) < _LEVEL


def widenings_at(tests: Sequence[Backtest], n_models: int, beyond: Sequence[float]) -> list[float]:
    """The factors by which backtests widen the intervals of predictions in ln y; at least 1.

    Where too few hold, it is the 95 % conformal quantile of errors over intervals in the half with the most similar
    `beyond`.
    """
    factor = widening_of(tests, n_models) if n_models > 2 else 1.0
    errors = [(test.predicted.beyond, error_in_sd(test.predicted.estimate, test.measured)) for test in tests]
    known = [(far, abs(error) / Z) for far, error in errors if error is not None]
    if not known or not significantly_few_hold(tests):
        return [factor] * len(beyond)
    n = (len(known) + 1) // 2
    nearest = (sorted((abs(math.log(far / at)), error) for far, error in known)[:n] for at in beyond)
    share = min(1.0, LEVEL * (n + 1) / n)
    return [max(factor, float(np.quantile([error for _, error in of], share, method="higher"))) for of in nearest]


def widened(tests: Sequence[Backtest], n_models: int) -> tuple[Backtest, ...]:
    """The backtests with intervals as wide as those of predictions so far out."""
    by = widenings_at(tests, n_models, [test.predicted.beyond for test in tests])
    wider = [widen(test.predicted.estimate, factor) for test, factor in zip(tests, by, strict=True)]
    return tuple(
        replace(test, predicted=replace(test.predicted, lo=y.lo, hi=y.hi)) for test, y in zip(tests, wider, strict=True)
    )
