"""Fits of trainings on repeated text: against searches from many starts, and by how often R_D and R_N are held."""

import math
from collections.abc import Mapping

import numpy as np
import pytest

from rbpx.laws.names import Objective
from rbpx.laws.power.unequal import bootstrap_weights
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.runs import Runs
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
    assert fit.surface is not None
    return {name: float(value_B[b]) for name, (_, value_B) in fit.surface.constants().items()}


@pytest.mark.parametrize("kind", list(Objective))
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("truth", repeats.TRUTHS)
@pytest.mark.parametrize("seed", range(1, 6))
def test_no_search_from_many_starts_finds_less(truth: str, design: str, kind: Objective, seed: int) -> None:
    runs = repeats.draw(repeats.TRUTHS[truth], DESIGNS[design], seed)
    found = fit_surface(runs, FORM, kind, n_replicates=0).objective
    assert found is not None
    assert found <= NEAR * repeats.least_by_scipy(runs, kind)


def test_resamples_of_thousands_of_checkpoints_leave_where_they_start() -> None:
    runs = repeats.draw(repeats.NO_EXCESS, DESIGNS["few sizes"], seed=0, n_checkpoints=4_855)
    fit = fitted(runs, 20)
    assert (fit.n_points, fit.n_runs) == (4_855, 24)
    counts = bootstrap_weights(24, 20, 0)[:, runs.group_N]
    start = {name: each.value for name, each in fit.constants.items()}
    for b in range(20):
        at_start, at_end = (
            float(repeats.plain_objective(of, runs, LN_Y, fit.delta, counts[b])) for of in (start, resample(fit, b))
        )
        assert at_end < (1 - 1e-4) * at_start
    R_D = [resample(fit, b)["R_D"] for b in range(20)]
    lo, hi = fit.constants["R_D"].ends or (0.0, 0.0)
    assert hi - lo > 2 * np.std(R_D)


def held(truth: Mapping[str, float], fit: Surface) -> dict[str, bool]:
    """Whether the intervals of R_D and R_N hold what was drawn."""
    intervals = {name: fit.constants[name] for name in ("R_D", "R_N") if fit.constants[name].value is not None}
    return {
        name: (each.lo or 0.0) <= truth[name] <= (math.inf if each.hi is None else each.hi)
        for name, each in intervals.items()
    }


def n_held(truth: str, n_draws: int) -> tuple[int, int]:
    """Of how many intervals of draws over the grid, and how many of them hold the truth."""
    drawn = (repeats.draw(repeats.TRUTHS[truth], DESIGNS["grid"], seed) for seed in range(n_draws))
    of_each = [of for runs in drawn for of in held(repeats.TRUTHS[truth], fitted(runs, 100)).values()]
    return sum(of_each), len(of_each)


@pytest.mark.parametrize("truth", repeats.TRUTHS)
def test_intervals_of_R_hold_the_truth_wherever_it_is(truth: str) -> None:
    hits, n = n_held(truth, 100)
    assert hits >= 0.9 * n


@pytest.mark.parametrize("truth", ["paper", "no excess", "all excess", "no repeats"])
def test_runs_of_nearly_three_sizes_do_not_determine_R_and_it_is_said(truth: str) -> None:
    fit = fitted(repeats.draw(repeats.TRUTHS[truth], DESIGNS["few sizes"], seed=0), 40)
    assert Status.barely_determined in fit.reasons
