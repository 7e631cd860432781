"""Constants that are given: pinned, with a prior, tested against the points."""

import math

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import f as fisher

from rbpx.laws.names import Method, Objective
from rbpx.laws.pins import Given, NotGiven, Pin
from rbpx.laws.power.given import fit_pinned_law
from rbpx.laws.power.law import fit_power_law, reproduce
from rbpx.laws.predict.prediction import average_forms
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.given import fit_given
from rbpx.laws.surface.runs import Runs
from tests.support.draws import few_or_all

S = np.geomspace(1e7, 1e10, 8)
NAMES = ("C", "alpha", "E")
TRUE = {"C": 400.0, "alpha": 0.34, "E": 1.7}


def drawn(seed: int, scatter: float = 0.003) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(len(S))
    return np.asarray((TRUE["E"] + TRUE["C"] * S ** -TRUE["alpha"]) * np.exp(scatter * noise))


def squares(y: np.ndarray, given: dict[str, float], method: Method) -> tuple[float, dict[str, float]]:
    """The least sum of squares of ln y and the constants there, by scipy from the truth."""
    names = [name for name in NAMES[: 3 if method is Method.offset else 2] if name not in given]

    def residual(free: np.ndarray) -> np.ndarray:
        of = {"E": 0.0, **given, **dict(zip(names, free, strict=True))}
        ln_C = of["C"] if "C" in names else math.log(of["C"])  # it is searched as a logarithm
        return np.log(y) - np.log(of["E"] + np.exp(ln_C - of["alpha"] * np.log(S)))

    start = [math.log(TRUE["C"]) if name == "C" else TRUE[name] for name in names]
    if not names:
        return float(np.sum(residual(np.array([])) ** 2)), {}
    end = least_squares(residual, start, x_scale="jac", ftol=1e-15, xtol=1e-15, gtol=1e-15)
    found = dict(zip(names, end.x.tolist(), strict=True))
    return 2 * float(end.cost), found | ({"C": math.exp(found["C"])} if "C" in found else {})


