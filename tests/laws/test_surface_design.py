"""What a design can tell, which runs to train next, and forms beside each other."""

import math
from itertools import pairwise

import numpy as np
import pytest

from rbpx.laws.names import Axis
from rbpx.laws.surface.averaged import draw_averaged, predict_averaged, predict_on_line
from rbpx.laws.surface.checks import AXES, held_out, is_largest, mean_error
from rbpx.laws.surface.decision import best_run
from rbpx.laws.surface.design import judge_design
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.next_runs import LEAST, best_values, candidates, next_runs, predictions
from rbpx.laws.surface.runs import Runs
from rbpx.status import Status
from tests.support.surfaces import BUDGET, draw, grid, law, ratios, straight, true_optimum


def test_a_line_is_judged_as_one_and_a_grid_is_not() -> None:
    S, D = grid(5, 4)
    good = judge_design(S, D)
    u, v = np.log(S), np.log(D)
    slope, level = np.polyfit(u, v, 1)
    assert good.sd_D == pytest.approx(math.sqrt(np.sum((v - level - slope * u) ** 2) / 18))
    assert (good.n_S, good.n_D, good.is_collinear) == (5, 4, False)
    fixed_ratio, square = judge_design(*straight(8)), judge_design(S[:5], S[:5] ** 2 / 1e4)
    assert (fixed_ratio.slope, fixed_ratio.sd_D) == pytest.approx((1, 0), abs=1e-9)
    assert (square.along, square.slope) == ("D", pytest.approx(0.5))
    assert fixed_ratio.is_collinear
    assert square.is_collinear
    assert fixed_ratio.away(1e8, 2e9) == pytest.approx(0, abs=1e-9)
    assert fixed_ratio.away(1e8, 4e9) == pytest.approx(math.log(2))


def test_five_sizes_at_one_ratio_are_refused_for_the_ratio_and_three_for_their_number() -> None:
    S, D = straight(8)
    few = [fit_surface(Runs.of(S[:n], D[:n], law(S[:n], D[:n])), n_replicates=0).status for n in (3, 4, 5)]
    assert few == [Status.too_few_sizes, Status.collinear_design, Status.collinear_design]


def test_the_condition_is_that_of_the_scaled_derivatives() -> None:
    runs = draw((1,), ratios(6, 4), 0.01).runs
    fit = fit_surface(runs, n_replicates=0)
    J = fit.surface.form.evaluate(runs.x, fit.surface.theta_P[None])[1][0]
    gram = (J / np.linalg.norm(J, axis=1, keepdims=True)) @ (J / np.linalg.norm(J, axis=1, keepdims=True)).T
    eigenvalues = np.linalg.eigvalsh(gram)
    assert fit.design.condition == pytest.approx(math.sqrt(eigenvalues[-1] / eigenvalues[0]), rel=1e-6)


def test_constants_that_depend_on_each_other_exactly_have_no_condition() -> None:
    """An infinite one could not be written into a record."""
    S, D = grid(5, 4)
    of_one_point = np.zeros((2, len(S)))
    of_one_point[:, 0] = 1, 2
    assert judge_design(S, D, of_one_point).condition is None


def test_only_points_near_the_line_are_predicted() -> None:
    S, D = straight(8)
    runs = Runs.of(S, D, law(S, D))
    design = judge_design(S, D)
    near = predict_on_line(runs, design, 5e9, 1.1e11)
    assert near.y.value == pytest.approx(float(law(5e9, 1e11)), rel=0.02)
    assert near.away == pytest.approx(1.1)
    far = predict_on_line(runs, design, 5e9, 1e12)
    assert (far.y.value, far.away) == (None, pytest.approx(10))


def test_two_sizes_have_a_law_in_tokens_at_each_of_them() -> None:
    S, D = grid(2, 8)
    runs, design = Runs.of(S, D, law(S, D)), judge_design(S, D)
    at = predict_on_line(runs, design, float(S.max()), 1e11)
    assert at.axis == "D"
    assert at.y.value == pytest.approx(float(law(S.max(), 1e11)), rel=0.01)
    assert predict_on_line(runs, design, 1e8, 1e11).y.value is None


def one_budget(n: int = 9, scatter: float = 0.0) -> Runs:
    """Runs of 1e19 FLOPs on both sides of the best size."""
    S = true_optimum(1e19) * np.geomspace(1 / 8, 8, n)
    D = 1e19 / 6 / S
    return Runs.of(S, D, law(S, D) * np.exp(scatter * np.random.default_rng(2).standard_normal(n)))


