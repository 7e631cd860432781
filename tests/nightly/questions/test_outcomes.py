"""How often intervals of laws from outcomes hold the truth, over hundreds of drawn sets."""

import pytest

from tests.support import drawn_answers


@pytest.mark.parametrize(
    ("lengths", "r", "scatter"),
    [
        ((5,), 0.0, 0.0),
        ((1, 2, 5, 10), 0.0, 0.03),
        ((2,), 0.0, 0.1),
        ((1, 2, 5, 10), 0.08, 0.0),
        ((1, 2, 5, 10), 0.08, 0.05),
    ],
    ids=["sequences", "small scatter", "large scatter", "fitted r", "fitted r and scatter"],
)
def test_the_intervals_hold_the_truth(lengths: tuple[int, ...], r: float, scatter: float) -> None:
    held = drawn_answers.of_outcomes(300, lengths, r, scatter)
    assert 270 <= held["alpha"] <= 298
    assert 270 <= held["rbp"] <= 298
    assert not r or 270 <= held["r"] <= 299


def test_an_interval_over_documents_holds_the_truth_where_one_of_tokens_does_not() -> None:
    held = drawn_answers.of_outcomes_of_documents(200)
    assert 180 <= held["documents"] <= 198
    assert held["tokens"] < 150
