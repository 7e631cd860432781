"""How often predictions from models that were trained more than once at a size hold a new model."""

import math

import numpy as np
import pytest

from tests.support.singly import below

SIZES = np.geomspace(1e6, 1e9, 5)
SEEDS = 3
S = np.repeat(SIZES, SEEDS)


def drawn(rng: np.random.Generator, of_size_sd: float, own_sd: float, bend: float = 0.0) -> np.ndarray:
    """A law with an effect of each size, which its seeds share, and scatter of each model."""
    x = np.log(S) - np.log(S).mean()
    effect = np.repeat(rng.normal(0, of_size_sd, len(SIZES)), SEEDS)
    return np.exp(1 - 0.1 * x + bend * x**2 + effect + rng.normal(0, own_sd, len(S)))


@pytest.mark.parametrize(("of_size_sd", "own_sd"), [(0.0, 0.01), (0.01, 0.002)])
def test_predictions_over_forms_hold_a_new_model_at_ten_times_the_largest_size(
    of_size_sd: float, own_sd: float
) -> None:
    rng, new = np.random.default_rng(5), 10 * SIZES[-1]
    y_BN = np.array([drawn(rng, of_size_sd, own_sd) for _ in range(200)])
    scatter_B = rng.normal(0, math.hypot(of_size_sd, own_sd), 200)
    below_B = below(S, y_BN, new, np.exp(1 - 0.1 * (math.log(new) - np.log(S).mean()) + scatter_B))
    assert np.mean((below_B >= 0.025) & (below_B <= 0.975)) >= 0.9
