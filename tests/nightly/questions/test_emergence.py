"""How often intervals of crossings and of the joint law hold the truth: hundreds of laws and of texts."""

import numpy as np
import pytest

from tests.support.crossings import over_documents, over_noise
from tests.support.draws import plausible
from tests.support.windows import joint_intervals


@pytest.mark.parametrize("sd", [0.03, 0.15, 0.4])
def test_the_interval_of_a_crossing_covers_the_truth(sd: float) -> None:
    single, unbounded = over_noise(sd, 400)
    assert len(single) >= 390
    assert 0.90 <= np.mean(single) <= 0.99
    assert (unbounded > 20) == (sd == 0.4)


def test_with_documents_the_interval_covers_although_the_sizes_scatter_together() -> None:
    covered, covered_without = over_documents(200, 300)
    assert sum(covered) >= 180
    assert sum(covered_without) < 160


def test_the_interval_of_the_joint_law_holds_the_truth_where_it_is_the_law() -> None:
    covered, alone = joint_intervals(400)
    assert plausible(sum(covered), 400)
    assert sum(alone) < 280
