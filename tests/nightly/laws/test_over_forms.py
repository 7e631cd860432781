"""How often the prediction over forms holds a new model, over hundreds of ladders."""

import math

import numpy as np
import pytest

from benchmarks.prediction_coverage import Truth
from rbpx.laws.prediction.prediction import predict_batch


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
