"""Loss to loss: predictions of y from a measured x, their backtests and coverage."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from rbpx.laws.losses.backtests import significantly_few_hold, widened, widenings_at
from rbpx.laws.losses.calibration import calibrate, hold_out_best, hold_out_family, is_far, rises
from rbpx.laws.losses.guessing import backtest_of_misses, misses_of, odds
from rbpx.laws.power.predicted import Prediction
from rbpx.laws.prediction.verdict import Backtest
from tests.support.loss_pairs import E_X, E_Y, KAPPA, K, covariance, drawn, losses

Floats = NDArray[np.float64]


def test_a_measured_x_predicts_y_of_the_curve() -> None:
    S = np.geomspace(1e6, 1e9, 12)
    x, y = drawn(S, covariance(1e-4, 1e-4, 0), np.random.default_rng(7))
    new_x, new_y = losses(np.array([3e7, 4e9]))
    calibration = calibrate(x, y, float(new_x.min()))
    for told, true in zip(calibration.at(new_x.tolist()), new_y, strict=True):
        assert told.value == pytest.approx(true, rel=5e-3)
        assert told.ends[0] < true < told.ends[1]
    assert calibrate(x[:2], y[:2], 1.0) is None
    assert calibrate(x, -y, 1.0) is None
    assert not is_far(float(x.min() * (x.min() / x.max()) ** 0.49), x)
    assert is_far(float(x.min() / x.max() * x.min()), x)


def test_many_models_are_calibrated_without_a_matrix_for_each_form() -> None:
    S = np.geomspace(1e6, 1e9, 300)
    x, y = drawn(S, covariance(0.003, 0.003, 0), np.random.default_rng(8))
    calibration = calibrate(x, y, float(x.min()))
    assert len(calibration.fits.grid.scatters) == 1
    (told,) = calibration.at([3.0])
    assert told.value == pytest.approx(E_Y + K * (3.0 - E_X) ** KAPPA, rel=2e-3)


def test_backtests_hold_out_the_models_of_the_smallest_x() -> None:
    x, y = drawn(np.geomspace(1e6, 1e9, 6), covariance(0.002, 0.002, 0), np.random.default_rng(9))
    order = np.random.default_rng(0).permutation(6)
    tests = hold_out_best(x[order], y[order])
    assert [(test.n_fitted, round(1 / test.S, 9)) for test in tests] == [
        (m, round(float(each), 9)) for m in (3, 4, 5) for each in x[m:]
    ]
    assert [test.measured for test in tests] == pytest.approx([each for m in (3, 4, 5) for each in y[m:]])
    of_families = hold_out_family(x, y, ["f", "g"] * 3)
    assert {name: [1 / test.S for test in each] for name, each in of_families.items()} == {
        "f": pytest.approx(x[::2]),
        "g": pytest.approx(x[1::2]),
    }
    assert hold_out_family(x, y, ["f"] * 6) == {}


def test_losses_that_do_not_rise_together_have_no_trend() -> None:
    """By the interval of the slope of a straight line of logarithms."""
    x, y = losses(np.geomspace(1e6, 1e9, 8))
    assert rises(x, y)
    assert not rises(x, 3 + 0.1 * np.random.default_rng(4).normal(size=8))
    assert not rises(x, 1 / y)
    off_N = np.random.default_rng(5).normal(size=8)
    for scatter in (0.05, 0.3, 0.6, 1.0):
        drawn_N = np.log(y) + scatter * off_N
        slope = stats.linregress(np.log(x), drawn_N)
        assert rises(x, np.exp(drawn_N)) == (slope.slope > stats.t.ppf(0.975, 6) * slope.stderr)


def compared_of_tasks(accuracy: Floats, x: Floats, chance: float) -> tuple[Backtest, ...]:
    above = accuracy > chance
    tests = hold_out_best(x[above], odds(1 - accuracy[above], chance))
    return tuple(backtest_of_misses(test, chance) for test in tests)


def test_odds_of_misses_are_those_of_the_accuracy_and_come_back() -> None:
    a = np.array([0.3, 0.6, 0.99])
    assert odds(1 - a, 0.25) == pytest.approx((1 - a) / (a - 0.25))
    assert [misses_of(float(each), 0.25) for each in odds(1 - a, 0.25)] == pytest.approx(1 - a)
    assert odds(np.array([0.5]), 0.0) == pytest.approx([1.0])


def test_an_interval_that_backtests_missed_is_as_wide_as_their_errors_at_such_a_distance() -> None:
    def backtest(beyond: float, times: float, n: int = 5) -> Backtest:  # `times` half intervals off
        half = 0.1
        predicted = Prediction(beyond, 1.0, math.exp(-half), math.exp(half), beyond)
        measured = math.exp(times * half)
        return Backtest(n, beyond, predicted, measured, 1 / measured - 1)

    near, far = ([backtest(beyond, times, n) for n in range(3, 9)] for beyond, times in ((1.05, 2.0), (1.5, 12.0)))
    at, of_far = widenings_at([*near, *far], 10, [1.0, 1.6])
    assert 2.0 <= at < 6.0  # of the near ones alone
    assert of_far == pytest.approx(12.0)
    assert widenings_at([backtest(1.1, 0.5)] * 12, 10, [1.1]) == [1.0]
    # As wide as predictions there: half intervals of .1 times the factor, which then hold what missed them.
    wider = widened([*near, *far], 10)
    assert [test.predicted.hi for test in wider[::6]] == pytest.approx([math.exp(0.1 * at), math.exp(0.1 * of_far)])
    assert [test.is_inside for test in wider] == [True] * 12
    assert significantly_few_hold([*near, *far])
    # Nine fits: six of nine held, p = 0.0084; seven, p = .071. Of one fit, the points are one test: p = .05.
    assert significantly_few_hold([backtest(1.1, 0.5 if n < 6 else 3.0, n) for n in range(9)])
    assert not significantly_few_hold([backtest(1.1, 0.5 if n < 7 else 3.0, n) for n in range(9)])
    assert not significantly_few_hold([backtest(1.1, 3.0)] * 100)


CHANCES = {"hellaswag": 0.25, "arc_challenge": 0.25, "arc_easy": 0.25, "piqa": 0.5, "csqa": 0.2, "socialiqa": 1 / 3}


def test_accuracies_of_a_published_ladder_lie_in_the_intervals_of_their_backtests(shared_data: Path) -> None:
    with (shared_data / "reference" / "olmo_ladder.csv").open() as file:
        last = {row["run"]: row for row in csv.DictReader(file)}
    x = np.array([float(row["c4_loss_nats"]) for row in last.values()])
    held = {}
    for task, chance in CHANCES.items():
        accuracy = np.array([float(row[f"{task}_accuracy"]) for row in last.values()])
        tests = compared_of_tasks(accuracy, x, chance)
        held[task] = float(np.mean([test.is_inside for test in tests]))
    assert min(held.values()) >= 0.9, held


def test_families_that_differ_push_the_ends_for_a_new_one_out() -> None:
    """By the variance between them, and by what three families leave unknown of it."""
    x = np.linspace(2.0, 4.0, 9)
    calibration = calibrate(x, (0.5 + x) * np.tile([0.9, 1.0, 1.1], 3), 2.0, ["a", "b", "c"] * 3)
    left_N3 = np.tensordot(calibration.fits.weight_BRF[0], calibration.fits.residual_BRFN[0], 2).reshape(3, 3)
    between = left_N3.mean(axis=0).var(ddof=1) - left_N3.var(axis=0, ddof=1).mean() / 3
    t, z = stats.t.ppf(0.975, 2), stats.norm.ppf(0.975)
    assert calibration.between == pytest.approx((t**2 * (1 + 1 / 3) - z**2) * between, rel=1e-6)
