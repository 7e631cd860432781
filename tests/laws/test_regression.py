"""The four regressions of a size law, each held against a second, plainer way to the same numbers."""

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import theilslopes

from rbpx.laws.names import Method
from rbpx.laws.power.law import PowerLaw, fit_power_law, reproduce
from rbpx.status import Status

S = np.logspace(6, 10, 7)
METHODS = [method.value for method in Method]
OUTLIER = 4


def noisy_points(seed: int, scatter: float = 0.01) -> np.ndarray:
    """A law with an offset of about half of its values."""
    return (1.7 + 50 * S**-0.2) * np.exp(scatter * np.random.default_rng(seed).normal(size=7))


def resamples_of(y: np.ndarray, seed: int, n: int = 40) -> np.ndarray:
    """Documents that are noisier for some sizes than for others, with a part shared by all."""
    rng = np.random.default_rng(seed)
    own = np.geomspace(0.002, 0.02, len(y)) * rng.normal(size=(n, len(y)))
    return np.asarray(y * np.exp(own + 0.01 * rng.normal(size=(n, 1))))


def fit_by(method: str, y: np.ndarray, y_BN: np.ndarray | None = None) -> PowerLaw:
    return fit_power_law(S[: len(y)], y, y_BN, Method(method))


def line(ln_S: np.ndarray, ln_y: np.ndarray, w: np.ndarray | None = None) -> tuple[float, float]:
    """ln C and alpha by numpy; w multiplies residuals, not their squares."""
    slope, intercept = np.polyfit(ln_S, ln_y, 1, w=w)
    return float(intercept), -float(slope)


def huber_line(ln_S: np.ndarray, ln_y: np.ndarray, scale: float) -> tuple[float, float]:
    """ln C and alpha by weighted lines in turn, until they stay."""
    w, before, alpha = np.ones(len(ln_y)), math.inf, 0.0
    while abs(alpha - before) > 1e-13:
        before, (ln_C, alpha) = alpha, line(ln_S, ln_y, np.sqrt(w))
        apart = np.abs(ln_y - ln_C + alpha * ln_S)
        w = np.where(apart <= 1.345 * scale, 1.0, 1.345 * scale / np.maximum(apart, 1e-300))
    return ln_C, alpha


def scale_about_the_median_line(ln_S: np.ndarray, ln_y: np.ndarray) -> float:
    slope, intercept, _, _ = theilslopes(ln_y, ln_S, method="joint")
    n = len(ln_y)
    return float(1.4826 * np.median(np.abs(ln_y - intercept - slope * ln_S)) * math.sqrt(n / (n - 2)))


def with_an_outlier(seed: int) -> np.ndarray:
    y = 7 * S**-0.1 * np.exp(0.005 * np.random.default_rng(seed).normal(size=7))
    y[OUTLIER] *= 1.5
    return np.asarray(y)


# --------------------------------------------------------------------------------------------------------- weighted


@pytest.mark.parametrize("seed", range(5))
def test_weighted_is_a_line_weighted_by_the_spread_of_the_resamples(seed: int) -> None:
    y = noisy_points(seed)
    y_BN = resamples_of(y, seed)
    sigma = np.array([np.std(np.log(column), ddof=1) for column in y_BN.T])
    ln_C, alpha = line(np.log(S), np.log(y), 1 / sigma)
    fit = fit_by("weighted", y, y_BN)
    assert (fit.C.value, fit.alpha.value) == pytest.approx((math.exp(ln_C), alpha), rel=1e-9)
    assert fit.regression.weight_N == pytest.approx(sigma**-2, rel=1e-12)
    assert abs(alpha - line(np.log(S), np.log(y))[1]) > 1e-3  # the weights matter here


def test_weighted_without_resamples_that_differ_at_every_size_has_no_variances() -> None:
    y, exact = noisy_points(0), 1 + 7 * S**-0.3
    one_flat = resamples_of(y, 0)
    one_flat[:, 2] = 1.0
    cases = [
        (y, None),
        (y, np.full((50, 7), np.nan)),
        (y, one_flat),
        (exact, np.tile(exact, (50, 1))),
    ]  # but for rounding
    for of, y_BN in cases:
        fit = fit_by("weighted", of, y_BN)
        assert (fit.status, fit.C.value, fit.alpha.value, fit.alpha.lo) == (Status.not_known, None, None, None)


# ----------------------------------------------------------------------------------------------------------- offset


@pytest.mark.parametrize("y", [-0.5 + 7 * S**-0.1, -0.05 + 50 * S**-0.2, 3 * S**0.1])
def test_offset_is_held_at_zero_where_it_would_be_negative(y: np.ndarray) -> None:
    fit = fit_by("offset", y)
    assert fit.status is Status.at_bound
    assert fit.E.value == 0
    ln_C, alpha = line(np.log(S), np.log(y))
    assert (fit.C.value, fit.alpha.value) == pytest.approx((math.exp(ln_C), alpha), rel=1e-10)


# ----------------------------------------------------------------------------------------------------------- robust


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("points", [with_an_outlier, noisy_points])
def test_robust_equals_lines_reweighted_by_hubers_rule(seed: int, points: Any) -> None:
    y = points(seed)
    scale = scale_about_the_median_line(np.log(S), np.log(y))
    ln_C, alpha = huber_line(np.log(S), np.log(y), scale)
    fit = fit_by("robust", y)
    assert fit.regression.scale == pytest.approx(scale, rel=1e-9)
    assert (fit.C.value, fit.alpha.value) == pytest.approx((math.exp(ln_C), alpha), rel=1e-6)


