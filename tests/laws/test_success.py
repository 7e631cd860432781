"""Success against a feature: the sigmoid against scipy and the published start, curves that points allow, coverage."""

import math

import numpy as np
import pytest
from scipy.optimize import least_squares

from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.success.chain import (
    feature_from_estimate,
    independent_points,
    measured_feature,
    plausible_curves,
    predict_success,
)
from rbpx.laws.success.sigmoid import Sigmoid, fit_sigmoid

TRUE = Sigmoid(np.array([-0.7, 1.1, 4.0, 0.95]))


def drawn(n: int = 12, scatter: float = 0.01, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x_N = np.linspace(0.6, 2.0, n)
    return x_N, np.array([TRUE(x) for x in x_N]) + scatter * rng.standard_normal(n)


def plain(x_N: np.ndarray, y_N: np.ndarray) -> np.ndarray:
    """The same minimum by scipy, with derivatives by differences."""

    def residual(theta: np.ndarray) -> np.ndarray:
        a, x0, h, b = theta
        return np.append(a / (1 + np.exp(-h * (x_N - x0))) + b - y_N, a / (1 + math.exp(h * x0)) + b - 1)

    bounds = ([-1, 0, 0, 0], [0, np.inf, np.inf, 1])
    return least_squares(residual, [-0.75, 0.9, 3, 0.9], bounds=bounds, xtol=1e-14, ftol=1e-14, gtol=1e-14).x


def test_the_fit_is_that_of_scipy_and_exact_points_give_their_constants() -> None:
    x_N, y_N = drawn()
    fit = fit_sigmoid(x_N, y_N, 0.25)
    assert fit.theta_P == pytest.approx(plain(x_N, y_N), abs=2e-6)
    assert (fit.n_points, fit.n_free, fit.converged) == (13, 4, True)
    exact = fit_sigmoid(*drawn(scatter=0.0), 0.25, anchor=None)
    assert exact.theta_P == pytest.approx([-0.7, 1.1, 4.0, 0.95], rel=1e-6)


def test_equal_bounds_hold_a_constant_and_too_few_points_have_no_fit() -> None:
    x_N, y_N = drawn()
    held = fit_sigmoid(x_N, y_N, 0.25, bounds={"b": (0.9, 0.9)})
    assert (held.theta_P[3], held.n_free) == (0.9, 3)
    assert fit_sigmoid(x_N[:3], y_N[:3], 0.25) is None
    assert fit_sigmoid(x_N[:3], y_N[:3], 0.25, bounds={"b": (1.0, 1.0)}) is not None


def test_points_alike_within_groups_count_as_fewer() -> None:
    group_N = np.repeat(np.arange(4), 25)
    alike = np.repeat([0.1, -0.2, 0.15, -0.05], 25)
    apart = np.tile([0.1, -0.1], 50)
    assert independent_points(alike, group_N) == pytest.approx(4)
    assert independent_points(apart, group_N) == pytest.approx(100)
    assert independent_points(np.array([0.1, -0.3, 0.2]), np.arange(3)) == 3


def test_plausible_curves_lie_about_the_truth_and_keep_to_their_bounds() -> None:
    x_N, y_N = drawn(n=30, scatter=0.003)
    of = plausible_curves(x_N, y_N, 30, 0.25, None, 1000, 0)
    a_J, _, h_J, b_J = of[:, :4].T
    assert np.all((b_J <= 1) & (a_J <= 0) & (h_J > 0) & (a_J + b_J >= 0))
    at = [predict_success(TRUE, of, measured_feature(x), 0) for x in (0.7, 1.1, 1.8)]
    assert all(each.ends is not None and each.ends[1] - each.ends[0] < 0.03 for each in at)
    assert [each.value for each in at] == [TRUE(x) for x in (0.7, 1.1, 1.8)]
    # Beyond the points the anchor, which is not true here, may or may not count.
    low = predict_success(TRUE, plausible_curves(x_N, y_N, 30, 0.25, (0.0, 1.0), 1000, 0), measured_feature(0.05), 0)
    assert low.ends[0] < TRUE(0.05) < low.ends[1]


def test_a_feature_is_drawn_where_its_interval_is_above_zero_with_that_interval() -> None:
    draws_J = feature_from_estimate(Estimate(1.0, 0.5, 2.0), 8.0, 0).draws_J
    assert np.quantile(draws_J, [0.025, 0.5, 0.975]) == pytest.approx([0.5, 1.0, 2.0], rel=0.06)
    for ends in ((None, None), (0.0, 2.0), (-1.0, 2.0)):
        assert feature_from_estimate(Estimate(1.0, *ends), 8.0, 0).draws_J is None
