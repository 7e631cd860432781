"""How often an interval holds the truth: a few draws in `make slow`, all of them in `make long`."""

import pytest
from scipy.stats import binom


def few_or_all(few: int, many: int) -> pytest.MarkDecorator:
    """Run a test with `n_draws` as both; the second is `long`."""
    return pytest.mark.parametrize("n_draws", [few, pytest.param(many, marks=pytest.mark.long)])


def plausible(hits: float, n_draws: int, level: float = 0.95) -> bool:
    """Whether intervals of this level hold the truth so many times of `n_draws`; fails by chance 1 time of 100."""
    return bool(binom.ppf(0.005, n_draws, level) <= hits <= binom.ppf(0.995, n_draws, level))
