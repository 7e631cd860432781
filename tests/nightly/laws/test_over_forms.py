"""How often the prediction over forms holds a new model, over hundreds of ladders."""

import math

import numpy as np
import pytest

from benchmarks.prediction_coverage import Truth
from rbpx.laws.prediction.prediction import average_forms, predict_batch
from tests.support.draws import inside


@pytest.mark.parametrize(
    "truth",
    [
        Truth(0.12, 5, 0.3, 0.01),
        Truth(0.12, 7, 1.0, 0.003, rho=0.5),
        Truth(0.12, 7, 0.0, 0.01, bend=0.8),
        Truth(0.25, 5, 0.0, 0.01, bend=0.5),
    ],
    ids=["form true", "scatter correlated", "truth outside the forms", "exponent halved"],
)
def test_the_interval_holds_a_new_model(truth: Truth) -> None:
    x, ln_y = truth.draw(300, np.random.default_rng(0))
    answer = np.log(predict_batch(np.exp(x[:-1]), np.exp(ln_y[:, :-1]), math.exp(x[-1])))
    held = (answer[:, 1] <= ln_y[:, -1]) & (ln_y[:, -1] <= answer[:, 2])
    assert held.mean() >= 0.9


def test_joint_intervals_hold_four_new_models_at_once_where_those_of_each_do_not() -> None:
    """Each of them at 1 - .05 / 4, of a law with an offset that twelve sizes tell of."""
    rng, n_draws, held = np.random.default_rng(3), 300, np.zeros(2)
    S, targets = np.geomspace(1e6, 1e9, 12), np.array([3e9, 1e10, 3e10, 1e11])
    law = 1 + 3 * (np.append(S, targets) / 1e6) ** -0.25
    for _ in range(n_draws):
        y = law * np.exp(0.003 * rng.normal(size=16))
        for at, p in enumerate((0.05, 0.05 / 4)):
            told = average_forms(S, y[:12], targets.tolist(), each_form=False, p=p) or []
            held[at] += all(inside(each.lo, new, each.hi) for each, new in zip(told, y[12:], strict=True))
    assert held[0] < 0.93 * n_draws
    assert held[1] >= 0.95 * n_draws
