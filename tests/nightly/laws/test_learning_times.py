"""How often intervals of the tail of times hold the truth."""

from tests.support.coverage import of_tail


def test_intervals_of_a_tail_over_resampled_documents_hold_the_truth() -> None:
    assert of_tail(200) >= 0.85 * 200
