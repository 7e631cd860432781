"""What draws of a surface say of a budget, of serving, and how often that holds the truth."""

import pytest

from rbpx.laws.surface.decision import best_run, best_run_with_serving
from rbpx.laws.surface.runs import Runs
from tests.support.drawn_laws import (
    BUDGET,
    both_forms,
    least_to_reach,
    least_within,
    true_loss,
)
from tests.support.surfaces import grid, law, true_optimum


@pytest.mark.parametrize("T", [1e10, 1e12, 1e14])
def test_of_runs_without_scatter_a_budget_of_both_is_spent_as_a_search_of_the_law_finds_it(T: float) -> None:
    S, D = grid(6, 5)
    served = best_run(both_forms(Runs.of(S, D, law(S, D))), BUDGET, T=T)
    size, tokens, y = least_within(T)
    assert served.S.value == pytest.approx(size, rel=0.005)
    assert served.D.value == pytest.approx(tokens, rel=0.01)
    assert served.y.value == pytest.approx(y, rel=1e-4)


def test_of_runs_without_scatter_the_best_is_that_of_the_law() -> None:
    S, D = grid(6, 5)
    best = best_run(both_forms(Runs.of(S, D, law(S, D))), 1e21)
    size = true_optimum(1e21)
    assert best.S.value == pytest.approx(size, rel=0.001)
    for lost, times in ((best.half, 2), (best.fivefold, 5)):
        more = true_loss(size / times, times * 1e21 / 6 / size) / true_loss(size, 1e21 / 6 / size) - 1
        assert lost.value == pytest.approx(more, rel=0.002)
    assert best.S.value * best.D.value == pytest.approx(1e21 / 6, rel=1e-9)
    assert best.beyond == pytest.approx(1e21 / (6 * S * D).max())


@pytest.mark.parametrize("T", [1e11, 1e14])
def test_training_and_serving_are_cheapest_where_a_search_along_equal_loss_finds_it(T: float) -> None:
    S, D = grid(6, 5)
    served = best_run_with_serving(both_forms(Runs.of(S, D, law(S, D))), BUDGET, T)
    size, tokens, saved = least_to_reach(T)
    assert served.S.value == pytest.approx(size, rel=0.005)
    assert served.D.value == pytest.approx(tokens, rel=0.02)
    assert served.saved.value == pytest.approx(saved, abs=0.001)
    assert served.S.lo < served.S.value < served.S.hi
