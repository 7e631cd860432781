"""Scores of forecasts against a plainer way, and coverage whose interval is as wide as the models are few."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from rbpx.laws.prediction.prediction import coverage, score


def test_a_forecast_of_a_lognormal_is_scored_as_its_quantiles_are() -> None:
    rng = np.random.default_rng(0)
    for y, sd, measured in rng.uniform(0.05, 3, (50, 3)):
        lo, hi = (float(y * np.exp(sd * norm.ppf(tail))) for tail in (0.025, 0.975))
        found = score(y, lo, hi, measured)
        assert found.in_sd == pytest.approx(math.log(measured / y) / sd, rel=1e-9)
        assert found.is_inside == (abs(found.in_sd) <= norm.ppf(0.975))
        # the interval score is the pinball loss of both ends, over half of what they leave out
        pinball = [
            (tail - (math.log(measured) < end)) * (math.log(measured) - end)
            for tail, end in ((0.025, math.log(lo)), (0.975, math.log(hi)))
        ]
        assert found.interval_score == pytest.approx(sum(pinball) / 0.025, rel=1e-9)
        assert found.error == pytest.approx(y / measured - 1)


def test_what_is_negative_is_scored_as_its_size_is() -> None:
    above, below = score(2.0, 1.5, 2.5, 2.2), score(-2.0, -2.5, -1.5, -2.2)
    assert (below.in_sd, below.is_inside, below.interval_score) == (above.in_sd, True, above.interval_score)


@pytest.mark.parametrize("values", [(1, 0.5, 2, -1), (1, 0, 2, 1), (1, 0.5, math.inf, 1), (1, 1, 1, 1), (1, 0.5, 2, 0)])
def test_what_has_no_logarithm_is_not_scored(values: tuple[float, float, float, float]) -> None:
    assert score(*values) is None


def test_coverage_is_of_models_not_of_their_quantities() -> None:
    one = coverage([True, True, True, False], ["a", "a", "b", "b"])
    many = coverage([True, True, True, False] * 10, [f"{at}" for at in range(20) for _ in range(2)])
    assert one.value == many.value == 0.75
    assert one.lo < many.lo < 0.75 < many.hi < one.hi
    # Clopper and Pearson: with such a share, so many hits or more (fewer) come 2.5 times of 100
    assert binom.sf(14, 20, many.lo) == pytest.approx(0.025)
    assert binom.cdf(15, 20, many.hi) == pytest.approx(0.025)
    assert coverage([], []).value is None
