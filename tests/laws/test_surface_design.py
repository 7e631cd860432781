"""What a design can tell, which runs to train next, and forms beside each other."""

import math
from itertools import pairwise

import numpy as np
import pytest

from rbpx.laws.names import Axis, Objective
from rbpx.laws.surface.averaged import predict_on_line
from rbpx.laws.surface.checks import AXES, compare_each, largest, mean_error
from rbpx.laws.surface.design import candidates, exponents, judge, next_runs, optimum_at, prediction_at
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs
from rbpx.laws.surface.solve import Search, minimise
from rbpx.laws.surface.surface import closed_form
from rbpx.status import Status
from tests.support.surfaces import BUDGET, TRUE, draw, grid, law, ratios, straight, surface_of


def test_a_line_is_judged_as_one_and_a_grid_is_not() -> None:
    S, D = grid(5, 4)
    good = judge(S, D)
    u, v = np.log(S), np.log(D)
    slope, level = np.polyfit(u, v, 1)
    assert good.sd_D == pytest.approx(math.sqrt(np.sum((v - level - slope * u) ** 2) / 18))
    assert (good.n_S, good.n_D, good.is_collinear) == (5, 4, False)
    fixed_ratio, square = judge(*straight(8)), judge(S[:5], S[:5] ** 2 / 1e4)
    assert (fixed_ratio.slope, fixed_ratio.sd_D) == pytest.approx((1, 0), abs=1e-9)
    assert (square.along, square.slope) == ("D", pytest.approx(0.5))
    assert fixed_ratio.is_collinear
    assert square.is_collinear
    assert fixed_ratio.away(1e8, 2e9) == pytest.approx(0, abs=1e-9)
    assert fixed_ratio.away(1e8, 4e9) == pytest.approx(math.log(2))


@pytest.mark.parametrize("n", [(2, 8), (8, 2)])
def test_fewer_than_three_sizes_or_numbers_of_tokens_are_collinear(n: tuple[int, int]) -> None:
    S, D = grid(*n)
    fit = fit_surface(Runs.of(S, D, law(S, D)), n_resamples=0)
    assert Status.collinear_design in fit.reasons
    assert fit.design is not None
    assert min(fit.design.n_S, fit.design.n_D) == 2


def test_the_condition_is_that_of_the_scaled_derivatives() -> None:
    runs = draw((1,), ratios(6, 4), 0.01).runs
    fit, line = (
        fit_surface(runs, n_resamples=0),
        surface_of("chinchilla", TRUE, Runs.of(*straight(16), law(*straight(16)))),
    )
    assert fit.surface is not None
    assert fit.design is not None
    J = fit.surface.form.evaluate(runs.x, fit.surface.theta_P[None])[1][0]
    gram = (J / np.linalg.norm(J, axis=1, keepdims=True)) @ (J / np.linalg.norm(J, axis=1, keepdims=True)).T
    eigenvalues = np.linalg.eigvalsh(gram)
    assert fit.design.condition == pytest.approx(math.sqrt(eigenvalues[-1] / eigenvalues[0]), rel=1e-6)
    on_line = judge(*straight(16), line.form.evaluate(line.x, line.theta_P[None])[1][0]).condition
    assert on_line is not None
    assert on_line > 20 * fit.design.condition


def test_constants_that_depend_on_each_other_exactly_have_no_condition() -> None:
    """An infinite one could not be written into a record."""
    S, D = grid(5, 4)
    of_one_point = np.zeros((2, len(S)))
    of_one_point[:, 0] = 1, 2
    assert judge(S, D, of_one_point).condition is None


def test_only_points_near_the_line_are_predicted() -> None:
    S, D = straight(8)
    runs = Runs.of(S, D, law(S, D))
    design = judge(S, D)
    near = predict_on_line(runs, design, 5e9, 1.1e11)
    assert near.y.value == pytest.approx(float(law(5e9, 1e11)), rel=0.02)
    assert near.away == pytest.approx(1.1)
    assert near.n_points == 8
    far = predict_on_line(runs, design, 5e9, 1e12)
    assert (far.y.value, far.away) == (None, pytest.approx(10))


def test_two_sizes_have_a_law_in_tokens_at_each_of_them() -> None:
    S, D = grid(2, 8)
    runs, design = Runs.of(S, D, law(S, D)), judge(S, D)
    at = predict_on_line(runs, design, float(S.max()), 1e11)
    assert (at.axis, at.n_points) == ("D", 8)
    assert at.y.value == pytest.approx(float(law(S.max(), 1e11)), rel=0.01)
    assert predict_on_line(runs, design, 1e8, 1e11).y.value is None


