"""The law of a run under any schedule, and where a run underway ends: by loops and by worlds with known constants."""

from dataclasses import replace

import numpy as np
import pytest

from rbpx.laws import fit_schedule
from rbpx.laws.schedule.ending import Ending, backtest, predict_ending
from rbpx.laws.schedule.law import ConstantsPrior, ScheduleLaw, Training, fit_trainings
from rbpx.status import Status
from tests.support.raised import FINISHED, UNDERWAY
from tests.support.schedules import ALPHA, A, C, E, clocks, losses, public, rates, run

KNOWN = {"E": E, "A": A, "alpha": ALPHA, "C": C}


def end_of(seen: Training, up: float = 0.0) -> float:
    """The loss that the known constants give at the end of a plan."""
    return float(losses(seen.rate_T, scatter=0, up=up)[-1])


def holds(ending: Ending, truth: float) -> bool:
    ends = ending.y.ends
    return ends is not None and ends[0] <= truth <= ends[1]


@pytest.mark.parametrize("shape", ["cosine", "constant", "wsd"])
def test_a_plan_is_predicted_as_a_loop_over_its_steps_says(shape: str) -> None:
    plan, peak = rates(shape, 3000, 300), 4e-4
    x_T, a_T = clocks(plan, peak)
    law = ScheduleLaw(ConstantsPrior(np.array([E, np.log(A), ALPHA, np.log(C)]), np.eye(4)), peak)
    np.testing.assert_allclose(law.predict(plan), E + A * x_T**-ALPHA - C * a_T, rtol=1e-12)


def test_the_constants_of_a_drawn_world_are_found() -> None:
    plans = [rates("cosine"), rates("wsd"), rates("constant", 48000)]
    law = fit_schedule(plans, [losses(plan, 0.002, seed) for seed, plan in enumerate(plans)])
    assert law.status is Status.ok
    for name, value in KNOWN.items():
        each = law.constants[name]
        assert each.value == pytest.approx(value, rel=0.02), name
        assert (each.lo or 0) <= value <= (each.hi or 0), name
    np.testing.assert_allclose(law.predict(plans[0])[2400:], losses(plans[0], 0)[2400:], atol=0.002)


def test_unknown_losses_and_a_run_that_is_not_at_its_end_are_taken() -> None:
    plan = rates()
    seen = losses(plan)[:18000]
    seen[::2] = np.nan
    known = np.flatnonzero(np.isfinite(seen))
    law = fit_trainings([Training(plan, known + 1.0, seen[known])])
    assert fit_schedule([plan], [seen]).constants == law.constants


def test_the_best_constants_are_those_of_a_search_over_the_posterior() -> None:
    """The law of 40 states in 40 bins, beside a grid around its constants."""
    mean, cov = np.array([2.5, np.log(0.5), 0.45, np.log(0.1)]), np.diag([0.1, 0.2, 0.05, 0.3]) ** 2
    plan = rates()
    x_T, a_T = clocks(plan)
    step_N = 1 + np.searchsorted(x_T, np.geomspace(x_T[2500], x_T[-1] * 0.999, 40))
    loss_N = losses(plan)[step_N - 1]
    found = fit_trainings([Training(plan, step_N.astype(float), loss_N)], ConstantsPrior(mean, cov)).at

    def minus_ln_posterior(at: np.ndarray) -> float:
        off = at[0] + np.exp(at[1]) * x_T[step_N - 1] ** -at[2] - np.exp(at[3]) * a_T[step_N - 1] - loss_N
        z = (at - mean) / np.sqrt(np.diag(cov))
        return float(np.sum((off / (0.003 * 2)) ** 2) + z @ z) / 2  # 40 states count as 10

    best, width = minus_ln_posterior(found.mean), np.sqrt(np.diag(found.cov))
    for n in range(4):
        for way in (-0.1, 0.1):
            assert minus_ln_posterior(found.mean + way * width * np.eye(4)[n]) > best
    curve = [minus_ln_posterior(found.mean + way * found.cov[0] / width[0]) - best for way in (-0.1, 0.1)]
    assert curve == pytest.approx([0.005] * 2, rel=0.03)  # a tenth of E's standard deviation, the others following


def test_a_run_underway_ends_where_the_constants_say() -> None:
    truth = end_of(UNDERWAY)
    alone, of_size = predict_ending(UNDERWAY, []), predict_ending(UNDERWAY, FINISHED, backtest(FINISHED))
    other = predict_ending(UNDERWAY, [replace(of, S=4e7, loss_N=of.loss_N + 0.3) for of in FINISHED])
    assert [each.rests_on for each in (alone, of_size, other)] == ["itself", "same_size", "other_size"]
    errors = [abs((each.y.value or 0.0) - truth) for each in (alone, of_size, other)]
    assert errors == pytest.approx([0, 0, 0], abs=0.012)
    assert errors[1] < 0.003
    assert all(holds(each, truth) for each in (alone, of_size, other))
    widths = [ends[1] - ends[0] for each in (of_size, other, alone) if (ends := each.y.ends)]
    assert widths == sorted(widths)


def test_what_is_to_come_is_progress_and_annealing() -> None:
    ending = predict_ending(UNDERWAY, FINISHED)
    x_T, a_T = clocks(UNDERWAY.rate_T)
    expected = (A * x_T[11999] ** -ALPHA - A * x_T[-1] ** -ALPHA, C * (a_T[-1] - a_T[11999]))
    assert ending.to_come == pytest.approx(expected, abs=0.004)


