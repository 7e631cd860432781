"""How often predictions over forms in size and tokens hold a new run, where a form is right and where none is."""

import numpy as np
import pytest

from rbpx.laws.surface.averaged import backtest_budgets, predict_averaged
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs
from tests.support.surfaces import draw, grid

FORMS = ("chinchilla", "kaplan")


@pytest.mark.parametrize("checkpoints", [1, 4])
def test_intervals_of_a_new_run_hold_what_they_say_where_the_form_is_right(checkpoints: int) -> None:
    inside = []
    for seed in range(20):
        drawn = draw((seed, 9), grid(5, 4), 0.006, checkpoints)
        fits = [fit_surface(drawn.runs, form, n_replicates=0) for form in FORMS]
        budgets = backtest_budgets(drawn.runs, FORMS)
        (answer,) = predict_averaged(fits, [drawn.new], budgets)
        assert answer.y.ends is not None
        inside.append(answer.y.ends[0] <= drawn.new_y <= answer.y.ends[1])
    assert sum(inside) >= 17, "of 20: fewer by chance once in 60 where 95 % hold"


def test_a_surface_that_is_no_candidate_is_held_where_one_form_misses() -> None:
    """ln y = ln(1.5 + 25 S^-.16 (1 + 60 D^-.22)): what tokens do depends on size, in no form that is fitted."""
    over, alone = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        S, D = (each.ravel() for each in np.meshgrid(3e7 * np.geomspace(1, 30, 5), 6e8 * np.geomspace(1, 40, 5)))
        y = (1.5 + 25 * S**-0.16 * (1 + 60 * D**-0.22)) * np.exp(0.002 * rng.standard_normal(25))
        C = 6 * S * D
        fitted, held = C <= C.max() / 3, C > C.max() / 3 * 1.01
        runs = Runs.of(S[fitted], D[fitted], y[fitted])
        fits = [fit_surface(runs, form, n_replicates=50) for form in FORMS]
        budgets = backtest_budgets(runs, FORMS)
        answers = predict_averaged(fits, list(zip(S[held], D[held], strict=True)), budgets)
        for answer, truth in zip(answers, y[held], strict=True):
            for found, into in ((answer.y, over), (answer.within["chinchilla"], alone)):
                into.append(found.ends is not None and found.ends[0] <= truth <= found.ends[1])
    assert np.mean(over) >= 0.9
    assert np.mean(alone) < np.mean(over)
