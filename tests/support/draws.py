"""How often an interval holds the truth: what may come by chance, of a few draws and of hundreds."""

from scipy.stats import binom


def fewest(n_draws: int) -> int:
    """The fewest of `n_draws` intervals of 95 % that hold the truth, but for 1 set of draws in 1,000."""
    return int(binom.ppf(0.001, n_draws, 0.95))


def most(n_draws: int) -> int:
    """The most of `n_draws` tests at 5 % that doubt what is true, but for 1 set of draws in 1,000."""
    return int(binom.isf(0.001, n_draws, 0.05))


def holds(lo: float | None, truth: float, hi: float | None) -> bool:
    """Whether an interval holds a truth; an end that the data do not set leaves its side open."""
    return (lo is None or lo <= truth) and (hi is None or truth <= hi)


def inside(lo: float | None, truth: float, hi: float | None) -> bool:
    """Whether an interval whose ends must both be known holds a truth."""
    return lo <= truth <= hi
