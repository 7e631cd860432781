"""What a size law says about a size that was not measured."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import t as student_t

from rbpx.laws.names import Method
from rbpx.laws.power.law import PowerLaw, fit_power_law

S = np.logspace(6, 10, 7)
METHODS = [method.value for method in Method]
RNG = np.random.default_rng(0)
Y = (1.7 + 50 * S**-0.2) * np.exp(0.01 * RNG.normal(size=7))
Y_BN = Y * np.exp(0.01 * RNG.normal(size=(60, 7)) + 0.02 * RNG.normal(size=(60, 1)))


def fit_by(method: str, sign: int = 1) -> PowerLaw:
    return fit_power_law(S, sign * Y, sign * Y_BN, Method(method), signed=True)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1e3, 1e6, 3e8, 1e10, 1e12])
def test_a_prediction_is_the_law_at_that_size(method: str, size: float) -> None:
    fit = fit_by(method)
    there = fit.predict(size)
    assert there.S == size
    assert there.y == pytest.approx((fit.E.value or 0.0) + fit.C.value * size**-fit.alpha.value, rel=1e-10)
    assert there.lo < there.y < there.hi


def test_the_interval_without_documents_is_that_of_a_new_point_on_a_line() -> None:
    x, ln_y, size = np.log(S), np.log(Y), 1e12
    (slope, intercept), residual = np.polyfit(x, ln_y, 1), np.polyfit(x, ln_y, 1, full=True)[1]
    at = math.log(size)
    unit = 1 + 1 / 7 + (at - x.mean()) ** 2 / np.sum((x - x.mean()) ** 2)
    half = student_t.ppf(0.975, 5) * math.sqrt(residual[0] / 5 * unit)
    there = fit_power_law(S, Y).predict(size)
    expected = [math.exp(intercept + slope * at + side * half) for side in (-1, 1)]
    assert [there.lo, there.hi] == pytest.approx(expected, rel=1e-9)


def test_the_interval_of_a_law_with_an_offset_follows_from_derivatives_taken_by_differences() -> None:
    x, size = np.log(S) - np.log(S).mean(), 1e12

    def ln_law(theta: np.ndarray, at: Any) -> Any:
        return np.log(theta[2] + np.exp(theta[0] - theta[1] * at))

    found = least_squares(lambda theta: ln_law(theta, x) - np.log(Y), [1.0, 0.2, 1.5], jac="3-point", x_scale="jac")
    at = math.log(size) - np.log(S).mean()
    gradient = np.array([(ln_law(found.x + step, at) - ln_law(found.x - step, at)) / 2e-5 for step in 1e-5 * np.eye(3)])
    unit = 1 + gradient @ np.linalg.inv(found.jac.T @ found.jac) @ gradient
    half = student_t.ppf(0.975, 4) * math.sqrt(2 * found.cost / 4 * unit)
    there = fit_power_law(S, Y, None, Method.offset).predict(size)
    assert there.y == pytest.approx(math.exp(ln_law(found.x, at)), rel=1e-4)
    assert math.log(there.hi / there.lo) / 2 == pytest.approx(half, rel=1e-3)


@pytest.mark.parametrize(
    ("size", "times"), [(2e10, 2), (1e13, 1000), (5e5, 2), (1e3, 1000), (1e6, 1), (5e7, 1), (1e10, 1)]
)
def test_a_size_outside_says_how_many_times(size: float, times: float) -> None:
    assert fit_by("ols").predict(size).beyond == pytest.approx(times, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_negative_term_is_predicted_negative_with_its_ends_in_order(method: str) -> None:
    there, mirrored = fit_by(method, -1).predict(1e12), fit_by(method).predict(1e12)
    assert (there.y, there.lo, there.hi) == (-mirrored.y, -(mirrored.hi or 0), -(mirrored.lo or 0))
    assert there.lo < there.y < there.hi


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_that_knows_no_interval_predicts_none(method: str) -> None:
    """Five replicates are too few to say anything, and enough for weights: weighted stands back altogether."""
    fit = fit_power_law(S, Y, Y_BN[:5], Method(method))
    if method == "weighted":
        assert fit.alpha.value is None
        return
    there = fit.predict(1e12)
    assert (there.lo, there.hi) == (None, None)
    assert there.y > 0


def test_a_fit_without_numbers_predicts_nothing() -> None:
    with pytest.raises(ValueError, match="too_few_sizes"):
        fit_power_law(S[:2], Y[:2]).predict(1e12)


@pytest.mark.parametrize("size", [0.0, -1e9, math.nan])
def test_a_size_that_is_none_is_a_mistake_of_the_caller(size: float) -> None:
    with pytest.raises(ValueError, match="nothing to predict"):
        fit_by("ols").predict(size)
