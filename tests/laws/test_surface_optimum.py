"""Optima under a budget, by a form and without one, each against a search by brute force."""

import math

import numpy as np
import pytest

from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import six_S
from rbpx.laws.surface.surface import optimum, split
from tests.support.surfaces import BUDGET, CONSTANTS, TRUE, draw, grid, plain_y, runs_of, surface_of


def with_head(S: np.ndarray) -> np.ndarray:
    """FLOPs of a token where a head of 5e8 weights counts."""
    return 6 * (S + 5e8)


def brute(form: str, C: float, flops_per_token, U: float) -> float:
    S = np.exp(np.linspace(math.log(1e5), math.log(1e14), 300_001))
    return float(S[np.argmin(plain_y(form, S, C / flops_per_token(S), U))])


@pytest.mark.parametrize("form", ["chinchilla", "kaplan", "data_constrained"])
@pytest.mark.parametrize("flops_per_token", [six_S, with_head])
def test_a_search_finds_the_optimum_of_any_form_and_cost(form: str, flops_per_token) -> None:
    surface = surface_of(form, CONSTANTS[form], runs_of(form))
    U = 1e10 if form == "data_constrained" else None
    for C in (1e19, 1e21):
        best = optimum(surface, C, flops_per_token, U)
        assert best.S.value == pytest.approx(brute(form, C, flops_per_token, U or math.inf), rel=1e-4)
        assert best.D.value == pytest.approx(C / float(flops_per_token(np.array([best.S.value]))[0]), rel=1e-9)
        assert best.y.value == pytest.approx(float(plain_y(form, best.S.value, best.D.value, U or math.inf)), rel=1e-9)


def test_search_and_closed_form_agree_with_their_intervals() -> None:
    surface = fit_surface(draw((1,), grid(5, 4), 0.01).runs, n_replicates=60).surface
    assert split(surface)[0].value == pytest.approx(
        surface.constants()["beta"][0] / sum(surface.constants()[name][0] for name in ("alpha", "beta"))
    )
    closed, searched = optimum(surface, BUDGET), optimum(surface, BUDGET, lambda S: 6 * S)
    for a, b in ((closed.S, searched.S), (closed.D, searched.D), (closed.y, searched.y)):
        assert (a.value, a.lo, a.hi) == pytest.approx((b.value, b.lo, b.hi), rel=1e-5)
        assert a.lo < a.value < a.hi


@pytest.mark.parametrize("name", ["A", "B", "alpha", "beta"])
def test_a_constant_at_its_bound_leaves_no_optimum(name: str) -> None:
    surface = surface_of("chinchilla", {**TRUE, name: 0.0}, runs_of("chinchilla"))
    for cost in (six_S, lambda S: 6 * S):
        best = optimum(surface, BUDGET, cost)
        assert (best.S.value, best.D.value, best.y.value) == (None, None, None)


def test_budgets_have_to_be_positive() -> None:
    with pytest.raises(ValueError, match="budget must be one number, positive"):
        optimum(surface_of("chinchilla", TRUE, runs_of("chinchilla")), 0.0)
