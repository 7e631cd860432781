"""How often the test of a law against its own points doubts true laws."""

import numpy as np
import pytest

from rbpx.laws.intervals.misfit import misfit

X = np.log([1.2e6, 4e6, 1.9e7, 8.5e7, 3.0e8, 1.2e9, 6.4e9])
LINE = np.column_stack([np.ones(7), X - X.mean()])


@pytest.mark.parametrize("n", [4, 5, 7])
def test_of_true_laws_one_in_twenty_is_doubted_at_any_number_of_sizes(n: int) -> None:
    rng, draws = np.random.default_rng(n), 1500
    tests = [misfit(X[:n], rng.normal(size=n), LINE[:n]) for _ in range(draws)]
    doubted = np.mean([bool(test.found) for test in tests if test is not None])
    assert 0.05 - 3 * 0.0056 < doubted < 0.05 + 3 * 0.0056  # three standard deviations of a share of 1,500
