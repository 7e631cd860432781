"""How often the best of a sweep, and the law of well-tuned runs, hold the truth."""

import math

from tests.support.coverage import of_sweep, of_well_tuned_runs
from tests.support.draws import plausible


def test_the_least_of_noisy_runs_is_too_low_and_the_minimum_of_the_quadratic_is_not() -> None:
    held, off, least = of_sweep(2000)
    assert abs(off.mean()) < 4 * off.std() / math.sqrt(2000) + 3e-4
    assert least.mean() < -0.002
    assert {name: n for name, n in held.items() if not (n > 0.89 * 2000 or plausible(n, 2000))} == {}


def test_over_gives_the_law_of_well_tuned_runs_and_least_squares_does_not() -> None:
    held = of_well_tuned_runs(1000)
    assert min(held["alpha"], held["level"]) > 0.88 * 1000, held
    assert held["level by least squares"] < 0.6 * 1000
