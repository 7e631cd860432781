"""What backtests of a calibration say of its predictions: whether too few intervals hold, and by how much to widen.

Backtests of one calibration depend on each other, since all foretell the same models. Where it is right, fewer than two
thirds of their intervals hold in about one draw of fifty (benchmarks/losses_coverage.py), however many there are.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import LEVEL, Z
from rbpx.laws.predict.calibration import in_sd
from rbpx.laws.predict.verdict import Backtest, widening_of

_FEWEST_HELD: Final = 2 / 3  # of the intervals


def too_few_hold(tests: Sequence[Backtest]) -> bool:
    """Whether fewer than two thirds of the intervals contain what was measured."""
    held = [test.is_inside for test in tests if test.is_inside is not None]
    return sum(held) < _FEWEST_HELD * len(held)


def widening_at(tests: Sequence[Backtest], n_models: int, beyond: float) -> float:
    """By what factor backtests say that the interval of one prediction is to be widened, in ln y; at least 1.

    Where too few hold, so far that 95 % of the half whose distance is most alike would have held: the quantile of
    conformal prediction, of their errors over their own intervals, without a limit.

    Args:
        tests: the backtests.
        n_models: that are fitted.
        beyond: the factor by which the x of the prediction lies outside those of the models.
    """
    factor = widening_of(tests, n_models) if n_models > 2 else 1.0
    if not too_few_hold(tests):
        return factor
    errors = [(test.predicted.beyond, in_sd(test.predicted.estimate, test.measured)) for test in tests]
    known = sorted((abs(math.log(far / beyond)), abs(error) / Z) for far, error in errors if error is not None)
    alike = [error for _, error in known[: (len(known) + 1) // 2]]
    if not alike:
        return factor
    share = min(1.0, LEVEL * (len(alike) + 1) / len(alike))
    return max(factor, float(np.quantile(alike, share, method="higher")))
