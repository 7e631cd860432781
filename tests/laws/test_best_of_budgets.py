"""What draws of a surface say of a budget, of serving, and how often that holds the truth."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from rbpx.laws.surface.decision import Best, Served, best_of, with_serving, within_total
from rbpx.laws.surface.fit import SurfaceFit, fit_surface
from rbpx.laws.surface.runs import Runs
from tests.support.draws import few_or_all, plausible
from tests.support.surfaces import TRUE, draw, grid, law, straight, true_optimum

C = 1e22


def fits_of(runs: Runs) -> list[SurfaceFit]:
    return [fit_surface(runs, form, n_resamples=0) for form in ("chinchilla", "kaplan")]


def loss(S: float, D: float) -> float:
    return float(law(np.array([S]), np.array([D]))[0])


def count(held: dict[str, int], of: Best | Served, truth: dict[str, float]) -> None:
    """Count each interval that holds the truth."""
    for name, value in truth.items():
        estimate = getattr(of, name)
        held[name] += estimate.lo <= value <= estimate.hi


def assert_plausible(held: dict[str, int], n_draws: int) -> None:
    for name, n in held.items():
        assert n > 0.95 * n_draws or plausible(n, n_draws), name


def least_of_both(T: float) -> tuple[float, float, float]:
    """S, D and the share that is saved, by a search along the curve of equal loss of the true law."""
    size = true_optimum(C)
    wanted = loss(size, C / 6 / size)

    def tokens(S: float) -> float:
        return math.exp(brentq(lambda ln_D: loss(S, math.exp(ln_D)) - wanted, math.log(1e9), math.log(1e17)))

    def cost(ln_S: float) -> float:
        S = math.exp(ln_S)
        left = wanted - TRUE["E"] - TRUE["A"] * S ** -TRUE["alpha"]
        return math.log(6 * S * tokens(S) + 2 * S * T) if left > 0 else 1e3 - ln_S

    least = minimize_scalar(cost, bounds=(math.log(size / 20), math.log(2 * size)), method="bounded")
    S = math.exp(least.x)
    return S, tokens(S), 1 - math.exp(least.fun) / (C + 2 * size * T)


def least_within(T: float) -> tuple[float, float, float]:
    """S, D and the loss where training and serving cost C together, by a search along the true law."""

    def tokens(S: float) -> float:
        return (C - 2 * S * T) / (6 * S)

    ends = math.log(1e6), math.log(0.999 * C / (2 * T))
    found = minimize_scalar(lambda ln_S: loss(math.exp(ln_S), tokens(math.exp(ln_S))), bounds=ends, method="bounded")
    S = math.exp(found.x)
    return S, tokens(S), found.fun


@few_or_all(24, 300)
def test_what_is_said_of_a_budget_that_pays_for_serving_holds_the_truth(n_draws: int) -> None:
    T = 1e12
    truth = dict(zip(("S", "D"), least_within(T), strict=False))
    held = dict.fromkeys(("S", "D", "y"), 0)
    for seed in range(n_draws):
        served = within_total(fits_of(draw((seed,), grid(6, 5), 0.004).runs), C, T, seed=seed)
        assert served is not None
        assert served.S.value is not None
        assert served.D.value is not None
        assert 6 * served.S.value * served.D.value + 2 * served.S.value * T == pytest.approx(C)
        truth["y"] = loss(served.S.value, served.D.value)
        count(held, served, truth)
    assert_plausible(held, n_draws)


@pytest.mark.parametrize("T", [1e10, 1e12, 1e13])
def test_of_runs_without_scatter_a_budget_of_both_is_spent_as_a_search_of_the_law_finds_it(T: float) -> None:
    S, D = grid(6, 5)
    served = within_total(fits_of(Runs.of(S, D, law(S, D))), C, T)
    size, tokens, y = least_within(T)
    assert served is not None
    assert served.S.value == pytest.approx(size, rel=0.05)
    assert served.D.value == pytest.approx(tokens, rel=0.1)
    assert served.y.value == pytest.approx(y, rel=1e-3)


@few_or_all(24, 300)
def test_what_is_said_of_a_budget_holds_the_truth(n_draws: int) -> None:
    size = true_optimum(C)
    held = dict.fromkeys(("S", "D", "y", "half", "fivefold"), 0)
    for seed in range(n_draws):
        best = best_of(fits_of(draw((seed,), grid(6, 5), 0.004).runs), C, seed=seed)
        assert best is not None
        assert best.S.value is not None
        at = best.S.value
        truth = {"S": size, "D": C / 6 / size, "y": loss(at, C / 6 / at)}
        for name, times in (("half", 2), ("fivefold", 5)):
            truth[name] = loss(at / times, times * C / 6 / at) / loss(at, C / 6 / at) - 1
        count(held, best, truth)
    assert_plausible(held, n_draws)


def test_of_runs_without_scatter_the_best_is_that_of_the_law() -> None:
    S, D = grid(6, 5)
    best = best_of(fits_of(Runs.of(S, D, law(S, D))), 1e21)
    assert best is not None
    assert best.S.value == pytest.approx(true_optimum(1e21), rel=0.02)
    assert best.S.value * best.D.value == pytest.approx(1e21 / 6, rel=1e-9)
    assert best.beyond == pytest.approx(1e21 / (6 * S * D).max())


@pytest.mark.parametrize("T", [1e11, 1e13])
def test_training_and_serving_are_cheapest_where_a_search_along_equal_loss_finds_it(T: float) -> None:
    S, D = grid(6, 5)
    served = with_serving(fits_of(Runs.of(S, D, law(S, D))), C, T)
    size, tokens, saved = least_of_both(T)
    assert served is not None
    assert served.S.value == pytest.approx(size, rel=0.15)
    assert served.D.value == pytest.approx(tokens, rel=0.2)
    assert served.saved.value == pytest.approx(saved, abs=0.02)


def test_along_a_line_no_size_is_best() -> None:
    S, D = straight(8)
    best = best_of(fits_of(Runs.of(S, D, law(S, D) * np.exp(0.004 * np.sin(7 * np.arange(8))))), C)
    assert best is None or best.S.value is None or best.S.hi / best.S.lo > 3
