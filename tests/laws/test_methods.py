"""The four methods against plainer ways, the intervals against simulated laws, and the choice between two forms."""

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

from rbpx.laws.names import Method
from rbpx.laws.power.law import PowerLaw, fit_power_law, reproduce
from rbpx.laws.power.uncertainty import r2_interval
from rbpx.laws.prediction.verdict import SupportedForm, compare_forms
from rbpx.status import Status

S = np.array([3_000, 8_000, 25_000, 80_000, 200_000, 1_000_000, 3_000_000], dtype=float)
X = np.log(S) - np.log(S).mean()


def law(C: float, alpha: float, E: float = 0.0, sizes: Any = S) -> Any:
    return E + C * (sizes / 1e5) ** -alpha


def noisy(seed: int, scatter: float = 0.02, E: float = 0.0) -> Any:
    return law(3.0, 0.15, E) * np.exp(np.random.default_rng(seed).normal(0, scatter, len(S)))


def replicates(seed: int, y: Any, apart: Any = 0.01, shared: float = 0.01, n: int = 300) -> Any:
    """Replicates whose noise is in part that of each size, in part that of all."""
    rng = np.random.default_rng([seed, 7])
    return y * np.exp(rng.normal(0, apart, (n, len(y))) + rng.normal(0, shared, (n, 1)))


def alpha_of(fit: PowerLaw) -> float:
    assert fit.alpha.value is not None, fit.status
    return fit.alpha.value


# --------------------------------------------------------------------------------------------------------- one fit each


def test_weights_are_the_variances_over_the_documents() -> None:
    y = noisy(1)
    y_BN = replicates(1, y, apart=np.linspace(0.005, 0.08, 7))
    fit = fit_power_law(S, y, y_BN, Method.weighted)
    sigma = np.log(y_BN).std(axis=0, ddof=1)
    slope, intercept = np.polyfit(np.log(S), np.log(y), 1, w=1 / sigma)
    assert (alpha_of(fit), fit.C.value) == pytest.approx((-slope, math.exp(intercept)), rel=1e-8)
    assert alpha_of(fit) != pytest.approx(alpha_of(fit_power_law(S, y, y_BN)), rel=1e-3)


