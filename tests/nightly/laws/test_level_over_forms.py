"""How often the interval of the size at which a level is reached holds that of a new model."""

import pytest

from benchmarks.prediction_coverage import Truth
from tests.support.coverage import of_size_at_a_level


@pytest.mark.parametrize("n", [5, 7, 10])
@pytest.mark.parametrize("E", [0.0, 0.3, 1.0])
def test_the_interval_holds_the_size_of_a_new_model_at_any_offset(n: int, E: float) -> None:
    assert of_size_at_a_level(500, Truth(0.12, n, E, 0.01)) >= 0.92 * 500
