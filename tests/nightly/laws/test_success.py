"""How often intervals of success hold a held-out model, whether or not the steps are right."""

import pytest

from tests.support.coverage import of_success


@pytest.mark.parametrize("n", [5, 8, 12])
@pytest.mark.parametrize("kind", ["plain", "offset in step 1", "bent step 1", "lower end", "skewed step 2"])
def test_intervals_cover_whether_or_not_the_steps_are_right(kind: str, n: int) -> None:
    assert of_success(200, kind, n) >= 0.91 * 200