def refitted(runs: Runs, S: float, D: float, n_draws: int) -> np.ndarray:
    """Theta of least squares in ln y over draws of all runs and of one more, by refitting each: [draws, 5]."""
    all_S, all_D = np.append(runs.S_N, S), np.append(runs.D_N, D)
    surface = surface_of("chinchilla", TRUE, runs)
    noise = np.random.default_rng(0).standard_normal((n_draws, len(all_S)))
    ln_y = np.log(law(all_S, all_D)) + 0.002 * noise
    start = np.tile(surface.theta_P, (n_draws, 1))
    at, none = runs.x.at(all_S, all_D), np.zeros(5, dtype=bool)
    once = np.ones((1, len(all_S)))
    found = minimise(Search(surface.form, at, Objective.log_huber, 1e3, ln_y, once, start, none))
    assert found.converged_B.all()
    return found.theta_BP


def test_what_a_run_would_narrow_is_what_refits_with_it_narrow() -> None:
    S, D = grid(5, 4)
    noise = 0.002 * np.random.default_rng(4).standard_normal(20)
    noise *= 0.002 / math.sqrt(float(noise @ noise) / 15)
    runs = Runs.of(S, D, law(S, D))
    surface = surface_of("chinchilla", TRUE, runs)
    object.__setattr__(surface, "residual_N", noise)
    object.__setattr__(surface, "n_free", 5)
    targets = {
        "exponents": exponents(surface),
        "optimum": optimum_at(surface, BUDGET),
        "prediction": prediction_at(surface, 1e10, 2e11),
    }
    at = surface.x.at([1e10], [2e11])
    for S_new, D_new in ((1e9, 4e10), (1e7, 4e10), (1e9, 6e8)):
        theta = refitted(runs, S_new, D_new, 1500)
        brute = {
            "exponents": math.sqrt(theta[:, 3].var() + theta[:, 4].var()),
            "optimum": closed_form(surface.x, theta, BUDGET).std(),
            "prediction": surface.form.evaluate(at, theta)[0][:, 0].std(),
        }
        for name, target in targets.items():
            (chosen,) = next_runs(surface, runs, target, [S_new], [D_new], n=1)
            assert chosen.sd_after == pytest.approx(brute[name], rel=0.08), (name, S_new, D_new)
            assert chosen.sd_after < chosen.sd_before


def test_runs_are_chosen_one_after_the_other_within_the_flops() -> None:
    runs = draw((3,), grid(5, 4), 0.01).runs
    surface = fit_surface(runs, n_resamples=0).surface
    assert surface is not None
    S, D = candidates(runs, 3e19)
    assert np.all(6 * S * D <= 3e19)
    chosen = next_runs(surface, runs, exponents(surface), S, D, n=5, flops=3e19)
    assert 1 <= len(chosen) <= 5
    assert sum(each.C for each in chosen) <= 3e19
    for before, after in pairwise(chosen):
        assert after.sd_before == pytest.approx(before.sd_after)
    alone = [next_runs(surface, runs, exponents(surface), [s], [d], n=1)[0] for s, d in zip(S, D, strict=True)]
    assert chosen[0].per_flop == pytest.approx(max(each.per_flop for each in alone))
    assert next_runs(surface, runs, exponents(surface), S, D, flops=1.0) == []


@pytest.mark.parametrize("axis", AXES)
def test_the_largest_runs_are_predicted_by_the_others(axis: Axis) -> None:
    runs = draw((11,), grid(6, 5), 0.005, checkpoints=3).runs
    out = largest(runs, axis)
    of = {Axis.S: runs.S_N, Axis.D: runs.D_N, Axis.C: runs.S_N * runs.D_N}[axis]
    whole = [g for g in range(30) if of[runs.group_N == g].max() > 0.99 * of.max()]
    assert set(runs.group_N[out]) == set(whole)
    assert set(runs.group_N[~out]).isdisjoint(whole)
    ((compared,),) = compare_each([(runs, ["chinchilla"])], 60)
    tests = [each for each in compared.held_out if each.axis is axis]
    assert [test.S for test in tests] == runs.S_N[out].tolist()
    assert mean_error(tests) == pytest.approx(
        np.mean([abs(test.predicted.value / test.measured - 1) for test in tests])
    )
    assert mean_error(tests) < 0.02
    assert np.mean([test.is_inside for test in tests]) > 0.8


def test_the_form_that_runs_follow_is_the_best_by_every_measure() -> None:
    ((right, wrong),) = compare_each([(draw((12,), ratios(6, 4), 0.003).runs, ["chinchilla", "kaplan"])], 0)
    assert right.fit.aic < wrong.fit.aic
    assert right.fit.bic < wrong.fit.bic
    assert mean_error(right.held_out) < mean_error(wrong.held_out)
    assert {test.axis for test in right.held_out} == set(AXES)
