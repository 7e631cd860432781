"""How often the interval of a mean exponent holds the truth: a thousand draws of each number of families and texts."""

import pytest

from tests.support.means import over_common_models, over_families_and_texts


def test_the_interval_of_the_mean_holds_that_of_other_families_and_texts() -> None:
    assert sum(over_families_and_texts(1000)) >= 900


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("n_families", "n_texts"), [(1, 3), (1, 6), (4, 1), (4, 3)])
def test_what_models_of_a_size_have_in_common_is_in_the_interval_of_the_mean(
    n_families: int, n_texts: int, correlation: float
) -> None:
    covered, alone = over_common_models(n_families, n_texts, correlation, 1000)
    assert sum(covered) >= 900
    if (n_families, n_texts, correlation) == (1, 3, 0.9):
        assert sum(alone) < 650
