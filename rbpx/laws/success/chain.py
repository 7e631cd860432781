"""Two steps and both together: what a larger model's feature and success will be, from smaller ones.

Step 1 says what a new model's feature is, in size or in size and tokens; step 2 is success against the feature; chained
is step 2 of step 1's answer. Intervals are those of one new model: draws of its feature (step 1 with the scatter of
models about it) go through draws of the curves that the points allow (`rbpx.laws.success.plausible`), and the points'
scatter about the curve is added. Shapes: J draws, N points, R runs.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.estimate import TAILS, Estimate, reaching, student_t
from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.success.plausible import Plausible
from rbpx.laws.success.sigmoid import Sigmoid, curves

N_CURVES: Final = 1000
_EACH: Final = 4  # features for each curve
_LARGEST_LN: Final = 700.0


@dataclass(frozen=True, eq=False)
class Feature:
    """What step 1 says of a new model.

    Attributes:
        y: its feature, with the 95 % interval of a new model.
        draws_J: of the feature of a new model; None without an interval.
    """

    y: Estimate
    draws_J: Floats | None


def of_estimate(y: Estimate, dof: float, seed: int) -> Feature:
    """From a number whose logarithm has Student's t about it, as that of a surface."""
    if y.value is None or y.ends is None or y.ends[0] <= 0:
        return Feature(y, None)
    scale = (math.log(y.ends[1]) - math.log(y.ends[0])) / 2 / student_t(dof)
    t_J = np.random.default_rng(seed).standard_t(dof, _EACH * N_CURVES)
    return Feature(y, _exponential(math.log(y.value) + scale * t_J))


def of_mixture(mixture: TMixture, y: Estimate, seed: int) -> Feature:
    """From a mixture of Student's t of the logarithm of the feature, as that over the forms of a law."""
    rng = np.random.default_rng(seed)
    centre_G, scale_G, weight_G = (
        np.ravel(each) for each in np.broadcast_arrays(mixture.centre, mixture.scale, mixture.weight)
    )
    of_J = rng.choice(len(weight_G), _EACH * N_CURVES, p=weight_G / weight_G.sum())
    return Feature(y, _exponential(centre_G[of_J] + scale_G[of_J] * rng.standard_t(mixture.dof, len(of_J))))


def _exponential(ln_J: Floats) -> Floats:
    """Features from their logarithms, those beyond any float at the largest."""
    return np.asarray(np.exp(np.clip(ln_J, -_LARGEST_LN, _LARGEST_LN)))


def second_step(sigmoid: Sigmoid, plausible: Plausible | None, x: float, seed: int) -> Estimate:
    """Success at a known value of the feature, with the interval of a new model."""
    return _success(sigmoid(x), plausible, np.full(_EACH * N_CURVES, x), seed)


def chained(sigmoid: Sigmoid, plausible: Plausible | None, feature: Feature, seed: int) -> Estimate:
    """Success of a model that neither step has seen, with its interval."""
    if feature.y.value is None:
        return Estimate()
    return _success(sigmoid(feature.y.value), plausible, feature.draws_J, seed)


def _success(value: float, plausible: Plausible | None, x_J: Floats | None, seed: int) -> Estimate:
    if plausible is None or x_J is None:
        return Estimate(value)
    rng = np.random.default_rng(seed)
    at_J = np.arange(len(x_J)) % len(plausible.theta_JP)
    y_J = curves(plausible.theta_JP[at_J], x_J)
    y_J += plausible.scatter_J[at_J] * rng.standard_t(plausible.dof_J[at_J])
    lo, hi = np.quantile(np.clip(y_J, 0, 1), TAILS).tolist()
    # The least squares fit, whose number this is, may lie beyond what most plausible curves say.
    return Estimate(value, *reaching(value, (lo, hi)))
