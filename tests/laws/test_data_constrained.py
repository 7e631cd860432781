"""Fits of trainings on repeated text: the least there is, replicates that find theirs, and R_D and R_N that say so."""

from collections.abc import Mapping

import pytest

from rbpx.laws.intervals.bootstrap import bootstrap_weights
from rbpx.laws.names import Objective
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.runs import Runs
from rbpx.laws.surface.surface import optimum
from rbpx.status import Status
from tests.support import repeats

FORM = "data_constrained"
LN_Y = Objective.log_huber
DESIGNS = {"few sizes": repeats.few_sizes(), "grid": repeats.grid()}
NEAR = 1.001  # times the least objective that scipy knows


def fitted(runs: Runs, n_replicates: int = 0) -> Surface:
    return fit_surface(runs, FORM, n_replicates=n_replicates)


def resample(fit: Surface, b: int) -> Mapping[str, float]:
    """The constants of one replicate."""
    return {name: float(value_R[1 + b]) for name, value_R in fit.surface.constants().items()}


@pytest.mark.parametrize(("truth", "design"), [("paper", "grid"), ("no excess", "few sizes"), ("no rest", "grid")])
def test_no_search_by_scipy_finds_less(truth: str, design: str) -> None:
    runs = repeats.draw(repeats.TRUTHS[truth], DESIGNS[design], seed=0)
    found = fitted(runs).objective
    assert found <= NEAR * repeats.least_by_scipy(runs, n_starts=6, n_polished=1)


def test_resamples_of_runs_find_the_least_of_their_own() -> None:
    runs = repeats.draw(repeats.NO_EXCESS, DESIGNS["few sizes"], seed=0)
    fit = fitted(runs, 2)
    weight_N = bootstrap_weights(runs.n_groups, 2, 0)[0, runs.group_N]
    found = repeats.plain_objective(resample(fit, 0), runs, LN_Y, fit.delta, weight_N)
    assert float(found) <= 1.01 * repeats.least_by_scipy(runs, weight_N=weight_N, n_starts=6, n_polished=1)


@pytest.mark.parametrize("truth", ["all repeats", "no rest"])
def test_runs_of_nearly_three_sizes_do_not_determine_R_and_it_is_said(truth: str) -> None:
    fit = fitted(repeats.draw(repeats.TRUTHS[truth], DESIGNS["few sizes"], seed=0), 40)
    assert Status.barely_determined in fit.reasons


def test_the_best_of_a_budget_on_repeated_text_has_an_interval() -> None:
    surface = fitted(repeats.draw(repeats.TRUTHS["paper"], DESIGNS["grid"], seed=1), 30).surface
    scarce, endless = (optimum(surface, 1e20, U=U) for U in (2e9, None))
    assert scarce.S.lo < scarce.S.value < scarce.S.hi
    assert scarce.y.value > endless.y.value
