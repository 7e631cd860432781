"""Loss to loss: the constants of its curve, predictions from a measured x, one curve for families; their coverage."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import curve_fit

from rbpx.laws.losses.backtests import too_few_hold, widening_at
from rbpx.laws.losses.calibration import calibrate, hold_out_best, hold_out_family, is_far
from rbpx.laws.losses.curve import CONSTANTS, LossPoints, fit_curve, fit_losses, kappa_of
from rbpx.laws.losses.guessing import backtest_of_misses, misses_of, odds
from rbpx.laws.losses.noise import EQUAL, NONE_IN_X, NONE_IN_Y, Noise, NoiseSource, noise_of
from rbpx.laws.losses.shared import share_one_curve
from rbpx.laws.power.predictor import Prediction
from rbpx.laws.prediction.verdict import Backtest
from rbpx.status import Status
from tests.support.coverage import of_loss_curve, rejected_curves
from tests.support.draws import fewest, most
from tests.support.loss_pairs import E_X, E_Y, TRUE, covariance, drawn, losses, points, success, two_families

Floats = NDArray[np.float64]


@pytest.mark.parametrize("noise", [EQUAL, NONE_IN_X, NONE_IN_Y, Noise(covariance(2, 1, 0.7), NoiseSource.seeds)])
def test_two_power_laws_in_S_are_one_curve_with_their_constants(noise: Noise) -> None:
    fit = fit_losses(points(*losses(np.geomspace(1e6, 1e9, 8)), noise), noise)
    assert {name: fit.constants[name].value for name in CONSTANTS} == pytest.approx(TRUE, rel=1e-6)
    assert fit.reasons == ()
    assert fit.at_bound == ()
    assert fit.scatter == pytest.approx(0, abs=1e-9)


def test_with_no_errors_in_x_it_is_least_squares_of_ln_y() -> None:
    x, y = drawn(np.geomspace(1e6, 1e9, 30), covariance(0, 0.002, 0), np.random.default_rng(1))

    def ln_law(x: Floats, ln_K: float, kappa: float, E_x: float, E_y: float) -> Floats:
        return np.asarray(np.log(E_y + np.exp(ln_K) * (x - E_x) ** kappa))

    bounds = ([-9, 0.1, 0, 0], [9, 9, 0.99 * x.min(), 0.99 * y.min()])
    best, _ = curve_fit(
        ln_law, x, np.log(y), [math.log(TRUE["K"]), 0.9, 1.7, 1.4], bounds=bounds, xtol=1e-14, ftol=1e-14
    )
    curve = fit_curve(points(x, y, NONE_IN_X))
    assert curve.theta_P.tolist() == pytest.approx(best.tolist(), rel=1e-3)
    assert kappa_of(points(x, y, EQUAL), NONE_IN_X) == pytest.approx(best[1], rel=1e-3)


def test_the_slope_of_a_straight_line_is_that_of_deming() -> None:
    rng = np.random.default_rng(2)
    ln_x = np.linspace(0.5, 1.5, 12) + 0.05 * rng.normal(size=12)
    ln_y = 0.3 + 0.8 * np.linspace(0.5, 1.5, 12) + 0.1 * rng.normal(size=12)
    ratio = 4.0  # of the variance of ln y over that of ln x
    (xx, xy), (_, yy) = np.cov(ln_x, ln_y)
    deming = (yy - ratio * xx + math.sqrt((yy - ratio * xx) ** 2 + 4 * ratio * xy**2)) / (2 * xy)
    noise = Noise(np.diag([1.0, ratio]), NoiseSource.assumed)
    assert fit_losses(LossPoints(ln_x, ln_y, noise.C_22), noise).slope.value == pytest.approx(deming, rel=1e-5)


def test_distances_are_those_of_the_nearest_points_by_the_covariance() -> None:
    x, y = drawn(np.geomspace(1e6, 1e9, 9), covariance(0.02, 0.02, 0.5), np.random.default_rng(3))
    C_22 = covariance(0.02, 0.01, -0.3)
    curve = fit_curve(LossPoints(np.log(x), np.log(y), C_22))
    floor = math.log(curve.theta_P[2]) + 1e-9 if curve.theta_P[2] > 0 else -1.0
    w = np.linspace(floor, math.log(x.max()) + 0.3, 200_001)
    ln_f = curve.ln_at(w)
    for at in range(len(x)):
        off = np.stack([math.log(x[at]) - w, math.log(y[at]) - ln_f])
        squares = (off * np.linalg.solve(C_22, off)).sum(axis=0)
        assert curve.r_N[at] ** 2 == pytest.approx(squares.min(), rel=1e-3, abs=1e-4)


def test_fewer_models_than_constants_have_a_slope_alone() -> None:
    x, y = losses(np.geomspace(1e6, 1e9, 4))
    fit = fit_losses(points(x, y, EQUAL), EQUAL)
    assert fit.reasons == (Status.too_few_sizes,)
    assert fit.constants["kappa"].value is None
    assert fit.slope.value is not None
    two = fit_losses(points(x[:2], y[:2], EQUAL), EQUAL)
    assert two.reasons == (Status.too_few_sizes,)
    assert two.slope.value is None


def test_losses_that_do_not_rise_together_have_no_trend() -> None:
    x, _ = losses(np.geomspace(1e6, 1e9, 8))
    y = 3 + 0.1 * np.random.default_rng(4).normal(size=8)
    assert Status.no_trend in fit_losses(points(x, y, EQUAL), EQUAL).reasons


def test_documents_widen_the_intervals_of_constants() -> None:
    rng = np.random.default_rng(5)
    x, y = drawn(np.geomspace(1e6, 1e9, 9), covariance(0.002, 0.002, 0), rng)
    z_N2 = np.log(np.stack([x, y], axis=1))
    z_BN2 = z_N2 + 0.02 * rng.normal(size=(200, 1, 2)) * (1 + z_N2)  # a line in the level moves the curve
    without = fit_losses(points(x, y, EQUAL), EQUAL)
    within = fit_losses(points(x, y, EQUAL), EQUAL, z_BN2, 50)
    for name in ("K", "kappa"):
        (lo, hi), (least, most) = without.constants[name].ends, within.constants[name].ends  # type: ignore[misc]
        assert least < lo
        assert hi < most
        assert within.constants[name].value == without.constants[name].value


def test_the_covariance_is_of_seeds_else_of_documents_else_assumed() -> None:
    rng = np.random.default_rng(6)
    z_N2 = rng.normal(size=(6, 2))
    models = ["a", "a", "b", "b", "c", "c"]
    halves = (z_N2[::2] - z_N2[1::2]) / 2
    of_seeds = noise_of(z_N2, models)
    assert of_seeds.source is NoiseSource.seeds
    assert of_seeds.C_22 == pytest.approx(2 * halves.T @ halves / 3)
    own = rng.multivariate_normal([0, 0], covariance(0.3, 0.1, 0.8), size=(2000, 6))
    z_BN2 = z_N2 + own + rng.normal(size=(2000, 1, 2))  # what moves all models alike is no error of one
    same, apart = (noise_of(z_N2, range(6), z_BN2, is_same) for is_same in (True, False))
    assert same.source is apart.source is NoiseSource.documents
    assert same.ratio == pytest.approx(3, rel=0.05)
    assert same.correlation == pytest.approx(0.8, abs=0.03)
    assert apart.correlation == 0
    assert noise_of(z_N2, range(6)) is EQUAL


def test_a_measured_x_foretells_y_of_the_curve() -> None:
    S = np.geomspace(1e6, 1e9, 12)
    x, y = drawn(S, covariance(1e-4, 1e-4, 0), np.random.default_rng(7))
    new_x, new_y = losses(np.array([3e7, 4e9]))
    calibration = calibrate(x, y, float(new_x.min()))
    assert calibration is not None
    for told, true in zip(calibration.at(new_x.tolist()), new_y, strict=True):
        assert told.value == pytest.approx(true, rel=5e-3)
        assert told.ends is not None
        assert told.ends[0] < true < told.ends[1]
    assert calibrate(x[:2], y[:2], 1.0) is None
    assert calibrate(x, -y, 1.0) is None
    assert not is_far(float(x.min() * (x.min() / x.max()) ** 0.49), x)
    assert is_far(float(x.min() / x.max() * x.min()), x)


def test_many_models_are_calibrated_without_a_matrix_for_each_form() -> None:
    S = np.geomspace(1e6, 1e9, 300)
    x, y = drawn(S, covariance(0.003, 0.003, 0), np.random.default_rng(8))
    calibration = calibrate(x, y, float(x.min()))
    assert calibration is not None
    assert len(calibration.fits.grid.scatters) == 1
    (told,) = calibration.at([3.0])
    assert told.value == pytest.approx(E_Y + TRUE["K"] * (3.0 - E_X) ** TRUE["kappa"], rel=2e-3)


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


def test_families_off_each_other_share_no_curve_and_others_are_rarely_rejected() -> None:
    """A shared curve is rejected at most as often in 999 of 1,000 sets of 10 draws, by the binomial."""
    assert rejected_curves(4, 0.03) >= 3
    assert rejected_curves(10, 0.0) <= most(10)
    families, _ = two_families(covariance(0.01, 0.01, 0), 0.0, np.random.default_rng(1))
    assert share_one_curve(families, fit_curve(families), ["f"] * 12, 0) is None


def test_intervals_of_constants_and_predictions_hold() -> None:
    """Those of 95 % do as often in 999 of 1,000 sets of 10 draws, by the binomial."""
    C_22 = covariance(0.01, 0.006, 0.5)
    held = of_loss_curve(10, C_22, Noise(C_22, NoiseSource.seeds), 10, np.geomspace(1e6, 1e9, 10))
    assert min(held.values()) >= fewest(10, n_counts=len(held)), held


def compared_of_tasks(accuracy: Floats, x: Floats, chance: float) -> tuple[Backtest, ...]:
    above = accuracy > chance
    tests = hold_out_best(x[above], odds(1 - accuracy[above], chance))
    return tuple(backtest_of_misses(test, chance) for test in tests)


def test_odds_of_misses_are_those_of_the_accuracy_and_come_back() -> None:
    a = np.array([0.3, 0.6, 0.99])
    assert odds(1 - a, 0.25) == pytest.approx((1 - a) / (a - 0.25))
    assert [misses_of(float(each), 0.25) for each in odds(1 - a, 0.25)] == pytest.approx(1 - a)
    assert odds(np.array([0.5]), 0.0) == pytest.approx([1.0])


def test_accuracy_near_chance_foretells_that_of_better_models() -> None:
    rng = np.random.default_rng(12)
    x = np.geomspace(3.6, 2.2, 14) * np.exp(rng.normal(0, 0.003, 14))
    a = success(x) + rng.normal(0, 0.003, 14)
    tests = compared_of_tasks(a, x, 0.25)
    assert np.mean([test.is_inside for test in tests]) >= 0.8
    assert [test.measured for test in tests if test.n_fitted == 13] == pytest.approx([1 - a[-1]])
    assert not too_few_hold(tests)
    told = tests[-1].predicted
    assert tests[-1].error == pytest.approx((told.y - tests[-1].measured) / tests[-1].measured)
    of_misses = hold_out_best(x, 1 - a)  # a power of x - E_x has no flat end
    assert too_few_hold(of_misses)
    assert widening_at(of_misses, 14, 1.05) > 1.9


def test_an_interval_that_backtests_missed_is_as_wide_as_their_errors_at_such_a_distance() -> None:
    def backtest(beyond: float, times: float, n: int = 5) -> Backtest:  # `times` half intervals off
        half = 0.1
        predicted = Prediction(beyond, 1.0, math.exp(-half), math.exp(half), beyond)
        measured = math.exp(times * half)
        return Backtest(n, beyond, predicted, measured, 1 / measured - 1)

    near, far = ([backtest(beyond, times, n) for n in range(3, 9)] for beyond, times in ((1.05, 2.0), (1.5, 12.0)))
    assert 2.0 <= widening_at([*near, *far], 10, 1.0) < 6.0  # of the near ones alone
    assert widening_at([*near, *far], 10, 1.6) == pytest.approx(12.0)
    assert widening_at([backtest(1.1, 0.5)] * 12, 10, 1.1) == 1.0
    assert too_few_hold([*near, *far])
    # Nine fits: six of nine held, p = 0.0084; seven, p = .071. Of one fit, the points are one test: p = .05.
    assert too_few_hold([backtest(1.1, 0.5 if n < 6 else 3.0, n) for n in range(9)])
    assert not too_few_hold([backtest(1.1, 0.5 if n < 7 else 3.0, n) for n in range(9)])
    assert not too_few_hold([backtest(1.1, 3.0)] * 100)


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
    assert calibration is not None
    left_N3 = np.tensordot(calibration.fits.weight_BRF[0], calibration.fits.residual_BRFN[0], 2).reshape(3, 3)
    between = left_N3.mean(axis=0).var(ddof=1) - left_N3.var(axis=0, ddof=1).mean() / 3
    t, z = stats.t.ppf(0.975, 2), stats.norm.ppf(0.975)
    assert calibration.between == pytest.approx((t**2 * (1 + 1 / 3) - z**2) * between, rel=1e-6)
