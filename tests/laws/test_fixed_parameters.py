"""Constants that are given: pinned, with a prior, tested against the points."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import f as fisher

from rbpx.laws.names import Method, Objective
from rbpx.laws.power.fixed_parameters import fit_law_with_priors, posterior_weights
from rbpx.laws.power.law import fit_power_law, reproduce
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.priors import FixedValues, ImpossiblePrior, Prior
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.fixed_parameters import fit_surface_with_priors
from rbpx.laws.surface.runs import Runs
from tests.support.drawn_laws import (
    GIVEN,
    GIVEN_S,
    GIVEN_SURFACE,
    given_law,
    given_surface,
)

NAMES = ("C", "alpha", "E")


def squares(y: np.ndarray, given: dict[str, float], method: Method) -> tuple[float, dict[str, float]]:
    """The least sum of squares of ln y and the constants there, by scipy from the truth."""
    names = [name for name in NAMES[: 3 if method is Method.offset else 2] if name not in given]

    def residual(free: np.ndarray) -> np.ndarray:
        of = {"E": 0.0, **given, **dict(zip(names, free, strict=True))}
        ln_C = of["C"] if "C" in names else math.log(of["C"])  # it is searched as a logarithm
        return np.log(y) - np.log(of["E"] + np.exp(ln_C - of["alpha"] * np.log(GIVEN_S)))

    start = [math.log(GIVEN["C"]) if name == "C" else GIVEN[name] for name in names]
    if not names:
        return float(np.sum(residual(np.array([])) ** 2)), {}
    end = least_squares(residual, start, x_scale="jac", ftol=1e-15, xtol=1e-15, gtol=1e-15)
    found = dict(zip(names, end.x.tolist(), strict=True))
    return 2 * float(end.cost), found | ({"C": math.exp(found["C"])} if "C" in found else {})


CASES = (
    ({"E": 1.7}, Method.offset),
    ({"E": 1.5}, Method.offset),
    ({"alpha": 0.3}, Method.offset),
    ({"C": 400.0}, Method.offset),
    ({"C": 300.0, "E": 1.68}, Method.offset),
    ({"alpha": 0.34, "E": 1.7}, Method.offset),
    ({"C": 400.0, "alpha": 0.34, "E": 1.7}, Method.offset),
    ({"alpha": 0.05}, Method.ols),
    ({"C": 7.0}, Method.ols),
)


@pytest.mark.parametrize(("given", "method"), CASES, ids=str)
def test_the_rest_of_a_law_is_that_of_least_squares(given: dict[str, float], method: Method) -> None:
    y = given_law(0)
    fit = fit_law_with_priors(GIVEN_S, y, None, method, {name: Prior(value) for name, value in given.items()})
    least, free = squares(y, given, method)
    now = {"C": fit.C.value, "alpha": fit.alpha.value, "E": fit.E.value}
    for name, value in {**given, **free}.items():
        assert now[name] == pytest.approx(value, rel=1e-6)
    assert np.sum(np.square(fit.residuals_ln)) == pytest.approx(least, rel=1e-8)
    again = reproduce(fit.record())
    assert again["C"] == pytest.approx(fit.C.value, rel=1e-9)
    assert again["alpha"] == pytest.approx(fit.alpha.value, rel=1e-9)


@pytest.mark.parametrize(("given", "method"), CASES[:3] + CASES[-2:], ids=str)
def test_a_value_is_tested_by_the_squares_with_it_and_without(given: dict[str, float], method: Method) -> None:
    y = given_law(0)
    ((name, value),) = given.items()
    fit = fit_law_with_priors(GIVEN_S, y, None, method, {name: Prior(value)})
    free, held = squares(y, {}, method)[0], squares(y, given, method)[0]
    dof = len(GIVEN_S) - (3 if method is Method.offset else 2)
    (about,) = fit.pinned
    assert about.p == pytest.approx(fisher.sf((held - free) / (free / dof), 1, dof), rel=1e-4)
    assert about.free == getattr(fit_power_law(GIVEN_S, y, method=method), name)


@pytest.mark.parametrize("sd", [0.002, 0.02, 1.0])
def test_a_prior_is_weighed_by_the_points(sd: float) -> None:
    """The posterior of E on a fine grid: the density of the prior times SSE^(-dof / 2)."""
    y, prior = given_law(1), Prior(1.69, sd)
    fit = fit_law_with_priors(GIVEN_S, y, None, Method.offset, {"E": prior})
    grid = np.linspace(max(0.0, 1.69 - 6 * sd), min(1.69 + 6 * sd, y.min() * 0.999), 4001)
    grid = grid[np.abs(grid - 1.7) < 0.1]
    some = np.linspace(grid[0], grid[-1], 40)
    along = [squares(y, {"E": E}, Method.offset) for E in some]
    squared, alpha = [each for each, _ in along], [of["alpha"] for _, of in along]
    density = np.exp(-0.5 * ((grid - 1.69) / sd) ** 2) * np.interp(grid, some, squared) ** (-(len(GIVEN_S) - 2) / 2)
    density /= density.sum()
    below = np.cumsum(density)
    median, lo, hi = (float(np.interp(tail, below, grid)) for tail in (0.5, 0.025, 0.975))
    E = fit.E
    assert E.value == pytest.approx(median, abs=0.05 * (hi - lo))
    assert E.hi - E.lo == pytest.approx(hi - lo, rel=0.15)
    assert fit.alpha.value == pytest.approx(
        float(np.interp(median, some, alpha)), abs=0.1 * (fit.alpha.hi - fit.alpha.lo)
    )


def test_a_prior_of_no_width_pins_and_one_without_end_leaves_free() -> None:
    y = given_law(2)
    pinned, free = (
        fit_law_with_priors(GIVEN_S, y, None, Method.offset, {"E": Prior(1.7)}),
        fit_power_law(GIVEN_S, y, method=Method.offset),
    )
    narrow, wide = (fit_law_with_priors(GIVEN_S, y, None, Method.offset, {"E": Prior(1.7, sd)}) for sd in (1e-6, 1e9))
    assert narrow.alpha.value == pytest.approx(pinned.alpha.value, rel=1e-4)
    assert narrow.alpha.hi == pytest.approx(pinned.alpha.hi, rel=1e-3)
    assert wide.alpha.value == pytest.approx(free.alpha.value, rel=0.01)


@pytest.mark.parametrize(
    ("pins", "said"),
    [
        ({"E": Prior(3.0)}, r"^E=3 is impossible: E is at least 0 and below .*, the smallest value$"),
        ({"E": Prior(-1.0)}, "^E=-1 is impossible"),
        ({"E": Prior(9.0, 0.1)}, r"^E=9 \+- 0.1 is impossible"),
        ({"C": Prior(0.0)}, "^C=0 is impossible: C is above 0$"),
    ],
)
def test_a_constant_that_cannot_be_is_refused_by_its_own_bounds(pins: dict[str, Prior], said: str) -> None:
    with pytest.raises(ImpossiblePrior, match=said):
        fit_law_with_priors(GIVEN_S, given_law(0), None, Method.offset, pins)


# ------------------------------------------------------------------------------------------------- how often it holds


@pytest.mark.parametrize("values", [{"E": 1.7}, {"alpha": 0.34, "E": 1.7}, {"C": 400.0, "E": 1.7}], ids=str)
def test_an_exact_law_with_its_constants_given_is_continued(values: dict[str, float]) -> None:
    y = GIVEN["E"] + GIVEN["C"] * GIVEN_S ** -GIVEN["alpha"]
    (answer,) = average_forms(GIVEN_S, y, [1e12], [FixedValues(values)])
    assert answer.y == pytest.approx(GIVEN["E"] + GIVEN["C"] * 1e12 ** -GIVEN["alpha"], rel=1e-5)


@pytest.mark.parametrize("values", [{"E": 1.7}, {"alpha": 0.34}, {"C": 400.0}], ids=str)
def test_values_that_are_given_twice_count_as_once(values: dict[str, float]) -> None:
    y = (GIVEN["E"] + GIVEN["C"] * GIVEN_S ** -GIVEN["alpha"]) * np.exp(0.01 * np.cos(GIVEN_S))
    (once,) = average_forms(GIVEN_S, y, [1e12], [FixedValues(values)])
    (twice,) = average_forms(GIVEN_S, y, [1e12], [FixedValues(values, 0.25), FixedValues(values, 0.75)])
    assert [twice.lo, twice.y, twice.hi] == pytest.approx([once.lo, once.y, once.hi], rel=1e-9)


# ----------------------------------------------------------------------------------------------------------- surfaces


@pytest.mark.parametrize("names", [("E",), ("alpha",), ("A",), ("B", "beta"), ("A", "B", "E")], ids=str)
def test_the_rest_of_a_surface_is_that_of_least_squares(names: tuple[str, ...]) -> None:
    runs, free = given_surface(0), [name for name in GIVEN_SURFACE if name not in names]

    def residual(theta: np.ndarray) -> np.ndarray:
        of = GIVEN_SURFACE | {name: GIVEN_SURFACE[name] * math.exp(at) for name, at in zip(free, theta, strict=True)}
        fit = of["E"] + of["A"] * runs.S_N ** -of["alpha"] + of["B"] * runs.D_N ** -of["beta"]
        return np.asarray(fit - runs.y_N)

    end = least_squares(residual, np.zeros(len(free)), x_scale="jac", ftol=1e-15, xtol=1e-15, gtol=1e-15)
    pins = {name: Prior(GIVEN_SURFACE[name]) for name in names}
    fit = fit_surface_with_priors(runs, "chinchilla", pins, n_replicates=0, objective=Objective.least_squares)
    assert fit.objective == pytest.approx(2 * end.cost, rel=1e-8)
    for name, at in zip(free, end.x, strict=True):
        assert fit.constants[name].value == pytest.approx(GIVEN_SURFACE[name] * math.exp(at), rel=1e-4)
    for name in names:
        assert fit.constants[name].value == pytest.approx(GIVEN_SURFACE[name], rel=1e-12)


def test_kaplans_constants_may_be_given_in_their_own_unit() -> None:
    S, D = given_surface(0).S_N, given_surface(0).D_N
    y = ((3e13 / S) ** (0.08 / 0.1) + 5e12 / D) ** 0.1
    fit = fit_surface_with_priors(
        Runs.of(S, D, y), "kaplan", {"N_c": Prior(3e13), "alpha_D": Prior(0.1)}, n_replicates=0
    )
    assert fit.constants["D_c"].value == pytest.approx(5e12, rel=1e-5)
    assert fit.constants["alpha_N"].value == pytest.approx(0.08, rel=1e-6)


def test_a_prior_of_a_surface_lies_between_the_pinned_and_the_free() -> None:
    runs = given_surface(3)
    free, prior, pinned = (
        fit_surface_with_priors(runs, "chinchilla", pins, n_replicates=50)
        for pins in ({}, {"E": Prior(1.6, 0.03)}, {"E": Prior(1.6)})
    )
    betas = [fit.constants["beta"] for fit in (pinned, prior, free)]
    assert betas[0].value < betas[1].value < betas[2].value
    assert betas[0].hi - betas[0].lo < betas[1].hi - betas[1].lo < betas[2].hi - betas[2].lo
    assert free.constants == fit_surface(runs, n_replicates=50).constants


def test_laws_that_meet_every_point_weigh_as_they_did_before() -> None:
    chosen = [SimpleNamespace(prior=0.25), SimpleNamespace(prior=0.75)]
    assert posterior_weights([1e-26, 1e-30], 4, chosen) == pytest.approx([0.25, 0.75])