def test_an_exact_offset_is_recovered() -> None:
    fit = fit_power_law(S, law(2.0, 0.3, E=0.7), method=Method.offset)
    assert fit.status is None
    assert alpha_of(fit) == pytest.approx(0.3, rel=1e-6)
    assert fit.E.value == pytest.approx(0.7, rel=1e-6)
    assert fit.C.value == pytest.approx(2.0 * 1e5**0.3, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_offset_fit_is_the_least_of_many_searches(seed: int) -> None:
    y = noisy(seed, 0.01, E=1.0)

    def left(q: Any) -> Any:
        return np.log(q[2] + np.exp(q[0] - q[1] * X)) - np.log(y)

    searches = [
        least_squares(left, (1.0, alpha, share * y.min()), bounds=([-9, -4, 0], [9, 4, np.inf]), xtol=1e-14, ftol=1e-14)
        for alpha in (0.05, 0.2, 0.5, 1.0)
        for share in (0.1, 0.5, 0.95)
    ]
    best = min(searches, key=lambda found: found.cost)
    fit = fit_power_law(S, y, method=Method.offset)
    cost = sum(r**2 for r in fit.residuals_ln) / 2
    assert cost <= best.cost * (1 + 1e-9)
    assert alpha_of(fit) == pytest.approx(best.x[1], rel=1e-3)


def test_points_that_bend_the_other_way_have_no_offset() -> None:
    y = law(3.0, 0.15) * np.exp(-0.01 * X**2)
    offset, plain = fit_power_law(S, y, method=Method.offset), fit_power_law(S, y)
    assert offset.status is Status.at_bound
    assert offset.E.value == 0
    assert (alpha_of(offset), offset.C.value) == pytest.approx((alpha_of(plain), plain.C.value), rel=1e-9)


def test_one_model_that_lies_apart_moves_the_robust_law_little() -> None:
    y = noisy(2, 0.005)
    y[5] *= 1.5
    robust, plain = fit_power_law(S, y, method=Method.robust), fit_power_law(S, y)
    assert abs(alpha_of(robust) - 0.15) < 0.01 < abs(alpha_of(plain) - 0.15)


@pytest.mark.parametrize("seed", range(8))
def test_the_robust_law_of_three_sizes_is_the_plain_one(seed: int) -> None:
    """Two of three lie on the median line, whose scale is 0 but for rounding."""
    y = noisy(seed, 0.05)[:3]
    robust, plain = fit_power_law(S[:3], y, method=Method.robust), fit_power_law(S[:3], y)
    assert (robust.alpha, robust.C) == (plain.alpha, plain.C)


def test_the_robust_law_is_reweighted_least_squares() -> None:
    y = noisy(3, 0.05)
    fit = fit_power_law(S, y, method=Method.robust)
    limit = 1.345 * fit.regression.scale
    weight = np.ones(len(S))
    for _ in range(500):
        slope, level = np.polyfit(X, np.log(y), 1, w=np.sqrt(weight))
        residual = np.abs(np.log(y) - level - slope * X)
        weight = limit / np.maximum(residual, limit)
    assert alpha_of(fit) == pytest.approx(-slope, rel=1e-7)
    assert (fit.aic, fit.bic) == (None, None)


def test_criteria_of_three_methods_have_one_scale() -> None:
    y, n = noisy(4), len(S)
    y_BN = replicates(4, y)
    sigma = np.log(y_BN).std(axis=0, ddof=1)
    for method, p in ((Method.ols, 2), (Method.weighted, 2), (Method.offset, 3)):
        fit = fit_power_law(S, y, y_BN, method)
        weight = 1 / sigma**2 if method is Method.weighted else np.ones(n)
        ss = float(weight @ np.square(fit.residuals_ln))
        fitness = n * math.log(ss / n) - float(np.log(weight).sum())
        assert (fit.aic, fit.bic) == pytest.approx((fitness + 2 * p, fitness + p * math.log(n)), rel=1e-9)


@pytest.mark.parametrize("method", list(Method))
def test_a_fit_comes_out_again_from_what_it_carries(method: Method) -> None:
    y = noisy(5, E=0.5)
    fit = fit_power_law(S, y, replicates(5, y), method)
    params = json.loads(json.dumps(fit.record(), allow_nan=False))
    again = reproduce(params)
    said = {"C": fit.C.value, "alpha": fit.alpha.value, "E": fit.E.value or 0.0}
    assert again == pytest.approx(said, rel=1e-9)
    shuffled = [3, 1, 6, 0, 5, 2, 4]
    other = fit_power_law(S[shuffled], y[shuffled], replicates(5, y)[:, shuffled], method)
    assert alpha_of(other) == pytest.approx(alpha_of(fit), rel=1e-7)


@pytest.mark.parametrize(
    ("method", "y_BN", "status"),
    [
        (Method.weighted, None, Status.not_known),
        (Method.weighted, np.ones((50, 7)), Status.not_known),
        (Method.weighted, np.full((50, 7), np.nan), Status.not_known),
    ],
)
def test_weights_need_documents(method: Method, y_BN: Any, status: Status) -> None:
    fit = fit_power_law(S, noisy(6), y_BN, method)
    assert fit.status is status
    assert fit.alpha.value is None


def test_an_offset_needs_a_fourth_size() -> None:
    assert fit_power_law(S[:3], noisy(6)[:3], method=Method.offset).status is Status.too_few_sizes


@pytest.mark.parametrize("method", [Method.offset, Method.robust])
def test_refits_to_resamples_equal_one_fit_each(method: Method) -> None:
    y = noisy(7, 0.03, E=2.0)
    y_BN = replicates(7, y, apart=0.002, shared=0.01, n=25)
    fit = fit_power_law(S, y, y_BN, method)
    alphas = []
    for row in y_BN:
        if method is Method.robust:  # the scale is that of the fit, not of the resample
            limit, weight = 1.345 * fit.regression.scale, np.ones(7)
            for _ in range(300):
                slope, level = np.polyfit(X, np.log(row), 1, w=np.sqrt(weight))
                weight = limit / np.maximum(np.abs(np.log(row) - level - slope * X), limit)
            alphas.append(-slope)
        else:
            alphas.append(alpha_of(fit_power_law(S, row, method=method)))
    assert fit.alpha_sds[0] == pytest.approx(np.std(alphas, ddof=1), rel=2e-3)


# ------------------------------------------------------------------------------------------------------------ intervals


def test_a_prediction_is_less_certain_the_farther_it_reaches() -> None:
    fit = fit_power_law(S, noisy(8))
    said = [fit.predict(size) for size in (2e4, 3e6, 3e7, 3e9)]
    assert [p.beyond for p in said] == pytest.approx([1, 1, 10, 1000])
    widths = [math.log(p.hi / p.lo) for p in said if p.lo is not None and p.hi is not None]
    assert len(widths) == 4
    assert widths == sorted(widths)
    assert fit.predict(300.0).beyond == pytest.approx(10)


@pytest.mark.parametrize(("scatter", "apart", "limit"), [(0.05, 0.002, "models"), (0.0, 0.05, "text")])
def test_a_law_says_what_limits_it(scatter: float, apart: float, limit: str) -> None:
    """Five degrees of freedom leave room for chance: 17 of 20 laws say what limits them."""
    told = Counter()
    for seed in range(40):
        y = law(3.0, 0.15) * np.exp(np.random.default_rng(seed).normal(0, math.hypot(scatter, apart), 7))
        told[fit_power_law(S, y, replicates(seed, y, apart, 0.0)).limited_by] += 1
    assert told[limit] >= 34, told


# --------------------------------------------------------------------------------------------------------- which form


def test_a_power_law_is_told_where_every_offset_would_be_seen() -> None:
    choice = compare_forms(fit_power_law(S, noisy(9, 1e-5)), None)
    assert choice is not None
    assert choice.form is SupportedForm.power
    assert choice.E_hi is not None
    assert choice.E_hi < 0.05 * law(3.0, 0.15).min()


def test_the_interval_of_r2_is_one_function_at_any_r2() -> None:
    """It is exact below a million F and approximate above: no step between."""
    for n in (3, 4, 7, 10):
        below, above = (1 - (n - 2) / (F + n - 2) for F in (0.999e6, 1.001e6))
        for one, other in zip(r2_interval(below, n), r2_interval(above, n), strict=True):
            assert (1 - one) / (1 - other) == pytest.approx(1.002, rel=0.005)
        assert 0 < r2_interval(1 - 1e-14, n)[0] < 1


def test_there_is_no_choice_below_four_sizes_or_without_a_law_that_falls() -> None:
    assert compare_forms(fit_power_law(S[:3], noisy(1)[:3])) is None
    assert compare_forms(fit_power_law(S, 1 / noisy(1))) is None
