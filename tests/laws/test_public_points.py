"""The prediction over forms on public points: how many larger models the intervals from fewer sizes held."""

import numpy as np
import pytest

from benchmarks import prediction_coverage
from tests.support.pythia import PYTHIA_CE, PYTHIA_RBP_1, PYTHIA_S, neg_ln

PYTHIA = {"cross-entropy": PYTHIA_CE, "-ln RBP_1": neg_ln(PYTHIA_RBP_1)}


@pytest.mark.parametrize("quantity", PYTHIA)
def test_pythia_by_size_is_held_over_forms_and_not_by_the_line(quantity: str) -> None:
    S, y = [float(size) for size in PYTHIA_S], PYTHIA[quantity]
    over = [held for m in range(4, 10) for held in prediction_coverage.held(S, y, m, forms=True)]
    line = [held for m in range(4, 10) for held in prediction_coverage.held(S, y, m, forms=False)]
    assert len(over) == 21
    assert np.mean(over) >= 0.95
    assert np.mean(line) < 0.9


def test_the_largest_of_olmos_ladder_is_held_for_most_texts_and_budgets() -> None:
    if not prediction_coverage.REFERENCE.is_dir():
        pytest.skip("the public tables are not beside the project")
    series = {
        name: each
        for name, each in prediction_coverage.public_series().items()
        if "7 tasks" in name and "one D/N" in name
    }
    (ladders,) = series.values()
    held = [of for S, y, m in ladders for of in prediction_coverage.held(S, y, m, forms=True)]
    assert len(held) == 28
    assert np.mean(held) >= 0.93