def test_one_budget_has_a_best_size_and_predicts_within_three_times_its_compute() -> None:
    runs, best = one_budget(scatter=0.001), true_optimum(1e19)
    fits = fits_of(runs)
    assert fits[0].design.is_budget
    assert fits[0].only_budget == pytest.approx(1e19)
    found = best_run(fits, 1e19)
    assert found.S.lo < best < found.S.hi
    assert found.S.value == pytest.approx(best, rel=0.1)
    assert best_run(fits, 4e19).S.value is None
    points = [(best * s, 1e19 * m / 6 / best / s) for m in (1, 2.9, 1 / 2.9, 3.2, 1 / 3.2) for s in (0.4, 1, 3)]
    answers = predict_averaged(fits, points, ())
    for (S, D), answer in zip(points[:9], answers, strict=False):
        assert answer.y.lo < law(np.array(S), np.array(D)) < answer.y.hi
    here, there = (math.log(each.y.hi / each.y.lo) for each in (answers[1], answers[4]))
    assert here < 0.01
    assert there > 2 * 1.96 * 0.03 * math.log(2.9)  # what compute does is not known to more
    assert {answer.y.value for answer in answers[9:]} == {None}


def test_tokens_in_proportion_to_size_are_no_budget() -> None:
    design = judge_design(*straight(8))
    assert (design.is_budget, fits_of(Runs.of(*straight(8), law(*straight(8))))[0].finds_best(1e20)) == (False, False)


def test_more_than_thirty_times_the_compute_is_beyond() -> None:
    S, D = grid(5, 4)
    runs = Runs.of(S, D, law(S, D))
    near, far, one_axis = predict_averaged(
        fits_of(runs), [(5 * S.max(), 5 * D.max()), (8 * S.max(), 8 * D.max()), (11 * S.max(), D.max())], ()
    )
    assert (near.reasons, near.beyond) == ((), pytest.approx(25))
    assert (far.reasons, far.beyond) == ((Status.beyond,), pytest.approx(64))
    assert (one_axis.reasons, one_axis.beyond) == ((Status.beyond,), pytest.approx(11))


def fits_of(runs: Runs) -> list[Surface]:
    return [fit_surface(runs, form, n_replicates=0) for form in ("chinchilla", "kaplan")]


def test_draws_of_the_surface_are_those_of_its_predictions() -> None:
    runs = draw((3,), grid(5, 4), 0.01).runs
    points = [(1e10, 2e11), (3e8, 1e10), (1e7, 4e11)]
    there = Runs.of(*np.array(points).T, np.ones(3))
    drawn = draw_averaged(fits_of(runs), there, 8000)
    ln_y, scatter = drawn
    new = ln_y + scatter[:, None] * np.random.default_rng(1).standard_normal(ln_y.shape)
    for at, answer in enumerate(predict_averaged(fits_of(runs), points, ())):
        lo, middle, hi = np.quantile(new[:, at], (0.025, 0.5, 0.975))
        width = math.log(answer.y.hi / answer.y.lo)
        assert middle == pytest.approx(math.log(answer.y.value), abs=0.03 * width)
        assert (lo, hi) == pytest.approx((math.log(answer.y.lo), math.log(answer.y.hi)), abs=0.06 * width)


def test_the_best_of_a_budget_is_that_of_the_law_and_no_place_of_a_grid() -> None:
    runs = Runs.of(*grid(5, 4), law(*grid(5, 4)))
    for C in np.geomspace(1e20, 3e20, 5).tolist():
        wanted, S = best_values(runs, [C]), true_optimum(C)
        (value,) = wanted.of(np.log(law(wanted.S, wanted.D))[None])[0]
        assert value == pytest.approx(math.log(law(np.array([S]), np.array([C / 6 / S]))[0]), abs=1e-5)


@pytest.mark.parametrize("asked", ["prediction", "value"])
def test_what_a_run_narrows_is_what_its_value_explains(asked: str) -> None:
    """The variance that a regression of what is asked for on what a run would show leaves, over draws."""
    runs = draw((4,), grid(5, 4), 0.01).runs
    fits = fits_of(runs)
    wanted = {
        "prediction": lambda: predictions([(1e10, 2e11)]),
        "value": lambda: best_values(runs, [BUDGET]),
    }[asked]()
    (plan,) = next_runs(fits, wanted, 2)
    at = Runs.of(
        np.append(wanted.S, [run["S"] for run in plan.runs]),
        np.append(wanted.D, [run["D"] for run in plan.runs]),
        np.ones(len(wanted.S) + len(plan.runs)),
    )
    drawn = draw_averaged(fits, at, 40_000, seed=5)
    ln_y, scatter = drawn
    n = len(wanted.S)
    (target,) = wanted.of(ln_y[:, :n]).T
    noise = math.sqrt(np.mean(scatter**2)) * np.random.default_rng(2).standard_normal((len(ln_y), len(plan.runs)))
    shown = np.column_stack([np.ones(len(ln_y)), ln_y[:, n:] + noise])
    assert plan.runs[0]["sd_before"] == pytest.approx(target.std(), rel=0.08)
    left = [target.std()]
    for used, run in enumerate(plan.runs, 1):
        rest = target - shown[:, : used + 1] @ np.linalg.lstsq(shown[:, : used + 1], target)[0]
        left.append(rest.std())
        assert run["sd_after"] / run["sd_before"] == pytest.approx(left[-1] / left[-2], rel=0.08)


