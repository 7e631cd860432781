"""How often intervals of a law over few documents hold the truth."""

import pytest

from tests.support.coverage import of_few_documents
from tests.support.draws import plausible


@pytest.mark.parametrize("scatter", [0.0, 0.02])
@pytest.mark.parametrize("n_documents", [3, 5, 10, 20, 100])
def test_intervals_over_few_documents_hold_the_truth_95_times_of_100(n_documents: int, scatter: float) -> None:
    held = of_few_documents(300, n_documents, scatter)
    assert all(plausible(times, 300) or times > 0.95 * 300 for times in held.values()), held
    assert all(times <= 0.99 * 300 for times in held.values()), held


@pytest.mark.parametrize(("n_documents", "sd_ln_length"), [(5, 1.0), (20, 1.5), (20, 2.0), (50, 1.5)])
def test_intervals_over_documents_of_unequal_length_do_too(n_documents: int, sd_ln_length: float) -> None:
    """By their number instead of their effective number they hold it 79 to 94 times of 100."""
    held = of_few_documents(300, n_documents, 0.0, sd_ln_length)
    assert all(plausible(times, 300) or times > 0.95 * 300 for times in held.values()), held
