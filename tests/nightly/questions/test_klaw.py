"""How often the interval of the law in k holds the truth, over hundreds of drawn texts."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.support import drawn_answers
from tests.support.drawn_answers import curved, power
from tests.support.draws import plausible


@pytest.mark.parametrize("ranks_of", [power, curved])
def test_the_interval_holds_the_slope_of_all_text(ranks_of: Callable[[np.ndarray], np.ndarray]) -> None:
    held = drawn_answers.of_laws_in_k(400, ranks_of)
    assert plausible(held["documents"], 400)
    assert held["documents"] >= 0.93 * 400
    assert ranks_of is curved or held["scatter"] < 0.8 * 400


def test_without_documents_nested_counts_give_the_interval() -> None:
    assert plausible(drawn_answers.of_nested_counts(400), 400)
