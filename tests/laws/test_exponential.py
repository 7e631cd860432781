"""Sums of exponentials against SciPy's, in its range and beyond that of a float."""

import numpy as np
import pytest
from scipy.special import logsumexp

from rbpx.laws.numeric import ln_sum_exp


@pytest.mark.parametrize("axis", [0, -1])
def test_sums_of_exponentials_are_those_of_scipy(axis: int) -> None:
    exponent = np.random.default_rng(0).normal(0, 400, (7, 50))
    exponent[3] = -np.inf  # a row of zeros
    exponent[:, 4] = -np.inf
    expected = logsumexp(exponent, axis=axis, keepdims=True)
    np.testing.assert_allclose(ln_sum_exp(exponent, axis), expected, rtol=1e-14)
