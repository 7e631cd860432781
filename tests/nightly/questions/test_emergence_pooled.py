"""How often the intervals of the pooled and the joint law of emergence hold the truth: 400 draws each."""

import pytest

from tests.support.draws import plausible
from tests.support.windows import joint_intervals, pooled_intervals


@pytest.mark.parametrize(("n_sizes", "shared"), [(7, 1.0), (7, 0.0), (5, 0.5)])
def test_the_interval_holds_the_truth_where_models_and_documents_scatter(n_sizes: int, shared: float) -> None:
    covered, bends = pooled_intervals(n_sizes, shared, 400)
    assert plausible(sum(covered), 400)
    assert sum(covered) >= 372
    assert sum(bends) <= 49


def test_the_interval_of_the_joint_law_holds_the_truth_where_it_is_the_law() -> None:
    covered, alone = joint_intervals(400)
    assert plausible(sum(covered), 400)
    assert sum(alone) < 280