GIVEN = (
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


@pytest.mark.parametrize(("given", "method"), GIVEN, ids=str)
def test_the_rest_of_a_law_is_that_of_least_squares(given: dict[str, float], method: Method) -> None:
    y = drawn(0)
    fit = fit_pinned_law(S, y, None, method, {name: Pin(value) for name, value in given.items()})
    least, free = squares(y, given, method)
    now = {"C": fit.C, "alpha": fit.alpha, "E": fit.offset.value}
    for name, value in {**given, **free}.items():
        assert now[name] == pytest.approx(value, rel=1e-6)
    assert np.sum(np.square(fit.residuals_ln)) == pytest.approx(least, rel=1e-8)
    again = reproduce(fit.record())
    assert again["C"] == pytest.approx(fit.C, rel=1e-9)
    assert again["alpha"] == pytest.approx(fit.alpha, rel=1e-9)


@pytest.mark.parametrize(("given", "method"), GIVEN[:3] + GIVEN[-2:], ids=str)
def test_a_value_is_tested_by_the_squares_with_it_and_without(given: dict[str, float], method: Method) -> None:
    y = drawn(0)
    ((name, value),) = given.items()
    fit = fit_pinned_law(S, y, None, method, {name: Pin(value)})
    free, held = squares(y, {}, method)[0], squares(y, given, method)[0]
    dof = len(S) - (3 if method is Method.offset else 2)
    (about,) = fit.pinned
    assert about.p == pytest.approx(fisher.sf((held - free) / (free / dof), 1, dof), rel=1e-4)
    assert about.free == getattr(
        fit_power_law(S, y, method=method), {"E": "offset", "alpha": "exponent", "C": "constant"}[name]
    )


@pytest.mark.parametrize("sd", [0.002, 0.02, 1.0])
def test_a_prior_is_weighed_by_the_points(sd: float) -> None:
    """The posterior of E on a fine grid: the density of the prior times SSE^(-dof / 2)."""
    y, prior = drawn(1), Pin(1.69, sd)
    fit = fit_pinned_law(S, y, None, Method.offset, {"E": prior})
    grid = np.linspace(max(0.0, 1.69 - 6 * sd), min(1.69 + 6 * sd, y.min() * 0.999), 4001)
    grid = grid[np.abs(grid - 1.7) < 0.1]
    along = [squares(y, {"E": E}, Method.offset) for E in grid[::20]]
    squared, alpha = [each for each, _ in along], [of["alpha"] for _, of in along]
    density = np.exp(-0.5 * ((grid - 1.69) / sd) ** 2) * np.interp(grid, grid[::20], squared) ** (-(len(S) - 2) / 2)
    density /= density.sum()
    below = np.cumsum(density)
    median, lo, hi = (float(np.interp(tail, below, grid)) for tail in (0.5, 0.025, 0.975))
    E = fit.offset
    assert E.value == pytest.approx(median, abs=0.05 * (hi - lo))
    assert E.hi - E.lo == pytest.approx(hi - lo, rel=0.15)
    assert fit.alpha == pytest.approx(
        float(np.interp(median, grid[::20], alpha)), abs=0.1 * (fit.alpha_hi - fit.alpha_lo)
    )


def test_a_prior_of_no_width_pins_and_one_without_end_leaves_free() -> None:
    y = drawn(2)
    pinned, free = fit_pinned_law(S, y, None, Method.offset, {"E": Pin(1.7)}), fit_power_law(S, y, method=Method.offset)
    narrow, wide = (fit_pinned_law(S, y, None, Method.offset, {"E": Pin(1.7, sd)}) for sd in (1e-6, 1e9))
    assert narrow.alpha == pytest.approx(pinned.alpha, rel=1e-4)
    assert narrow.alpha_hi == pytest.approx(pinned.alpha_hi, rel=1e-3)
    assert wide.alpha == pytest.approx(free.alpha, rel=0.01)


@pytest.mark.parametrize(
    ("pins", "said"),
    [
        ({"E": Pin(3.0)}, r"^E=3 is impossible: E is at least 0 and below .*, the smallest value$"),
        ({"E": Pin(-1.0)}, "^E=-1 is impossible"),
        ({"E": Pin(9.0, 0.1)}, r"^E=9 \+- 0.1 is impossible"),
        ({"C": Pin(0.0)}, "^C=0 is impossible: C is above 0$"),
    ],
)
def test_a_constant_that_cannot_be_is_refused_by_its_own_bounds(pins: dict[str, Pin], said: str) -> None:
    with pytest.raises(NotGiven, match=said):
        fit_pinned_law(S, drawn(0), None, Method.offset, pins)


# ------------------------------------------------------------------------------------------------- how often it holds


@few_or_all(120, 1000)
def test_intervals_hold_at_their_rate_where_what_is_given_is_true_and_not_where_it_is_wrong(n_draws: int) -> None:
    held = {1.7: 0, 1.6: 0}
    doubted = {1.7: 0, 1.6: 0}
    for seed in range(n_draws):
        for E in held:
            fit = fit_pinned_law(S, drawn(seed), None, Method.offset, {"E": Pin(E)}, backtests=False)
            held[E] += fit.alpha_lo <= TRUE["alpha"] <= fit.alpha_hi
            doubted[E] += fit.pinned[0].p < 0.05
    se = math.sqrt(0.95 * 0.05 / n_draws)
    assert held[1.7] / n_draws == pytest.approx(0.95, abs=3 * se)
    assert doubted[1.7] / n_draws == pytest.approx(0.05, abs=3 * se)
    assert held[1.6] < 0.1 * n_draws
    assert doubted[1.6] > 0.9 * n_draws


@few_or_all(120, 1000)
def test_predictions_hold_where_the_truth_is_of_the_prior(n_draws: int) -> None:
    rng, held, narrower = np.random.default_rng(0), 0, []
    prior = Pin(1.7, 0.05)
    for seed in range(n_draws):
        E = float(rng.normal(1.7, 0.05))
        law = lambda at, E=E: E + TRUE["C"] * at ** -TRUE["alpha"]  # noqa: E731
        y = law(S[:5]) * np.exp(0.003 * np.random.default_rng(seed).standard_normal(5))
        new = law(S[-1]) * math.exp(0.003 * rng.standard_normal())
        values = [Given({"E": at}, weight) for at, weight in prior.values(0.0, float(y.min()))]
        (given,), (free,) = average_forms(S[:5], y, [S[-1]], values), average_forms(S[:5], y, [S[-1]])
        held += given.lo <= new <= given.hi
        narrower.append((given.hi - given.lo) / (free.hi - free.lo))
    assert held / n_draws > 0.95 - 3 * math.sqrt(0.95 * 0.05 / n_draws)
    assert np.median(narrower) < 0.9


@pytest.mark.parametrize("values", [{"E": 1.7}, {"alpha": 0.34, "E": 1.7}, {"C": 400.0, "E": 1.7}], ids=str)
def test_an_exact_law_with_its_constants_given_is_continued(values: dict[str, float]) -> None:
    y = TRUE["E"] + TRUE["C"] * S ** -TRUE["alpha"]
    (answer,) = average_forms(S, y, [1e12], [Given(values)])
    assert answer.y == pytest.approx(TRUE["E"] + TRUE["C"] * 1e12 ** -TRUE["alpha"], rel=1e-5)


# ----------------------------------------------------------------------------------------------------------- surfaces

OF_S, OF_D = (each.ravel() for each in np.meshgrid(np.geomspace(1e7, 1e9, 6), np.geomspace(1e9, 3e10, 5)))
SURFACE = {"A": 406.4, "B": 410.7, "E": 1.69, "alpha": 0.34, "beta": 0.28}


def surface_drawn(seed: int, scatter: float = 0.005) -> Runs:
    y = SURFACE["E"] + SURFACE["A"] * OF_S ** -SURFACE["alpha"] + SURFACE["B"] * OF_D ** -SURFACE["beta"]
    return Runs.of(OF_S, OF_D, y * np.exp(scatter * np.random.default_rng(seed).standard_normal(len(y))))


@pytest.mark.parametrize("names", [("E",), ("alpha",), ("A",), ("B", "beta"), ("A", "B", "E")], ids=str)
def test_the_rest_of_a_surface_is_that_of_least_squares(names: tuple[str, ...]) -> None:
    runs, free = surface_drawn(0), [name for name in SURFACE if name not in names]

    def residual(theta: np.ndarray) -> np.ndarray:
        of = SURFACE | {name: SURFACE[name] * math.exp(at) for name, at in zip(free, theta, strict=True)}
        fit = of["E"] + of["A"] * runs.S_N ** -of["alpha"] + of["B"] * runs.D_N ** -of["beta"]
        return np.asarray(fit - runs.y_N)

    end = least_squares(residual, np.zeros(len(free)), x_scale="jac", ftol=1e-15, xtol=1e-15, gtol=1e-15)
    pins = {name: Pin(SURFACE[name]) for name in names}
    fit = fit_given(runs, "chinchilla", pins, n_resamples=0, objective=Objective.least_squares)
    assert fit.objective == pytest.approx(2 * end.cost, rel=1e-8)
    for name, at in zip(free, end.x, strict=True):
        assert fit.constants[name].value == pytest.approx(SURFACE[name] * math.exp(at), rel=1e-4)
    for name in names:
        assert fit.constants[name].value == pytest.approx(SURFACE[name], rel=1e-12)


def test_kaplans_constants_may_be_given_in_their_own_unit() -> None:
    y = ((3e13 / OF_S) ** (0.08 / 0.1) + 5e12 / OF_D) ** 0.1
    fit = fit_given(Runs.of(OF_S, OF_D, y), "kaplan", {"N_c": Pin(3e13), "alpha_D": Pin(0.1)}, n_resamples=0)
    assert fit.constants["D_c"].value == pytest.approx(5e12, rel=1e-5)
    assert fit.constants["alpha_N"].value == pytest.approx(0.08, rel=1e-6)


@few_or_all(40, 400)
def test_a_surface_doubts_a_true_value_in_one_draw_of_twenty_and_one_far_off_in_most(n_draws: int) -> None:
    p: dict[float, list[float]] = {1.69: [], 1.2: []}
    for seed in range(n_draws):
        for E, found in p.items():
            found.append(fit_given(surface_drawn(seed), "chinchilla", {"E": Pin(E)}, n_resamples=20).pinned[0].p)
    assert np.mean(np.array(p[1.69]) < 0.05) < 0.05 + 3 * math.sqrt(0.05 * 0.95 / n_draws)
    assert np.mean(p[1.69]) == pytest.approx(0.5, abs=3 * math.sqrt(1 / 12 / n_draws))
    assert np.mean(np.array(p[1.2]) < 0.05) > 0.8


def test_a_prior_of_a_surface_lies_between_the_pinned_and_the_free() -> None:
    runs = surface_drawn(3)
    free, prior, pinned = (fit_given(runs, "chinchilla", pins) for pins in ({}, {"E": Pin(1.6, 0.03)}, {"E": Pin(1.6)}))
    betas = [fit.constants["beta"] for fit in (pinned, prior, free)]
    assert betas[0].value < betas[1].value < betas[2].value
    assert betas[0].hi - betas[0].lo < betas[1].hi - betas[1].lo < betas[2].hi - betas[2].lo
    assert free.constants == fit_surface(runs).constants
