"""Quantiles of mixtures of Student's t are where their distribution function passes the probability."""

import numpy as np
import pytest
from scipy import stats

from rbpx.laws.forms.t_mixture import TMixture

TAILS = (0.5, 0.025, 0.975)


def below(value: float, centre: np.ndarray, scale: np.ndarray, weight: np.ndarray, dof: int) -> float:
    """The probability of at most a value."""
    spread = np.where(scale > 0, scale, 1.0)
    return float(weight @ np.where(scale > 0, stats.t.cdf((value - centre) / spread, dof), value >= centre))


@pytest.mark.parametrize("points", [False, True], ids=["continuous", "some are points"])
def test_the_probability_passes_that_of_a_quantile_there(points: bool) -> None:
    rng = np.random.default_rng(4)
    for dof in (1, 3, 8):
        centre, scale = rng.normal(0, 3, (4, 6)), np.exp(rng.normal(-3, 3, (4, 6)))
        scale[:, 1:3] *= not points
        weight = np.exp(rng.normal(0, 3, (4, 6)))
        weight[:, 5] = 0
        weight /= weight.sum(axis=1, keepdims=True)
        quantiles = TMixture(centre, scale, weight, dof).quantiles(TAILS)
        for at, of_set in enumerate(zip(centre, scale, weight, strict=True)):
            for tail, value in zip(TAILS, quantiles[at], strict=True):
                rounding = 1e-9 * (1 + abs(value))
                assert below(value - rounding, *of_set, dof) <= tail <= below(value + rounding, *of_set, dof)


@pytest.mark.parametrize("dof", [1, 2, 3, 4, 5, 6, 15, 40, 41, 300])
def test_the_probability_below_a_value_is_that_of_its_components(dof: int) -> None:
    """Far and near, a point among the components, on it and beside it."""
    rng = np.random.default_rng(dof)
    centre, scale = rng.normal(0, 3, 7), np.exp(rng.normal(-1, 2, 7))
    scale[2] = 0.0
    weight = rng.dirichlet(np.ones(7))
    values = np.array([-1e12, -300.0, *rng.normal(0, 4, 40), centre[2], centre[4], 1e5, np.inf])
    found = TMixture(np.tile(centre, (len(values), 1)), scale, weight, dof).below(values)
    for value, below in zip(values.tolist(), found.tolist(), strict=True):
        plain = [
            stats.t.cdf((value - c) / s, dof) for c, s in zip(np.delete(centre, 2), np.delete(scale, 2), strict=True)
        ]
        of_point = 0.5 if value == centre[2] else float(value > centre[2])
        assert below == pytest.approx(float(np.delete(weight, 2) @ plain) + weight[2] * of_point, abs=1e-14)
