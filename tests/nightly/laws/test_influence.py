"""How far a prediction over a surface moves with one run left out, against all fits without a run."""

import numpy as np
import pytest

from rbpx.laws.surface.averaged import most_influential as moved_most_on_surface
from rbpx.laws.surface.averaged import predict_averaged as predict_over_surface
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.runs import Runs
from tests.support.coverage import both_forms

POINTS = [(1e10, 2e11), (3e9, 6e10)]


def grid(off_at: int, states: bool) -> Runs:
    """Losses of Chinchilla's form at five sizes and numbers of tokens, one training 4 % off; its checkpoints too."""
    size, tokens = (axis.ravel() for axis in np.meshgrid(np.geomspace(1e7, 1e9, 5), np.geomspace(1e9, 2e10, 5)))
    y = (1.7 + 400 * size**-0.34 + 410 * tokens**-0.28) * np.exp(np.random.default_rng(1).normal(0, 0.003, 25))
    y[off_at] *= 1.04
    if not states:
        return Runs.of(size, tokens, y)
    earlier = 1.7 + 400 * size**-0.34 + 410 * (tokens / 2) ** -0.28
    of_run = y / (1.7 + 400 * size**-0.34 + 410 * tokens**-0.28)
    both = [np.concatenate(pair) for pair in ((size, size), (tokens / 2, tokens), (earlier * of_run, y))]
    return Runs.of(*both, groups=np.tile(np.arange(25), 2))


def over_surface(runs: Runs) -> tuple[list[Surface], np.ndarray]:
    """The fits of both forms, and ln y of a new run at two points."""
    fits = both_forms(runs)
    return fits, np.log([each.y.value or np.nan for each in predict_over_surface(fits, POINTS, [])])


@pytest.mark.parametrize(("off_at", "states"), [(24, False), (12, False), (24, True)])
def test_over_a_surface_it_is_about_that_of_fitting_again_without_the_run(off_at: int, states: bool) -> None:
    runs = grid(off_at, states)
    fits, with_all = over_surface(runs)
    moves = [over_surface(runs.only(runs.group_N != run))[1] - with_all for run in range(25)]
    for t, moved in enumerate(moved_most_on_surface(fits, POINTS)):
        assert moved is not None
        of_target = np.array([each[t] for each in moves])
        assert moved.share == pytest.approx(np.expm1(of_target[moved.by]), rel=0.5)
        assert abs(of_target[moved.by]) > 0.6 * np.abs(of_target).max()
