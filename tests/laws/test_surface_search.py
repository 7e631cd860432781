"""Searches of surfaces end where nothing is left to gain."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import huber

from rbpx.laws.intervals.bootstrap import bootstrap_weights
from rbpx.laws.names import Objective
from rbpx.laws.surface.equations import Chinchilla
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.loss import REPLICATE, Loss
from rbpx.laws.surface.runs import Runs
from tests.support.surfaces import law, straight

DELTA = 1e-3


@pytest.mark.parametrize("E", [0.0, 1e-9])
def test_no_resample_of_a_power_law_stays_above_the_best_line(E: float) -> None:
    rng = np.random.default_rng(3)
    S = 1e5 * np.geomspace(1, 1e3, 7)
    y = S**-0.05 * np.exp(0.04 * rng.standard_normal(7))
    runs = Runs.of(S, np.full(7, 1e9), y)
    s, ln_y = np.log(S) - np.log(S).mean(), np.log(y) - np.log(y).mean()
    weights = bootstrap_weights(7, 60, seed=1)
    # The line through the two largest models: far from the best one, and on the kinks of two points.
    slope = (ln_y[6] - ln_y[5]) / (s[5] - s[6])
    start = np.tile([np.exp(ln_y[6] + slope * s[6]), 0.0, E, max(slope, 0.0), 0.0], (60, 1))
    form = Chinchilla(float(np.exp(np.log(y).mean())))
    none = np.zeros(5, dtype=bool)
    found = Loss(form, runs.x, Objective.log_huber, DELTA, ln_y[None], weights, none).minimise(start, REPLICATE)
    assert found.converged_B.all()
    for weight, total in zip(weights, found.value_B, strict=True):
        line = minimize(
            lambda at, weight: float(weight @ huber(DELTA, at[0] - at[1] * s - ln_y)),
            [0.0, 0.05],
            args=(weight,),
            method="Nelder-Mead",
            bounds=[(None, None), (0, None)],
            options={"xatol": 1e-9, "fatol": 1e-13},
        )
        assert total <= line.fun * (1 + 1e-6)


def test_runs_on_a_line_with_hardly_any_scatter_have_a_surface() -> None:
    S, D = straight(7)
    noise = 1e-6 * np.random.default_rng(0).standard_normal(7)
    fit = fit_surface(Runs.of(S, D, law(S, D) * np.exp(noise)), n_replicates=0)
    assert np.exp(fit.surface.ln_y(S, D)[0]) == pytest.approx(law(S, D), rel=1e-5)
