"""Optima under a budget, by a form and without one, each against a search by brute force."""

import math

import numpy as np
import pytest

from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.isoflop import envelope, isoflop, reached_budgets
from rbpx.laws.surface.runs import Runs, six_S
from rbpx.laws.surface.surface import optima, split
from rbpx.status import Status
from tests.support.surfaces import BUDGET, CONSTANTS, TRUE, draw, grid, law, plain_y, runs_of, surface_of, true_optimum


def with_head(S: np.ndarray) -> np.ndarray:
    """FLOPs of a token where a head of 5e8 weights counts."""
    return 6 * (S + 5e8)


def brute(form: str, C: float, flops_per_token, U: float) -> float:
    S = np.exp(np.linspace(math.log(1e5), math.log(1e14), 300_001))
    return float(S[np.argmin(plain_y(form, S, C / flops_per_token(S), U))])


def test_the_closed_form_is_where_the_least_y_is() -> None:
    surface = surface_of("chinchilla", TRUE, runs_of("chinchilla"))
    (best,) = optima(surface, [BUDGET])
    S = true_optimum(BUDGET)
    assert best.S.value == pytest.approx(S, rel=5e-5)
    assert best.D.value == pytest.approx(BUDGET / 6 / S, rel=5e-5)
    assert best.y.value == pytest.approx(float(law(np.array([S]), np.array([BUDGET / 6 / S]))[0]), rel=1e-9)
    assert split(surface)[0].value == pytest.approx(0.367 / (0.347 + 0.367))


@pytest.mark.parametrize("form", ["chinchilla", "kaplan", "data_constrained"])
@pytest.mark.parametrize("flops_per_token", [six_S, with_head])
def test_a_search_finds_the_optimum_of_any_form_and_cost(form: str, flops_per_token) -> None:
    surface = surface_of(form, CONSTANTS[form], runs_of(form))
    U = 1e10 if form == "data_constrained" else None
    for C in (1e19, 1e21):
        (best,) = optima(surface, [C], flops_per_token, U)
        assert best.S.value == pytest.approx(brute(form, C, flops_per_token, U or math.inf), rel=1e-4)
        assert best.D.value == pytest.approx(C / float(flops_per_token(np.array([best.S.value]))[0]), rel=1e-9)


def test_search_and_closed_form_agree_with_their_intervals() -> None:
    surface = fit_surface(draw((1,), grid(5, 4), 0.01).runs, n_replicates=60).surface
    assert surface is not None
    (closed,), (searched,) = optima(surface, [BUDGET]), optima(surface, [BUDGET], lambda S: 6 * S)
    for a, b in ((closed.S, searched.S), (closed.D, searched.D), (closed.y, searched.y)):
        assert (a.value, a.lo, a.hi) == pytest.approx((b.value, b.lo, b.hi), rel=1e-5)
        assert a.lo < a.value < a.hi


@pytest.mark.parametrize("name", ["A", "B", "alpha", "beta"])
def test_a_constant_at_its_bound_leaves_no_optimum(name: str) -> None:
    surface = surface_of("chinchilla", {**TRUE, name: 0.0}, runs_of("chinchilla"))
    for cost in (six_S, lambda S: 6 * S):
        (best,) = optima(surface, [BUDGET], cost)
        assert (best.S.value, best.D.value, best.y.value) == (None, None, None)


def test_budgets_have_to_be_positive() -> None:
    with pytest.raises(ValueError, match="budget must be positive"):
        optima(surface_of("chinchilla", TRUE, runs_of("chinchilla")), [0.0])


def isoflop_runs(budgets: list[float], sizes: np.ndarray, scatter: float = 0.0) -> Runs:
    S, C = (each.ravel() for each in np.meshgrid(sizes, budgets))
    noise = np.random.default_rng(2).standard_normal(len(S))
    # ln y is a parabola of ln S about S = 1e8 (C / 1e19)^.4 in each budget
    about = np.log(S / (1e8 * (C / 1e19) ** 0.4))
    return Runs.of(S, C / (6 * S), np.exp(1 - 0.05 * np.log(C / 1e19) + 0.02 * about**2 + scatter * noise))