def test_runs_are_chosen_one_after_the_other_within_the_flops() -> None:
    runs = draw((3,), grid(5, 4), 0.01).runs
    fits, wanted, flops = fits_of(runs), best_values(runs, [BUDGET]), 3e19
    S, D = candidates(runs, flops)
    assert 6 / 7 * flops < (6 * S * D).max() <= flops
    assert np.all(6 * S * D >= 0.999 * (6 * runs.S_N * runs.D_N).min())
    per_flop, budget = next_runs(fits, wanted, 5, flops)
    assert (per_flop.name, budget.name) == ("per_flop", "budget")
    for plan in (per_flop, budget):
        assert 1 <= len(plan.runs) <= 5
        assert sum(run["C"] for run in plan.runs) <= flops
        for before, after in pairwise(plan.runs):
            assert after["sd_before"] == pytest.approx(before["sd_after"])
        for run in plan.runs:
            assert run["narrowed"] >= LEAST
            assert run["C"] == pytest.approx(6 * run["S"] * run["D"])
    assert budget.sd <= per_flop.sd
    assert budget.runs[-1]["sd_after"] == pytest.approx(budget.sd)
    assert per_flop.runs[0]["per_flop"] >= budget.runs[0]["per_flop"] * 0.999
    assert next_runs(fits, wanted, flops=1.0) == []


def test_how_sure_the_best_of_a_budget_is_does_not_depend_on_which_runs_could_be_trained() -> None:
    """Draws whose least lies at an end of the sizes, a few in a thousand, would outweigh all others."""
    S, ratio = (each.ravel() for each in np.meshgrid(np.geomspace(2e7, 8e8, 6), [10.0, 20.0, 60.0]))
    y = law(S, S * ratio) * np.exp(0.002 * np.random.default_rng(2).standard_normal(18))
    fits, C = fits_of(Runs.of(S, S * ratio, y)), 60 * float((S**2 * ratio).max())
    best = best_run(fits, C, seed=0)
    (at_best,) = predict_averaged(fits, [(best.S.value, best.D.value)], ())
    of_interval = math.log(at_best.y.hi / at_best.y.lo) / (2 * 1.96)
    for flops in (math.inf, C, 5 * C):
        plan = next_runs(fits, best_values(fits[0].runs, [C]), 1, flops)[-1]
        assert plan.runs[0]["sd_before"] == pytest.approx(of_interval, rel=0.3)


def test_where_more_runs_hardly_help_none_is_named() -> None:
    """Hundreds of runs say what a point in their midst is, and one more does not."""
    S, D = grid(20, 20)
    runs = Runs.of(S, D, law(S, D) * np.exp(0.01 * np.random.default_rng(0).standard_normal(400)))
    (plan,) = next_runs(fits_of(runs), predictions([(1e8, 5e9)]), 3)
    assert plan.runs == ()
    assert plan.next_narrows < LEAST


@pytest.mark.parametrize("axis", AXES)
def test_the_largest_runs_are_predicted_by_the_others(axis: Axis) -> None:
    runs = draw((11,), grid(6, 5), 0.005, checkpoints=3).runs
    out = is_largest(runs, axis)
    of = {Axis.S: runs.S_N, Axis.D: runs.D_N, Axis.C: runs.S_N * runs.D_N}[axis]
    whole = [g for g in range(30) if of[runs.group_N == g].max() > 0.99 * of.max()]
    assert set(runs.group_N[out]) == set(whole)
    assert set(runs.group_N[~out]).isdisjoint(whole)
    tests = [each for each in held_out(runs, "chinchilla", 60) if each.axis is axis]
    assert [test.S for test in tests] == runs.S_N[out].tolist()
    assert mean_error(tests) == pytest.approx(
        np.mean([abs(test.predicted.value / test.measured - 1) for test in tests])
    )
    assert mean_error(tests) < 0.02
    assert np.mean([test.is_inside for test in tests]) > 0.8


def test_nothing_is_predicted_along_an_axis_of_two_values() -> None:
    """Without the longest trainings two numbers of tokens are left: any curve goes through them, at no cost."""
    rng = np.random.default_rng(0)
    S_N, D_N = (each.ravel() for each in np.meshgrid([1e4, 8e4, 6.4e5, 5.12e6], [1e6, 5e6, 2.5e7]))
    y_N = (0.7 + 33 * S_N**-0.36 + 140 * D_N**-0.29) * np.exp(0.005 * rng.standard_normal(12))
    found = []
    for order_N in (np.arange(12), rng.permutation(12)):
        runs = Runs.of(S_N[order_N], D_N[order_N], y_N[order_N])
        tests = held_out(runs, "chinchilla", 0)
        assert {each.axis for each in tests} == {Axis.S, Axis.C}
        found.append({(each.axis, each.S, each.D): each.predicted.value for each in tests})
    assert found[0] == pytest.approx(found[1], rel=1e-6)
