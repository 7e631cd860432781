"""The choice between a power law and the same law with an offset, on points made by either."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

from rbpx.laws.names import Method
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.prediction.verdict import NEGLIGIBLE, FormVerdict, SupportedForm, compare_forms

S = np.logspace(6, 10, 7)
OFFSET = 1.7 + 200 * S**-0.3
PURE = 700 * S**-0.3


def chosen(law: np.ndarray, scatter: float, seed: int, sizes: np.ndarray = S) -> FormVerdict:
    y = law * np.exp(scatter * np.random.default_rng(seed).normal(size=len(sizes)))
    choice = compare_forms(fit_power_law(sizes, y))
    return choice


@pytest.mark.parametrize("seed", range(5))
def test_a_power_law_is_called_for_where_the_offset_is_bounded_near_zero(seed: int) -> None:
    choice = chosen(PURE, 1e-3, seed)
    assert choice.form is SupportedForm.power
    assert choice.E_lo == 0
    assert 0 <= choice.E_hi <= 0.05 * PURE.min() * 1.01
    assert best_squares_with(0.05 * PURE.min(), PURE) > 20 * 7 * 1e-3**2  # such an offset would be seen


@pytest.mark.parametrize("scatter", [1e-3, 5e-3, 1e-2, 3e-2])
def test_the_form_says_what_the_interval_of_the_offset_says(scatter: float) -> None:
    for law in (PURE, OFFSET - 1.6, 0.02 + PURE):
        y = law * np.exp(scatter * np.random.default_rng(3).normal(size=7))
        choice, offset = compare_forms(fit_power_law(S, y)), fit_power_law(S, y, None, Method.offset)
        E_lo, E_hi = offset.E.lo, offset.E.hi
        assert (choice.E, choice.E_lo, choice.E_hi) == (offset.E.value, E_lo, E_hi)
        calls_for_offset = E_lo is not None and E_lo > 0
        bounded = E_hi is not None and E_hi <= NEGLIGIBLE * y.min()
        expected = (
            SupportedForm.offset if calls_for_offset else SupportedForm.power if bounded else SupportedForm.either
        )
        assert choice.form is expected


def best_squares_with(E: float, y: np.ndarray) -> float:
    """The smallest sum of squares in ln y of a law with this offset."""
    x = np.log(S) - np.log(S).mean()

    def residual(theta: np.ndarray) -> Any:
        return np.log(E + np.exp(theta[0] + theta[1] * x)) - np.log(y)

    return 2 * float(least_squares(residual, np.polyfit(x, np.log(y - E), 1)[::-1], xtol=1e-15, ftol=1e-15).cost)


def test_the_differences_of_the_criteria_equal_their_closed_forms() -> None:
    y = (1.7 + 50 * S**-0.2) * np.exp(0.01 * np.random.default_rng(4).normal(size=7))
    choice = compare_forms(fit_power_law(S, y))
    gain = 7 * math.log(best_squares_with(0.0, y) / best_squares_with(choice.E, y))
    differences = (choice.aic_power_less_offset, choice.bic_power_less_offset)
    assert differences == pytest.approx((gain - 2, gain - math.log(7)), rel=1e-5)
    assert best_squares_with(choice.E, y) < min(best_squares_with(share * choice.E, y) for share in (0.99, 1.01))


def test_an_offset_that_would_be_negative_is_not_called_for() -> None:
    choice = compare_forms(fit_power_law(S, -0.5 + 7 * S**-0.1))
    assert choice.form is not SupportedForm.offset
    assert (choice.E, choice.E_lo) == (0, 0)
    assert choice.aic_power_less_offset == pytest.approx(-2)
    assert choice.bic_power_less_offset == pytest.approx(-math.log(7))


def test_noisy_documents_can_leave_open_what_the_points_alone_would_decide() -> None:
    y = (0.05 + 7 * S**-0.1) * np.exp(1e-5 * np.random.default_rng(5).normal(size=7))
    tilt = np.random.default_rng(6).normal(size=(60, 1)) * np.linspace(-1, 1, 7) ** 2
    power = fit_power_law(S, y)
    alone, noisy = compare_forms(power), compare_forms(power, y * np.exp(0.05 * tilt))
    assert (alone.form, noisy.form) == (SupportedForm.offset, SupportedForm.either)


def test_a_negative_term_is_judged_by_its_size() -> None:
    mirrored = compare_forms(fit_power_law(S, -OFFSET * (1 + 1e-4 * np.cos(np.arange(7))), signed=True))
    assert mirrored == compare_forms(fit_power_law(S, OFFSET * (1 + 1e-4 * np.cos(np.arange(7)))))
    assert mirrored.form is SupportedForm.offset


@pytest.mark.parametrize("y", [OFFSET[:3], [1.0, math.nan, 2.0, 3.0], [2.0] * 4], ids=["three", "nan", "flat"])
def test_there_is_no_choice_without_a_law_or_with_three_sizes(y: Any) -> None:
    assert compare_forms(fit_power_law(S[: len(y)], y)) is None