def test_with_a_finished_run_of_the_same_plan_its_drop_is_the_answer() -> None:
    finished = run(seed=1, up=0.02)
    ending = predict_ending(UNDERWAY, [finished])
    gap = np.median([UNDERWAY.loss_N[n] - finished.loss_N[n] for n in (117, 118, 119)])
    assert (ending.rests_on, ending.reasons) == ("same_plan", ())
    assert ending.y.value == pytest.approx(np.median(finished.loss_N[-3:]) + gap, abs=1e-12) == ending.drop
    past = [
        (
            UNDERWAY.loss_N[at] - finished.loss_N[at],
            np.median(UNDERWAY.loss_N[-3:]) - np.median(finished.loss_N[117:120]),
        )
        for at in ([45, 46, 47], [69, 70, 71], [93, 94, 95])
    ]
    square = np.mean([(np.median(before) - after) ** 2 for before, after in past]) / 0.008**2
    widened = max(1.0, np.sqrt((10 + square) / 11))
    assert ending.y.ends == pytest.approx([ending.drop - 0.016 * widened, ending.drop + 0.016 * widened], abs=1e-9)


def test_one_state_is_enough_for_the_drop_of_a_finished_run_of_the_same_plan() -> None:
    finished, first = run(seed=1, up=0.02), replace(UNDERWAY, step_N=np.array([2500.0]), loss_N=UNDERWAY.loss_N[24:25])
    ending = predict_ending(first, [finished])
    assert (ending.rests_on, ending.widened) == ("same_plan", 1.0)
    assert ending.y.value == pytest.approx(np.median(finished.loss_N[-3:]) + first.loss_N[0] - finished.loss_N[24])


def test_backtests_that_fail_widen_the_interval() -> None:
    plain = predict_ending(UNDERWAY, FINISHED, [1.0, 1.0])
    wide = predict_ending(UNDERWAY, FINISHED, [9.0, 39.0])
    assert plain.widened == 1.0
    assert wide.widened == pytest.approx(np.sqrt((10 + 48) / 13), rel=0.02)
    assert (wide.y.hi or 0) - (wide.y.value or 0) == pytest.approx(
        wide.widened * ((plain.y.hi or 0) - (plain.y.value or 0))
    )


def test_a_run_is_not_backtested_by_a_run_that_shares_its_beginning() -> None:
    trunk = run("constant", 1)
    branch = replace(run("wsd", 1), step_N=trunk.step_N)
    branch = replace(branch, loss_N=np.r_[trunk.loss_N[:200], branch.loss_N[200:]])
    assert backtest([trunk, branch]) == []
    assert len(backtest([trunk, branch, run("cosine", 3)])) == 3


def test_a_law_says_what_it_lacks() -> None:
    constant, early = rates("constant"), rates()
    assert fit_schedule([constant], [losses(constant)]).status is Status.no_decay_seen
    for plan, loss, status in (
        (early, losses(early)[:2000], Status.too_early),
        (np.r_[early, early], losses(early), Status.rate_rises),
        (early, np.zeros(24000), Status.not_positive),
    ):
        law = fit_schedule([plan], [loss])
        assert law.status is status
        assert law.constants["E"].value is None
        assert np.isnan(law.predict(plan)).all()


def test_one_finished_run_makes_early_states_enough() -> None:
    early = run(seed=9).until(2500)
    assert early.n_states == 1
    assert holds(predict_ending(early, FINISHED), end_of(early))


def test_a_run_that_leaves_its_law_is_named_with_its_first_step_and_a_spike_is_no_departure() -> None:
    spiked, left = UNDERWAY.loss_N.copy(), UNDERWAY.loss_N.copy()
    spiked[99] += 0.2
    left[104:] += 0.1
    spike = predict_ending(replace(UNDERWAY, loss_N=spiked), FINISHED)
    assert (spike.spikes, spike.left_at, spike.status) == ((10000,), None, Status.ok)
    gone = predict_ending(replace(UNDERWAY, loss_N=left), FINISHED)
    assert (gone.left_at, gone.status) == (10500, Status.leaves_law)
    assert [predict_ending(of, []).spikes for of in (UNDERWAY, *FINISHED)] == [(), (), ()]


def test_mistakes_of_callers_are_said() -> None:
    plan = rates()
    for given, said in (
        (([], []), "lists with an array for each run"),
        (([-plan], [losses(plan)]), "rates of a run are numbers from 0 up"),
        (([plan], [np.ones(30000)]), r"losses \[30000\] but rates \[24000\]"),
    ):
        with pytest.raises(ValueError, match=said):
            fit_schedule(*given)


def test_public_runs_end_where_they_are_predicted_at_half_from_two_finished_ones() -> None:
    """Seven plans of 100 million parameters from a long constant run and a short cosine, which share no beginning."""
    runs = public()
    finished = [runs["100M constant_72000"], runs["100M cosine_24000"]]
    tested = backtest(finished)
    errors = []
    for name, whole in runs.items():
        if name.startswith("100M") and all(whole is not of for of in finished):
            ending = predict_ending(whole.until(len(whole.rate_T) / 2), finished, tested)
            truth = float(np.median(whole.loss_N[-3:]))
            errors.append(abs((ending.y.value or 0.0) - truth))
            assert holds(ending, truth), name
    assert len(errors) == 7
    assert (np.median(errors) < 0.010, max(errors) < 0.018) == (True, True)
