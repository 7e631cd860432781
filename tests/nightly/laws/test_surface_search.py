"""Searches of surfaces side by side find what each finds alone."""

import numpy as np

from rbpx.laws.names import Objective
from rbpx.laws.numeric import together
from rbpx.laws.surface.checks import compare_each
from rbpx.laws.surface.fit import fit_surface, fitting
from tests.support.surfaces import draw, grid


def test_fits_side_by_side_are_those_of_each_alone() -> None:
    one, other = (draw((seed,), grid(4, 3), 0.01).runs for seed in (1, 2))
    asked = [
        (one, "chinchilla", Objective.log_huber),
        (other, "chinchilla", Objective.log_huber),
        (one.only(np.arange(11)), "chinchilla", Objective.log_huber),
        (one, "kaplan", Objective.log_huber),
        (one, "chinchilla", Objective.huber),
        (other, "chinchilla", Objective.huber),  # another delta in units of its y
    ]
    fits = together([fitting(*each, n_replicates=20) for each in asked])
    for each, beside in zip(asked, fits, strict=True):
        alone = fit_surface(*each, n_replicates=20)
        assert alone.surface is not None
        assert beside.surface is not None
        assert (alone.objective, alone.aic, alone.reasons) == (beside.objective, beside.aic, beside.reasons)
        np.testing.assert_array_equal(alone.surface.theta_P, beside.surface.theta_P)
        np.testing.assert_array_equal(alone.surface.theta_BP, beside.surface.theta_BP)


def test_quantities_side_by_side_are_held_out_as_each_alone() -> None:
    several = [draw((seed,), grid(4, 4), 0.01).runs for seed in (3, 4)]
    forms = ("chinchilla", "kaplan")
    for runs, beside in zip(several, compare_each([(runs, forms) for runs in several], 20), strict=True):
        for a, b in zip(compare_each([(runs, forms)], 20)[0], beside, strict=True):
            assert (a.fit.form, a.fit.constants, a.held_out) == (b.fit.form, b.fit.constants, b.held_out)
            assert {test.axis for test in b.held_out} == {"S", "D", "C"}
