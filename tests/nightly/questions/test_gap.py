"""How often the intervals of a gap hold the truth, over hundreds of pairs of laws."""

import pytest

from tests.support import drawn_answers
from tests.support.draws import plausible


@pytest.mark.parametrize("text", [False, True], ids=["models", "models and text"])
def test_the_intervals_hold_the_truth(text: bool) -> None:
    held = drawn_answers.of_gaps(300, text)
    assert plausible(held["delta"], 300)
    assert plausible(held["ratio"], 300)
    assert held["closed"] >= 0.92 * 300
