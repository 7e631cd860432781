"""How often intervals of the curve of two losses hold, and how often families that share it are said not to."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from rbpx.laws.losses.backtests import too_few_hold
from rbpx.laws.losses.calibration import hold_out_best
from rbpx.laws.losses.curve import CONSTANTS
from rbpx.laws.losses.noise import NONE_IN_X, Noise, NoiseSource
from tests.support.coverage import of_loss_curve, rejected_curves
from tests.support.loss_pairs import covariance, drawn

WIDE = np.geomspace(1e6, 1e9, 10)
NARROW = np.geomspace(3e6, 3e8, 300)  # many models, whose errors are a tenth of what they differ by
SE = math.sqrt(0.05 * 0.95)  # of one draw


def test_one_curve_in_twenty_is_rejected_where_families_share_it_and_most_where_they_are_off() -> None:
    assert rejected_curves(500, 0.0) <= 500 * (0.05 + 3 * SE / math.sqrt(500))
    assert rejected_curves(100, 0.03) >= 80


@pytest.mark.parametrize(
    "C_22", [covariance(0.003, 0.003, 0), covariance(0.02, 0.005, 0), covariance(0.01, 0.01, 0.8)], ids=str
)
def test_constants_hold_by_the_covariance_and_predictions_by_none(C_22: NDArray[np.float64]) -> None:
    found = of_loss_curve(400, C_22, Noise(C_22, NoiseSource.seeds), 10, WIDE)
    assert min(found.values()) >= 400 * (0.95 - 3 * SE / math.sqrt(400))


def test_a_wrong_covariance_moves_constants_and_no_prediction() -> None:
    C_22 = covariance(0.06, 0.004, 0)
    right = of_loss_curve(100, C_22, Noise(C_22, NoiseSource.seeds), len(NARROW), NARROW)
    wrong = of_loss_curve(100, C_22, NONE_IN_X, len(NARROW), NARROW)
    least = 100 * (0.95 - 3 * SE / math.sqrt(100))
    assert min(right.values()) >= least
    assert min(wrong[name] for name in CONSTANTS) < 80
    assert wrong["prediction"] == right["prediction"] >= least


def test_backtests_of_a_right_calibration_rarely_hold_too_few() -> None:
    rng, count, draws = np.random.default_rng(13), 0, 200
    for _ in range(draws):
        x, y = drawn(np.geomspace(1e6, 1e9, 10), covariance(0.01, 0.01, 0.5), rng)
        count += too_few_hold(hold_out_best(x, y))
    assert count / draws <= 0.05
