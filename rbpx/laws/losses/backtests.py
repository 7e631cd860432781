"""Judges a calibration by its backtests: whether too few intervals hold, and by how much to widen them.

All predict the same models and those of one fit err alike, so they count as many as there are fits.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import bdtr

from rbpx.laws.intervals.estimate import LEVEL, Z
from rbpx.laws.prediction.calibration import error_in_sd
from rbpx.laws.prediction.verdict import Backtest, widening_of

_LEVEL: Final = 0.02  # of a binomial test of the intervals that hold: fits are not quite independent


def too_few_hold(tests: Sequence[Backtest]) -> bool:
    """Whether significantly fewer intervals than 95 % hold, counting as many tests as fits."""
    held = [(test.n_fitted, test.is_inside) for test in tests if test.is_inside is not None]
    if not held:
        return False
    n_fits = len({n for n, _ in held})
    n_held = math.ceil(n_fits * sum(is_inside for _, is_inside in held) / len(held))
    return float(bdtr(n_held, n_fits, LEVEL)) < _LEVEL


def widening_at(tests: Sequence[Backtest], n_models: int, beyond: float) -> float:
    """The factor by which backtests widen the interval of one prediction in ln y; at least 1.

    Where too few hold, it is the 95 % conformal quantile of errors over intervals in the half with the most similar
    `beyond`.
    """
    factor = widening_of(tests, n_models) if n_models > 2 else 1.0
    if not too_few_hold(tests):
        return factor
    errors = [(test.predicted.beyond, error_in_sd(test.predicted.estimate, test.measured)) for test in tests]
    known = sorted((abs(math.log(far / beyond)), abs(error) / Z) for far, error in errors if error is not None)
    alike = [error for _, error in known[: (len(known) + 1) // 2]]
    if not alike:
        return factor
    share = min(1.0, LEVEL * (len(alike) + 1) / len(alike))
    return max(factor, float(np.quantile(alike, share, method="higher")))