def test_robust_is_the_line_of_the_majority_when_that_is_exact_and_of_three_sizes_the_plain_one() -> None:
    """Of three sizes two lie on the median line, whose scale is 0 but for rounding."""
    y = 7 * S**-0.1
    y[OUTLIER] *= 1 + 1e-9  # the scale is rounding, the loss is nearly that of absolute residuals
    fit = fit_by("robust", y)
    assert (fit.C.value, fit.alpha.value) == pytest.approx((7, 0.1), rel=1e-8)
    for seed in range(8):
        robust, plain = (fit_by(method, noisy_points(seed, 0.05)[:3]) for method in ("robust", "ols"))
        assert (robust.alpha, robust.C) == (plain.alpha, plain.C)


# --------------------------------------------------------------------------------------- what every method promises


def test_the_criteria_equal_their_closed_forms() -> None:
    """That of an offset beside that of a power law stands in test_form.py."""
    y = noisy_points(3)
    y_BN = resamples_of(y, 3)
    ln_S, ln_y, n = np.log(S), np.log(y), 7
    for method, w in (("ols", np.ones(n)), ("weighted", 1 / np.log(y_BN).std(axis=0, ddof=1))):
        ln_C, alpha = line(ln_S, ln_y, w)
        squares = np.sum(w**2 * (ln_y - ln_C + alpha * ln_S) ** 2)
        # Twice the negative log likelihood of variances s^2 sigma^2, s^2 at its best, less n ln 2 pi and n.
        deviance = n * math.log(squares / n) - 2 * np.log(w).sum()
        fit = fit_by(method, y, y_BN)
        assert (fit.aic, fit.bic) == pytest.approx((deviance + 4, deviance + 2 * math.log(n)), rel=1e-8), method
    robust = fit_by("robust", y)
    assert (robust.status, robust.aic, robust.bic) == (None, None, None)


def test_r2_is_that_of_the_weighted_squares() -> None:
    y = noisy_points(4)
    y_BN = resamples_of(y, 4)
    w = 1 / np.log(y_BN).std(axis=0, ddof=1) ** 2
    ln_C, alpha = line(np.log(S), np.log(y), np.sqrt(w))
    left = np.average((np.log(y) - ln_C + alpha * np.log(S)) ** 2, weights=w)
    about = np.average((np.log(y) - np.average(np.log(y), weights=w)) ** 2, weights=w)
    assert fit_by("weighted", y, y_BN).r2.value == pytest.approx(1 - left / about, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "points", [noisy_points(0), -0.5 + 7 * S**-0.1, -noisy_points(5)], ids=["inside", "at the bound", "negative"]
)
def test_the_params_reproduce_the_fit_even_after_json(method: str, points: np.ndarray) -> None:
    fit = fit_power_law(S, points, resamples_of(points, 0), Method(method), signed=True)
    written = json.dumps(fit.record(), allow_nan=False)
    expected = {"C": fit.C.value, "alpha": fit.alpha.value, "E": fit.E.value or 0.0}
    assert reproduce(json.loads(written)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "y",
    [
        noisy_points(7),
        1 + 7 * S**-0.3,
        -0.5 + 7 * S**-0.1,
        noisy_points(7)[:4],
        noisy_points(7)[:3],
        np.full(7, 0.5),
        np.array([3.0, 2.0, math.nan, 1.0]),
        np.array([3.0, 2.0, 0.0, 1.0]),
    ],
    ids=["noisy", "exact offset", "convex", "four", "three", "flat", "nan", "zero"],
)
@pytest.mark.parametrize("documents", ["none", "some", "too few"])
def test_every_field_is_a_number_or_none_and_can_be_written(method: str, y: np.ndarray, documents: str) -> None:
    y_BN = None if documents == "none" else resamples_of(y, 7, 30 if documents == "some" else 5)
    fit = fit_by(method, y, y_BN)
    told = fit.columns() | fit.record()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert (fit.alpha.value is None) == (fit.status not in (None, Status.at_bound, Status.no_trend))


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_sizes_does_not_matter(method: str) -> None:
    y = with_an_outlier(8) if method == "robust" else noisy_points(8)
    y_BN = resamples_of(y, 8)
    order = np.random.default_rng(8).permutation(7)
    fit, again = fit_by(method, y, y_BN), fit_power_law(S[order], y[order], y_BN[:, order], Method(method))
    for name, value in (fit.columns() | fit.record()).items():
        if isinstance(value, float):
            assert (again.columns() | again.record())[name] == pytest.approx(value, rel=1e-8), name
    assert again.residuals_ln == pytest.approx(np.array(fit.residuals_ln)[order], abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_the_backtest_error_is_that_of_a_fit_to_the_others(method: str) -> None:
    y = noisy_points(9)
    y_BN = resamples_of(y, 9)
    rest = reproduce(fit_by(method, y[:-1], y_BN[:, :-1]).record())
    predicted = rest["E"] + rest["C"] * S[-1] ** -rest["alpha"]
    assert fit_by(method, y, y_BN).backtest_error == pytest.approx(predicted / y[-1] - 1, rel=1e-6)


# ----------------------------------------------------------------------------------------------------------- refits


def test_the_refits_at_the_bound_may_leave_it() -> None:
    y = 7 * S**-0.1 * np.exp(0.02 * np.random.default_rng(4).normal(size=7))
    y_BN = y * np.exp(0.02 * np.random.default_rng(5).normal(size=(20, 7)))
    fit = fit_by("offset", y, y_BN)
    assert fit.status is Status.at_bound
    alphas = [fit_by("offset", row).alpha.value for row in y_BN]
    assert fit.alpha_sds[0] == pytest.approx(np.std(alphas, ddof=1), rel=1e-6)
