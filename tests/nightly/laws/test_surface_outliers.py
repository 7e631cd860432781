"""How often a run is accused in clean sets of runs, and how often one that diverged is named; counted."""

import math

import numpy as np
import pytest

from rbpx.laws.surface.outliers import LEVEL, common_shift, outliers
from rbpx.laws.surface.runs import Runs
from tests.support.surfaces import grid, law, ratios

SETS = {8: ratios(4, 2), 18: grid(6, 3), 40: grid(8, 5)}
SCATTER = 0.01


def accused(n: int, world: int, above: float = 0.0) -> tuple[int, set[int]]:
    """A run that lies so far above the law, and those that are named."""
    S, D = SETS[n]
    rng = np.random.default_rng([55, n, world])
    y = law(S, D) * np.exp(SCATTER * rng.standard_normal(n))
    run = int(rng.integers(n))
    y[run] *= 1 + above
    return run, {each.run for each in outliers(Runs.of(S, D, y))}


@pytest.mark.parametrize("n", SETS)
def test_clean_sets_accuse_no_more_often_than_is_said(n: int) -> None:
    sets = 200
    found = sum(bool(accused(n, world)[1]) for world in range(sets))
    assert found <= LEVEL * sets + 3 * math.sqrt(LEVEL * (1 - LEVEL) * sets)


@pytest.mark.parametrize(("n", "above", "least"), [(8, 0.65, 0.5), (18, 0.65, 1), (18, 0.1, 0.9), (40, 0.1, 0.9)])
def test_a_run_that_diverged_is_named_and_no_other(n: int, above: float, least: float) -> None:
    named = [accused(n, world, above) for world in range(30)]
    assert np.mean([run in found for run, found in named]) >= least
    assert sum(bool(found - {run}) for run, found in named) <= 2


@pytest.mark.parametrize("n", SETS)
def test_clean_sets_have_largest_runs_that_lie_off_no_more_often_than_is_said(n: int) -> None:
    sets, (S, D) = 200, SETS[n]
    y = [
        law(S, D) * np.exp(SCATTER * np.random.default_rng([56, n, world]).standard_normal(n)) for world in range(sets)
    ]
    found = sum(common_shift(Runs.of(S, D, each)) is not None for each in y)
    assert found <= 0.02 * sets + 3 * math.sqrt(0.02 * 0.98 * sets)
