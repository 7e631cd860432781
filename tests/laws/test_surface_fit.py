"""Fits of surfaces: derivatives, objectives, solver and statuses, each by a second plainer way."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import huber

from rbpx.laws.intervals.bootstrap import bootstrap_weights
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Objective
from rbpx.laws.surface.fit import FORMS, fit_surface
from rbpx.laws.surface.loss import ln_likelihood, loss
from rbpx.laws.surface.runs import Runs
from rbpx.status import Status
from tests.support.surfaces import (
    CONSTANTS,
    TRUE,
    draw,
    grid,
    law,
    runs_of,
    surface_of,
)


@pytest.mark.parametrize("form", FORMS)
def test_points_on_a_surface_give_its_constants_back(form: str) -> None:
    runs = runs_of(form)
    fit = fit_surface(runs, form, n_replicates=0)
    assert fit.status is Status.ok
    for name, value in CONSTANTS[form].items():
        assert fit.constants[name].value == pytest.approx(value, rel=1e-4), name
    ln_y = fit.surface.ln_y(runs.S_N, runs.D_N, runs.U_N)[0]
    assert np.exp(ln_y) == pytest.approx(runs.y_N, rel=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_derivatives_are_those_of_differences(form: str) -> None:
    runs = runs_of(form)
    surface = surface_of(form, CONSTANTS[form], runs)
    theta, pull = surface.theta_P * 1.01, np.random.default_rng(0).standard_normal((1, len(runs.y_N)))
    J = surface.form.evaluate(runs.x, theta[None])[1][0]
    bend = surface.form.curvature(runs.x, theta[None], J[None], pull)[0]
    for p in range(len(theta)):
        step = np.zeros(len(theta))
        step[p] = 1e-5 * max(abs(theta[p]), 0.1)
        (up, J_up), (down, J_down) = (surface.form.evaluate(runs.x, (theta + s)[None]) for s in (step, -step))
        assert J[p] == pytest.approx((up - down)[0] / (2 * step[p]), rel=2e-5, abs=1e-8)
        assert bend[p] == pytest.approx((J_up - J_down)[0] @ pull[0] / (2 * step[p]), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("objective", Objective)
def test_losses_are_those_of_their_definitions(objective: Objective) -> None:
    ln_fit, ln_y = np.linspace(-1, 1, 41)[None], np.full((1, 41), 0.013)
    r = ln_fit - ln_y if objective is Objective.log_huber else np.exp(ln_fit) - np.exp(ln_y)
    value_BN, first_BN, second_BN, above_BN = loss(objective, 0.2, ln_fit, ln_y)
    assert value_BN == pytest.approx(r**2 if objective is Objective.least_squares else huber(0.2, r))
    ends = [loss(objective, 0.2, ln_fit + step, ln_y) for step in (1e-6, -1e-6)]
    assert first_BN == pytest.approx((ends[0][0] - ends[1][0]) / 2e-6, abs=1e-8)
    assert second_BN == pytest.approx((ends[0][1] - ends[1][1]) / 2e-6, abs=1e-6)
    # The parabola that touches lies above: at another residual r' it is loss + slope dr + weight dr^2 / 2.
    weight = above_BN / (1.0 if objective is Objective.log_huber else np.exp(2 * ln_fit))
    slope = first_BN / (1.0 if objective is Objective.log_huber else np.exp(ln_fit))
    for other in (-0.5, 0.0, 0.4):
        value = other**2 if objective is Objective.least_squares else huber(0.2, other)
        assert np.all(value_BN + slope * (other - r) + weight * (other - r) ** 2 / 2 >= value - 1e-12)


def test_likelihood_is_normal_for_squares_and_nearly_laplaces_for_a_small_delta() -> None:
    r = np.random.default_rng(1).standard_normal(200)
    sd, mean_abs = math.sqrt(float(np.mean(r**2))), float(np.abs(r).mean())
    normal = float(np.sum(-(r**2) / (2 * sd**2) - math.log(sd * math.sqrt(2 * math.pi))))
    laplace = float(np.sum(-np.abs(r) / mean_abs - math.log(2 * mean_abs)))
    assert ln_likelihood(Objective.least_squares, 1.0, float(np.sum(r**2)), 200) == pytest.approx(normal)
    assert ln_likelihood(Objective.log_huber, 1e3, float(huber(1e3, r).sum()), 200) == pytest.approx(normal, abs=1e-3)
    assert ln_likelihood(Objective.log_huber, 1e-6, float(huber(1e-6, r).sum()), 200) == pytest.approx(
        laplace, abs=1e-2
    )


def test_refits_of_resamples_are_no_worse_than_those_of_scipy() -> None:
    runs = draw((3,), grid(5, 4), 0.01).runs
    fit = fit_surface(runs, n_replicates=25, seed=4)
    weights = bootstrap_weights(20, 25, seed=4)
    S, D, y = runs.S_N / 1e8, runs.D_N / 1e9, runs.y_N
    for b in (0, 7, 19):
        of = {name: values[1 + b] for name, values in fit.surface.constants().items()}

        def objective(theta: np.ndarray, weight_N: np.ndarray = weights[b]) -> float:
            A, B, E, alpha, beta = theta
            return float(weight_N @ huber(1e-3, np.log(E + A * S**-alpha + B * D**-beta) - np.log(y)))

        found = (of["A"] * 1e8 ** -of["alpha"], of["B"] * 1e9 ** -of["beta"], of["E"], of["alpha"], of["beta"])
        options = {"maxfev": 4000, "xatol": 1e-9, "fatol": 1e-12}
        best = minimize(
            objective, 1.03 * np.array(found), method="Nelder-Mead", bounds=[(0, None)] * 5, options=options
        )
        assert objective(np.array(found)) <= best.fun * (1 + 1e-7)


@pytest.mark.parametrize("objective", [Objective.huber, Objective.least_squares])
def test_objectives_in_y_are_sums_in_the_unit_of_y(objective: Objective) -> None:
    runs = draw((6,), grid(5, 4), 0.01).runs
    fit = fit_surface(runs, objective=objective, delta=0.02, n_replicates=0)
    r = np.exp(fit.surface.ln_y(runs.S_N, runs.D_N)[0]) - runs.y_N
    plain = np.sum(r**2) if objective is Objective.least_squares else huber(0.02, r).sum()
    assert fit.objective == pytest.approx(plain, rel=1e-9)
    assert fit.constants["alpha"].value == pytest.approx(TRUE["alpha"], abs=0.1)


def test_checkpoints_of_a_run_move_together() -> None:
    drawn = draw((8,), grid(5, 4), 0.01, checkpoints=4)
    together = fit_surface(drawn.runs, n_replicates=100).constants["E"]
    apart = fit_surface(Runs.of(drawn.runs.S_N, drawn.runs.D_N, drawn.runs.y_N), n_replicates=100).constants["E"]
    assert together.value == apart.value
    assert (together.hi - together.lo) > 1.3 * (apart.hi - apart.lo)


def test_documents_widen_what_runs_leave() -> None:
    runs = draw((9,), grid(5, 4), 0.002).runs
    shared = np.exp(0.02 * np.random.default_rng(0).standard_normal((150, 1)))
    with_documents = Runs.of(runs.S_N, runs.D_N, runs.y_N, y_replicates=runs.y_N * shared)
    narrow, wide = (fit_surface(each).surface for each in (runs, with_documents))
    (a, b), at = (narrow.predict(1e8, 5e9), wide.predict(1e8, 5e9)), float(law(np.array([1e8]), np.array([5e9]))[0])
    assert (b.hi - b.lo) / 2 / at == pytest.approx(2.13 * 0.02, rel=0.25)
    assert (b.hi - b.lo) > 3 * (a.hi - a.lo)


def test_runs_that_hardly_determine_an_exponent_are_said_to() -> None:
    noisy, precise = (fit_surface(draw((2,), grid(4, 4), scatter).runs) for scatter in (0.03, 0.001))
    of = noisy.constants["beta"]
    assert of.hi - of.lo >= of.value
    assert Status.barely_determined in noisy.reasons
    assert precise.status is Status.ok


def test_size_that_does_not_matter_has_no_exponent() -> None:
    S, D = grid(5, 4)
    fit = fit_surface(Runs.of(S, D, (1.5 + 900 * D**-0.3) * (S / 1e8) ** 0.02), n_replicates=0)
    assert fit.constants["A"].value == 0
    assert fit.constants["alpha"].value is None
    assert set(fit.reasons) == {Status.at_bound, Status.barely_determined}


@pytest.mark.parametrize(
    ("y", "n", "status"),
    [
        (lambda S, D: law(S, D), 5, Status.too_few_sizes),
        (lambda S, D: np.full(len(S), 2.0), 20, Status.no_trend),
        (lambda S, D: np.where(S == S[0], 0.0, 2.0), 20, Status.not_positive),
        (lambda S, D: np.where(S == S[0], np.nan, 2.0), 20, Status.not_positive),
    ],
)
def test_points_without_a_surface_have_a_status_and_no_numbers(y: Any, n: int, status: Status) -> None:
    S, D = (each[:n] for each in grid(5, 4))
    fit = fit_surface(Runs.of(S, D, y(S, D)))
    assert (fit.status, fit.surface, fit.objective) == (status, None, None)
    assert all(each.value is None for each in fit.constants.values())


@pytest.mark.parametrize(
    ("S", "D", "U", "words"),
    [
        ([1.0, 0.0], [1.0, 1.0], None, "S must be positive"),
        ([1.0, 1.0], [1.0, math.inf], None, "D must be positive"),
        ([1.0, 1.0], [1.0, 1.0], [-1.0, 1.0], "U must be positive"),
        ([1.0, 1.0], [1.0], None, "one shape"),
    ],
)
def test_points_that_are_nowhere_are_refused(S: Any, D: Any, U: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Runs.of(S, D, [1.0, 1.0], U)


def test_a_number_that_no_resample_determines_has_no_ends() -> None:
    surface = surface_of("kaplan", CONSTANTS["kaplan"], runs_of("kaplan"))
    assert surface.estimate(np.array([1.0, *[1e300, 1.0] * 50])) == Estimate(1.0)


@pytest.mark.parametrize(("form", "objective"), list(zip(FORMS, Objective, strict=True))[:2])
def test_whatever_the_points_intervals_reach_their_numbers(form: str, objective: Objective) -> None:
    rng = np.random.default_rng([len(form), len(objective)])
    n = int(rng.integers(9, 20))
    S, D = 10 ** rng.uniform(5, 11, n), 10 ** rng.uniform(7, 12, n)
    rising = 1e-5 * (0.5 + 0.01 * np.log(S) + 0.02 * np.log(D))
    for y, sizes in ((np.exp(rng.normal(0, 1, n)), S), (rising, np.full(n, 1e8))):
        fit = fit_surface(Runs.of(sizes, D, y, np.full(n, 1e9)), form, objective, n_replicates=20)
        assert (fit.surface is None) == (fit.objective is None)
        for each in fit.constants.values():
            assert each.lo is None or each.lo <= each.value
            assert each.hi is None or each.hi >= each.value
            assert each.value is None or each.value >= 0
