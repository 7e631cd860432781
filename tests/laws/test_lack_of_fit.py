"""Curvature of residuals: against numpy polynomials, textbook t, and brute-force draws."""

import math

import numpy as np
import pytest
from scipy.stats import t as student_t

from rbpx.laws.intervals.lack_of_fit import curvature, curvature_of_groups

LN_S = np.log([1.2e6, 4e6, 1.9e7, 8.5e7, 3.0e8, 1.2e9, 6.4e9])


def bent(rng: np.random.Generator, q: float = 0.0, scatter: float = 0.01) -> np.ndarray:
    x = LN_S - LN_S.mean()
    return 1.0 - 0.1 * x + q * x**2 + scatter * rng.normal(size=len(x))


def test_curvature_is_the_quadratic_coefficient_with_the_textbook_interval() -> None:
    ln_y = bent(np.random.default_rng(1), q=0.003)
    coefficient, covariance = np.polyfit(LN_S, ln_y, 2, cov=True)  # scaled by the residuals' variance, dof = n - 3
    half = student_t.ppf(0.975, 4) * math.sqrt(covariance[0, 0])
    found = curvature(LN_S, ln_y)
    assert found.value == pytest.approx(coefficient[0], rel=1e-6)
    assert found.ends == pytest.approx((coefficient[0] - half, coefficient[0] + half), rel=1e-5)


def test_too_few_sizes_have_no_interval_and_then_no_curvature() -> None:
    three = curvature(LN_S[:3], [1.0, 0.8, 0.7])
    assert three.value == pytest.approx(np.polyfit(LN_S[:3], [1.0, 0.8, 0.7], 2)[0])
    assert three.ends is None
    assert curvature(LN_S[:2], [1.0, 0.8]).value is None
    assert curvature(LN_S[[0, 0, 1, 1]], [1.0, 1.1, 0.8, 0.7]).value is None  # two sizes, each twice


def test_an_exact_power_law_has_no_curvature() -> None:
    for alpha in (0.013, 0.1, 0.31):
        ln_y = math.log(7) - alpha * LN_S
        assert curvature(LN_S, ln_y).ends == (0.0, 0.0)


def test_points_that_scatter_together_count_by_their_groups() -> None:
    rng, group = np.random.default_rng(5), np.repeat(np.arange(6), 3)
    x = np.sort(rng.normal(size=18))
    y = 0.3 * x**2 + 0.1 * (rng.normal(size=6)[group] + rng.normal(size=18))
    found, J = curvature_of_groups(x, y, group), np.column_stack([np.ones(18), x, x**2])
    theta = np.linalg.solve(J.T @ J, J.T @ y)
    meat = np.zeros((3, 3))
    for g in range(6):
        score = sum(J[i] * (y[i] - J[i] @ theta) for i in range(18) if group[i] == g)
        meat += np.outer(score, score)
    inverse = np.linalg.inv(J.T @ J)
    half = student_t.ppf(0.975, 3) * math.sqrt((inverse @ meat @ inverse)[2, 2] * 6 / 3)
    assert found.value == pytest.approx(theta[2], rel=1e-9)
    assert found.ends == pytest.approx((theta[2] - half, theta[2] + half), rel=1e-9)
    assert curvature_of_groups(x, y, group % 3).ends is None
