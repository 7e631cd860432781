"""How often the interval of what a change is worth holds it."""

import pytest

from rbpx.laws.families.multiplier import Offset
from tests.support.coverage import of_multiplier


@pytest.mark.parametrize(
    ("E", "alpha", "scatter", "n"),
    [(1.5, 0.2, 0.003, 7), (1.5, 0.2, 0.01, 5), (1.0, 0.2, 0.02, 10), (0.0, 0.12, 0.01, 7)],
)
@pytest.mark.parametrize("offset", [Offset.shared, Offset.free])
def test_coverage_of_two_hundred_draws(E: float, alpha: float, scatter: float, n: int, offset: Offset) -> None:
    assert 0.91 * 200 <= of_multiplier(200, E, alpha, scatter, n, offset, seed=7) <= 0.985 * 200