def test_a_parabola_of_each_budget_gives_its_minimum_and_the_law_through_them() -> None:
    budgets = [1e18, 1e19, 1e20]
    found = isoflop(isoflop_runs(budgets, np.geomspace(1e7, 1e9, 6)), budgets)
    assert [each.status for each in found.budgets] == [Status.ok] * 3
    assert [each.S.value for each in found.budgets] == pytest.approx([1e8 * (C / 1e19) ** 0.4 for C in budgets])
    assert [each.D.value for each in found.budgets] == pytest.approx(
        [C / 6 / each.S.value for C, each in zip(budgets, found.budgets, strict=True)]
    )
    assert all(each.n_interpolated == 0 for each in found.budgets)
    assert found.law is not None
    assert (found.law.a.value, found.law.S_ref.value, found.law.C_ref) == pytest.approx((0.4, 1e8, 1e19))


def test_scatter_about_the_parabola_is_in_the_interval_of_its_minimum() -> None:
    runs = isoflop_runs([1e19], np.geomspace(1e7, 1e9, 8), 0.002)
    (budget,) = isoflop(runs, [1e19]).budgets
    c, b, a = np.polynomial.polynomial.polyfit(np.log(runs.S_N), np.log(runs.y_N), 2)
    assert budget.S.value == pytest.approx(math.exp(-b / (2 * a)))
    assert budget.y == pytest.approx(math.exp(c - b**2 / (4 * a)))
    assert budget.S.lo < budget.S.value < budget.S.hi
    assert budget.D.lo < budget.D.value < budget.D.hi


def test_a_minimum_that_the_sizes_do_not_straddle_is_said() -> None:
    runs = isoflop_runs([1e19], np.geomspace(2e8, 2e9, 6))
    (budget,) = isoflop(runs, [1e19]).budgets
    assert (budget.status, budget.S.value, budget.y, len(budget.sizes)) == (Status.not_straddled, None, None, 6)


def test_three_sizes_are_too_few_for_a_budget() -> None:
    (budget,) = isoflop(isoflop_runs([1e19], np.geomspace(1e7, 1e9, 3)), [1e19]).budgets
    assert (budget.status, len(budget.sizes)) == (Status.too_few_sizes, 3)


def test_sizes_between_budgets_are_interpolated_in_ln_D() -> None:
    S, D = grid(8, 12)
    runs = Runs.of(S, D, law(S, D))
    (budget,) = isoflop(runs, [1e19]).budgets
    expected = {}
    for size in np.unique(S):
        at, own = 1e19 / (6 * size), np.sort(D[size == S])
        if own[0] < at < own[-1]:
            expected[size] = math.exp(np.interp(math.log(at), np.log(own), np.log(law(size, own))))
    assert budget.sizes == pytest.approx(list(expected))
    assert budget.y_of_sizes == pytest.approx(list(expected.values()))
    assert budget.n_interpolated == len(expected) - 1 == 4  # one has a run within 1 %
    assert budget.S.value == pytest.approx(true_optimum(1e19), rel=0.3)


def test_budgets_that_four_sizes_reach_are_found() -> None:
    lined_up = isoflop_runs([1e18, 1e19, 1e20], np.geomspace(1e7, 1e9, 6))
    assert reached_budgets(lined_up, 3) == pytest.approx((1e18, 1e19, 1e20))
    S, D = grid(8, 6)
    runs = Runs.of(S, D, law(S, D))
    budgets = reached_budgets(runs, 7)
    assert len(budgets) == 7
    assert all(each.status is not Status.too_few_sizes for each in isoflop(runs, budgets).budgets)
    beyond = isoflop(runs, [budgets[0] / 1.1, budgets[-1] * 1.1]).budgets
    assert [each.status for each in beyond] == [Status.too_few_sizes] * 2
    assert reached_budgets(isoflop_runs([1e19], np.geomspace(1e7, 1e9, 3))) == ()


def test_the_envelope_is_the_best_size_of_each_budget() -> None:
    S, D = grid(10, 8)
    found = envelope(Runs.of(S, D, law(S, D)), n_replicates=30)
    assert found.law is not None
    for C, best in zip(found.C, found.S, strict=True):
        y_of = {}
        for size in np.unique(S):
            own, at = np.sort(D[size == S]), C / (6 * size)
            if own[0] * 0.9999 <= at <= own[-1] * 1.0001:
                y_of[size] = np.interp(math.log(at), np.log(own), np.log(law(size, own)))
        assert best == pytest.approx(min(y_of, key=y_of.__getitem__))
    assert found.law.a.value == pytest.approx(0.367 / (0.347 + 0.367), abs=0.15)
    assert found.law.a.lo <= found.law.a.value <= found.law.a.hi
