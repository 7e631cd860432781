"""Fits of trainings on repeated text: replicates of thousands of checkpoints."""

import numpy as np

from rbpx.laws.intervals.bootstrap import bootstrap_weights
from rbpx.laws.names import Objective
from rbpx.laws.surface.fit import fit_surface
from tests.support import repeats

FORM = "data_constrained"


def test_resamples_of_thousands_of_checkpoints_leave_where_they_start() -> None:
    runs = repeats.draw(repeats.NO_EXCESS, repeats.few_sizes(), seed=0, n_checkpoints=4_855)
    fit = fit_surface(runs, FORM, n_replicates=20)
    assert (fit.n_points, fit.n_runs) == (4_855, 24)
    start = {name: each.value for name, each in fit.constants.items()}
    ends = {name: value_R[1:] for name, value_R in fit.surface.constants().items()}
    for b, of_run in enumerate(bootstrap_weights(24, 20, 0)):
        end = {name: float(value_B[b]) for name, value_B in ends.items()}
        at_start, at_end = (
            float(repeats.plain_objective(of, runs, Objective.log_huber, fit.delta, of_run[runs.group_N]))
            for of in (start, end)
        )
        assert at_end < (1 - 1e-4) * at_start
    lo, hi = fit.constants["R_D"].ends or (0.0, 0.0)
    assert hi - lo > 2 * np.std(ends["R_D"])
