"""P values of fitted numbers against scipy's, against their own intervals, and Holm's by its definition."""

import numpy as np
import pytest
from scipy.stats import linregress

from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.power.uncertainty import Uncertainty, holm, p_of_zero

S = np.array([1e4, 1e5, 1e6, 1e7, 1e8])
OF_ALPHA = np.array([0.0, 1.0])


def p_of(fit: PowerLaw) -> float:
    return p_of_zero(fit.alpha.value, OF_ALPHA, fit.uncertainty)


@pytest.mark.parametrize("alpha", [0.0, 0.002, 0.03])
def test_without_documents_it_is_the_t_test_of_a_line(alpha: float) -> None:
    y = 3 * S**-alpha * np.exp(np.random.default_rng(4).normal(0, 0.02, 5))
    assert p_of(fit_power_law(S, y)) == pytest.approx(linregress(np.log(S), np.log(y)).pvalue, rel=1e-6)


def test_it_is_below_5_percent_exactly_where_the_interval_leaves_out_zero() -> None:
    below = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = 3 * S**-0.01 * np.exp(rng.normal(0, 0.01) * np.log(S / 1e6) / 5 + rng.normal(0, 0.02, 5))
        y_BN = y * np.exp(rng.normal(0, 0.01, (100, 1)) * np.log(S / 1e6) / 5 + rng.normal(0, 0.01, (100, 5)))
        fit = fit_power_law(S, y, y_BN)
        about = fit.uncertainty
        lo, hi = about.interval(fit.alpha.value, OF_ALPHA)
        below.append(p_of(fit) < 0.05)
        assert below[-1] == (not lo <= 0 <= hi)
    assert 0 < sum(below) < 60


def test_points_on_a_line_are_certain_and_a_flat_line_says_nothing() -> None:
    about = Uncertainty(np.zeros((2, 2)), np.zeros(2), np.eye(2), 0.0, 0.0, 3, False)
    assert p_of_zero(0.1, OF_ALPHA, about) == 0.0
    assert p_of_zero(0.0, OF_ALPHA, about) == 1.0


def test_holm_multiplies_by_the_tests_that_are_left_and_keeps_the_order() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.4, 0.9]) == pytest.approx([1.0, 1.0, 1.0])
    assert holm([]) == []
