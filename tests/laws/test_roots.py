"""Roots of many functions at once, against closed forms and scipy's search of one."""

import numpy as np
import pytest
from scipy.optimize import brentq

from rbpx.laws.numeric import roots


def test_roots_of_powers_are_those_of_arithmetic() -> None:
    power_R = np.array([1.0, 2.0, 3.0, 5.0, 9.0])
    found = roots(lambda x: x**power_R - 0.3, np.zeros(5), np.ones(5), 0.0)
    assert found == pytest.approx(0.3 ** (1 / power_R), rel=1e-15)


@pytest.mark.parametrize("flip", [1, -1])
def test_roots_of_steps_bends_and_oscillations_are_those_of_brentq(flip: int) -> None:
    functions = [
        lambda x: flip * np.tanh(1e4 * (x - 0.7123)),
        lambda x: flip * (np.exp(x) - 2),
        lambda x: flip * (np.sign(x - 0.25) * np.abs(x - 0.25) ** 0.1),
        lambda x: flip * (x**15 - 1e-6),
        lambda x: flip * (np.cos(20 * x) * np.exp(-x) - 0.2),
    ]
    ends = [(0.0, 1.0), (-40.0, 3.0), (0.0, 1.0), (0.0, 2.0), (0.0, 0.15)]
    lo, hi = np.array(ends).T
    found = roots(lambda x: np.array([f(v) for f, v in zip(functions, x, strict=True)]), lo, hi, 1e-13)
    assert found == pytest.approx(
        [brentq(f, *end, xtol=1e-13) for f, end in zip(functions, ends, strict=True)], abs=3e-13
    )


def test_a_root_at_an_end_is_found_and_no_functions_have_none() -> None:
    assert roots(lambda x: x - np.array([0.0, 1.0]), [0.0, 0.0], [1.0, 1.0], 1e-12) == pytest.approx([0, 1], abs=1e-12)
    assert roots(lambda x: x, [], [], 1e-12).shape == (0,)


def test_a_bracket_without_a_change_of_sign_is_refused() -> None:
    with pytest.raises(ValueError, match="same sign"):
        roots(lambda x: x - np.array([0.5, 2.0]), [0.0, 0.0], [1.0, 1.0], 1e-12)
