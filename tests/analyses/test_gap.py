"""The gap between two texts against closed forms and simulated pairs of laws."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import linregress

from rbpx.analyses.gaps.law import fit_gap
from rbpx.status import Status

S = np.array([1e4, 1e5, 1e6, 1e7, 1e8])


def law(C: float, alpha: float) -> Any:
    return C * S**-alpha


def test_the_gap_of_two_exact_laws_is_the_difference_of_their_exponents() -> None:
    gap = fit_gap(S, law(9.0, 0.10), law(4.0, 0.06))
    assert (gap.swapped, gap.fit.status) == (False, Status.ok)
    assert gap.S_ref == pytest.approx(1e6)
    assert gap.delta == pytest.approx(0.06 - 0.10, rel=1e-9)
    assert gap.ratio == pytest.approx(9 / 4 * 1e6**-0.04, rel=1e-9)
    assert gap.verdict == "closes"
    assert gap.ln_S_closed is not None
    assert math.exp(gap.ln_S_closed) == pytest.approx((9 / 4) ** (1 / 0.04), rel=1e-6)


def test_a_is_the_text_with_the_higher_loss_whatever_the_order() -> None:
    one, other = fit_gap(S, law(9.0, 0.10), law(4.0, 0.06)), fit_gap(S, law(4.0, 0.06), law(9.0, 0.10))
    assert other.swapped
    assert (other.delta, other.ratio, other.ln_S_closed) == pytest.approx((one.delta, one.ratio, one.ln_S_closed))


def test_a_gap_that_opens_never_closes() -> None:
    gap = fit_gap(S, law(9.0, 0.05), law(4.0, 0.10))
    assert gap.verdict == "opens"
    assert (gap.ln_S_closed, gap.ln_S_closed_lo, gap.ln_S_closed_hi) == (None, None, None)


def test_the_numbers_are_those_of_a_line_through_the_logarithms_of_the_ratios() -> None:
    rng = np.random.default_rng(1)
    a, b = law(9.0, 0.10) * np.exp(rng.normal(0, 0.02, 5)), law(4.0, 0.06) * np.exp(rng.normal(0, 0.02, 5))
    line = linregress(np.log(S / 1e6), np.log(a / b))
    gap = fit_gap(S, a, b)
    assert (gap.delta, gap.fit.r2) == pytest.approx((line.slope, line.rvalue**2), rel=1e-9)
    assert gap.ratio == pytest.approx(math.exp(line.intercept), rel=1e-9)


def test_what_a_model_does_on_both_texts_drops_out() -> None:
    wild = np.exp(np.random.default_rng(2).normal(0, 0.5, 5))
    gap = fit_gap(S, law(9.0, 0.10) * wild, law(4.0, 0.06) * wild)
    assert gap.delta == pytest.approx(-0.04, rel=1e-9)


@pytest.mark.parametrize("bad", [0.0, math.inf, math.nan])
def test_a_loss_without_a_ratio_is_a_status(bad: float) -> None:
    a = law(9.0, 0.1)
    a[2] = bad
    gap = fit_gap(S, a, law(4.0, 0.06))
    assert gap.fit.status is Status.not_positive
    assert (gap.delta, gap.ratio, gap.verdict) == (None, None, None)


@pytest.mark.parametrize("text", [False, True], ids=["models", "models and text"])
def test_the_intervals_hold_the_truth(text: bool) -> None:
    """Three hundred pairs of laws: exponent, ratio, and the size at which the gap is closed."""
    delta = ratio = closed = 0
    true_ratio, true_closed = 9 / 4 * 1e6**-0.04, math.log(9 / 4) / 0.04
    for seed in range(300):
        rng = np.random.default_rng(seed)
        a = law(9.0, 0.10) * np.exp(rng.normal(0, 0.01, 5))
        b = law(4.0, 0.06) * np.exp(rng.normal(0, 0.01, 5))
        resampled: tuple[Any, ...] = ()
        if text:
            a, b = (y * np.exp(rng.normal(0, 0.01) + rng.normal(0, 0.005, 5)) for y in (a, b))
            resampled = tuple(
                y * np.exp(rng.normal(0, 0.01, (200, 1)) + rng.normal(0, 0.005, (200, 5))) for y in (a, b)
            )
        gap = fit_gap(S, a, b, *resampled)
        assert gap.delta_lo is not None
        assert gap.delta_hi is not None
        assert gap.ratio_lo is not None
        assert gap.ratio_hi is not None
        delta += gap.delta_lo <= -0.04 <= gap.delta_hi
        ratio += gap.ratio_lo <= true_ratio <= gap.ratio_hi
        lo, hi = gap.ln_S_closed_lo, gap.ln_S_closed_hi
        closed += (lo is None or lo <= true_closed) and (hi is None or true_closed <= hi)
    assert 275 <= delta <= 298
    assert 275 <= ratio <= 298
    assert 275 <= closed <= 298
