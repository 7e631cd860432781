"""What draws of a surface say of a budget, of serving, and how often that holds the truth."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from rbpx.laws.surface.decision import best_of, with_serving, within_total
from rbpx.laws.surface.runs import Runs
from tests.support.coverage import BUDGET, both_forms, least_within, of_best_run, of_served_run, true_loss
from tests.support.draws import fewest
from tests.support.surfaces import TRUE, grid, law, straight, true_optimum


def least_of_both(T: float) -> tuple[float, float, float]:
    """S, D and the share that is saved, by a search along the curve of equal loss of the true law."""
    size = true_optimum(BUDGET)
    wanted = true_loss(size, BUDGET / 6 / size)

    def tokens(S: float) -> float:
        return math.exp(brentq(lambda ln_D: true_loss(S, math.exp(ln_D)) - wanted, math.log(1e9), math.log(1e17)))

    def cost(ln_S: float) -> float:
        S = math.exp(ln_S)
        left = wanted - TRUE["E"] - TRUE["A"] * S ** -TRUE["alpha"]
        return math.log(6 * S * tokens(S) + 2 * S * T) if left > 0 else 1e3 - ln_S

    least = minimize_scalar(cost, bounds=(math.log(size / 20), math.log(2 * size)), method="bounded")
    S = math.exp(least.x)
    return S, tokens(S), 1 - math.exp(least.fun) / (BUDGET + 2 * size * T)


@pytest.mark.parametrize("T", [1e10, 1e12, 1e13])
def test_of_runs_without_scatter_a_budget_of_both_is_spent_as_a_search_of_the_law_finds_it(T: float) -> None:
    S, D = grid(6, 5)
    served = within_total(both_forms(Runs.of(S, D, law(S, D))), BUDGET, T)
    size, tokens, y = least_within(T)
    assert served is not None
    assert served.S.value == pytest.approx(size, rel=0.05)
    assert served.D.value == pytest.approx(tokens, rel=0.1)
    assert served.y.value == pytest.approx(y, rel=1e-3)


@pytest.mark.parametrize("of_run", [of_best_run, of_served_run])
def test_what_is_said_of_a_budget_holds_the_truth(of_run: Callable[[int], dict[str, int]]) -> None:
    """Intervals of 95 % hold it less often in 1 of 1,000 sets of so many draws, by the binomial."""
    n_draws = 8
    held = of_run(n_draws)
    assert min(held.values()) >= fewest(n_draws, n_counts=len(held)), held


def test_of_runs_without_scatter_the_best_is_that_of_the_law() -> None:
    S, D = grid(6, 5)
    best = best_of(both_forms(Runs.of(S, D, law(S, D))), 1e21)
    assert best is not None
    assert best.S.value == pytest.approx(true_optimum(1e21), rel=0.02)
    assert best.S.value * best.D.value == pytest.approx(1e21 / 6, rel=1e-9)
    assert best.beyond == pytest.approx(1e21 / (6 * S * D).max())


@pytest.mark.parametrize("T", [1e11, 1e13])
def test_training_and_serving_are_cheapest_where_a_search_along_equal_loss_finds_it(T: float) -> None:
    S, D = grid(6, 5)
    served = with_serving(both_forms(Runs.of(S, D, law(S, D))), BUDGET, T)
    size, tokens, saved = least_of_both(T)
    assert served is not None
    assert served.S.value == pytest.approx(size, rel=0.15)
    assert served.D.value == pytest.approx(tokens, rel=0.2)
    assert served.saved.value == pytest.approx(saved, abs=0.02)


def test_along_a_line_no_size_is_best() -> None:
    S, D = straight(8)
    best = best_of(both_forms(Runs.of(S, D, law(S, D) * np.exp(0.004 * np.sin(7 * np.arange(8))))), BUDGET)
    assert best is None or best.S.value is None or best.S.hi / best.S.lo > 3
