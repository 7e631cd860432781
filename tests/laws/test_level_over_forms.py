"""The size at which a level is reached over forms, against a search on the prediction and on drawn ladders."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from rbpx.laws.prediction.prediction import SEARCHED, find_crossings
from tests.support.predictions import predict_batch

S = np.geomspace(1e6, 1e9, 7)
Y = 40 * S**-0.15 * np.exp(0.01 * np.array([1.0, -1, 1, 0, -1, 0.5, -0.5]))


def by_search(column: int, level: float) -> float | None:
    """Where one column of the prediction (median, lower end, upper end) falls to the level; None where it does not."""

    def above(x: float) -> float:
        return float(np.log(predict_batch(S, Y[None], math.exp(x))[0, column] / level))

    far = math.log(S[-1] * SEARCHED)
    return None if above(far) > 0 else float(brentq(above, math.log(S[0] / SEARCHED), far, xtol=1e-7))


@pytest.mark.parametrize("level", [3.0, 1.6, 0.3, 0.01])
def test_both_ends_and_the_size_are_where_the_prediction_meets_the_level(level: float) -> None:
    (found,) = find_crossings(S, Y, [level]) or []
    # A lower end of y that meets the level is a size at which the level is just possible: the lower end of the sizes.
    for number, column in ((found.value, 0), (found.lo, 1), (found.hi, 2)):
        expected = by_search(column, level)
        assert (number is None) == (expected is None)
        assert number == (None if expected is None else pytest.approx(expected, abs=1e-6))


def test_points_on_a_law_reach_a_level_where_its_inverse_says() -> None:
    (found,) = find_crossings(S, 40 * S**-0.15, [1.5]) or []
    assert [found.lo, found.value, found.hi] == pytest.approx([math.log(40 / 1.5) / 0.15] * 3, abs=1e-7)


def test_three_values_that_turn_say_something_of_every_level() -> None:
    """Components whose exponent nothing determines are infinitely wide, not NaN (seen on three tiny models)."""
    found = find_crossings([14496, 25472, 39520], [1.749853071926675, 1.216169310084634, 1.433398184248886], [2.3, 0.1])
    for each in found:
        ends = [end for end in (each.lo, each.value, each.hi) if end is not None]
        assert ends == sorted(ends)
        assert np.isfinite(ends).all()


def test_values_without_a_law_reach_nothing() -> None:
    assert find_crossings(S[:2], Y[:2], [1.0]) is None
    assert find_crossings(S, [*Y[:6], 0.0], [1.0]) is None
    assert find_crossings(S, -Y, [1.0]) is None
