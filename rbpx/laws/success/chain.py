"""Predicts a larger model's feature (step 1), success from a feature (step 2), and both chained, with intervals.

Draws of a new model's feature go through draws of the curves compatible with the points, and the points' scatter is
added. Curves are drawn from a prior (a minimum near chance, an end of at most 1, any place and steepness), weighted by
SSE^(-n / 2), n the number of independent points, by population Monte Carlo.

That a perfect feature means perfect success is an assumption, which half of the draws make: their curves end at the
anchor's success, and the anchor is one of the points. The others have a free end, with prior density 3 b^2.

Shapes: J draws, N points, P = 4 parameters: x0, ln h, the minimum and the end of a curve.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from rbpx.laws.forms.t_mixture import TMixture
from rbpx.laws.intervals.estimate import TAILS, Estimate, extended_to, student_t
from rbpx.laws.numeric import Floats
from rbpx.laws.success.sigmoid import Sigmoid, curves

MINIMUM_SD: Final = 0.03  # prior sd of the minimum about chance
_MOST_ROUNDS: Final = 20
_ENOUGH: Final = 0.2  # effective share of the draws of a good proposal
_PROPOSAL_DOF: Final = 5
_FEWEST: Final = 50  # effective draws behind a proposal
_WIDER: Final = 1.5  # times the covariance of the draws
_GENTLEST, _STEEPEST, _FARTHEST = 0.5, 200.0, 1.5  # steepness over the range of the feature; x0 over its largest value
_MOST_POINTS: Final = 250  # neighbouring checkpoints are redundant
_TINY: Final = 1e-12  # of a variance


def independent_points(residual_N: Floats, group_N: NDArray[np.int64]) -> float:
    """The effective sample size of points correlated in groups: N over the design effect, at least theirs."""
    n, n_groups = len(residual_N), int(group_N.max()) + 1
    squares = float(residual_N @ residual_N)
    if squares == 0.0 or n == n_groups:
        return float(n)
    sums_G = np.bincount(group_N, weights=residual_N)
    return float(np.clip(n * squares / float(sums_G @ sums_G), n_groups, n))


def plausible_curves(
    x_N: Floats, y_N: Floats, n: float, chance: float, anchor: tuple[float, float] | None, n_draws: int, seed: int
) -> Floats:
    """Draws curves through points: a, x0, h and b of each, the scatter of the points about it, and its dof, [J, 6].

    `n` is the number of independent points; `anchor` is where a perfect feature has perfect success.
    """
    rng, thinned = np.random.default_rng(seed), slice(None, None, -(-len(x_N) // _MOST_POINTS))
    x_N, y_N = x_N[thinned], y_N[thinned]
    points = x_N, y_N, np.full(len(x_N), n / len(x_N))
    first = _draw(*points, chance, None, n_draws // 2, rng)
    if anchor is not None:
        points = np.append(x_N, anchor[0]), np.append(y_N, anchor[1]), np.append(points[2], 1.0)
    second = _draw(*points, chance, None if anchor is None else anchor[1], n_draws - n_draws // 2, rng)
    return np.vstack([first, second])


def _draw(
    x_N: Floats,
    y_N: Floats,
    weight_N: Floats,
    chance: float,
    end: float | None,
    n_draws: int,
    rng: np.random.Generator,
) -> Floats:
    n, reach = float(weight_N.sum()), float(np.ptp(np.append(x_N, 0.0)))
    lower_P = np.array([0.0, np.log(_GENTLEST / reach), 0.0, 0.0])
    upper_P = np.array([_FARTHEST * x_N.max(), np.log(_STEEPEST / reach), 1.0, 1.0])

    def curves_of(u_JP: Floats) -> Floats:
        x0_J, ln_h_J, least_J, most_J = u_JP.T
        most_J = most_J if end is None else np.full_like(least_J, end)
        return np.column_stack([least_J - most_J, x0_J, np.exp(ln_h_J), most_J])

    def squares_of(u_JP: Floats) -> Floats:
        y_JN = curves(curves_of(u_JP)[:, None], x_N)
        return np.asarray(np.maximum((weight_N * (y_JN - y_N) ** 2).sum(axis=1), _TINY))

    def ln_posterior(u_JP: Floats) -> Floats:
        allowed_J = ((u_JP >= lower_P) & (u_JP <= upper_P)).all(axis=1)
        ln_J = -n / 2 * np.log(squares_of(u_JP)) + _ln_minimum(u_JP, chance)
        if end is None:
            allowed_J &= u_JP[:, 3] >= u_JP[:, 2]
            ln_J += 2 * np.log(np.maximum(u_JP[:, 3], _TINY))
        return np.where(allowed_J, ln_J, -np.inf)

    u_JP = rng.uniform(lower_P, upper_P, (4 * n_draws, 4))
    u_JP[:, 2] = np.abs(rng.normal(chance, MINIMUM_SD, len(u_JP)))
    ln_J, ln_proposal_J = ln_posterior(u_JP), _ln_minimum(u_JP, chance)
    for _ in range(_MOST_ROUNDS):
        mean_P, root_PP = _proposal(u_JP, _tempered(ln_J - ln_proposal_J))
        z_JP = rng.standard_normal((2 * n_draws, 4))
        z_JP /= np.sqrt(rng.chisquare(_PROPOSAL_DOF, (2 * n_draws, 1)) / _PROPOSAL_DOF)
        u_JP = mean_P + z_JP @ root_PP.T
        ln_J = ln_posterior(u_JP)
        ln_proposal_J = -(_PROPOSAL_DOF + 4) / 2 * np.log1p((z_JP**2).sum(axis=1) / _PROPOSAL_DOF)
        if _count(ln_J - ln_proposal_J) > _ENOUGH * len(u_JP):
            break
    u_JP = u_JP[rng.choice(len(u_JP), n_draws, p=softmax(ln_J - ln_proposal_J))]
    return np.column_stack([curves_of(u_JP), np.sqrt(squares_of(u_JP) / n), np.full(n_draws, n)])


def _ln_minimum(u_JP: Floats, chance: float) -> Floats:
    return np.asarray(-(((u_JP[:, 2] - chance) / MINIMUM_SD) ** 2) / 2)


def _count(ln_J: Floats, power: float = 1.0) -> float:
    return float(1 / (softmax(power * ln_J) ** 2).sum())


def _tempered(ln_J: Floats) -> Floats:
    """Weights by the posterior, or by a power of it that leaves enough draws effective."""
    power = 1.0
    while _count(ln_J, power) < _FEWEST and power > 0.01:
        power *= 0.7
    return np.asarray(softmax(power * ln_J))


def _proposal(u_JP: Floats, weight_J: Floats) -> tuple[Floats, Floats]:
    mean_P = weight_J @ u_JP
    about_JP = u_JP - mean_P
    covariance_PP = _WIDER * (weight_J[:, None] * about_JP).T @ about_JP
    root_PP = np.linalg.cholesky(covariance_PP + np.diag(1e-9 * np.diag(covariance_PP) + _TINY))
    return mean_P, np.asarray(root_PP, np.float64)


N_CURVES: Final = 1000
_EACH: Final = 4  # features for each curve
_LARGEST_LN: Final = 700.0


@dataclass(frozen=True, eq=False)
class Feature:
    """The predicted feature of a new model, and draws of it; None without an interval."""

    y: Estimate
    draws_J: Floats | None


def feature_from_estimate(y: Estimate, dof: float, seed: int) -> Feature:
    """Draws the feature from an estimate whose logarithm has Student's t."""
    if y.value is None or y.ends is None or y.ends[0] <= 0:
        return Feature(y, None)
    scale = (math.log(y.ends[1]) - math.log(y.ends[0])) / 2 / student_t(dof)
    t_J = np.random.default_rng(seed).standard_t(dof, _EACH * N_CURVES)
    return Feature(y, _exponential(math.log(y.value) + scale * t_J))


def feature_from_mixture(mixture: TMixture, y: Estimate, seed: int) -> Feature:
    """Draws the feature from a mixture of Student's t of its logarithm."""
    rng = np.random.default_rng(seed)
    parts = np.broadcast_arrays(mixture.centre, mixture.scale, mixture.weight)
    centre_G, scale_G, weight_G = map(np.ravel, parts)
    of_J = rng.choice(len(weight_G), _EACH * N_CURVES, p=weight_G / weight_G.sum())
    return Feature(y, _exponential(centre_G[of_J] + scale_G[of_J] * rng.standard_t(mixture.dof, len(of_J))))


def _exponential(ln_J: Floats) -> Floats:
    return np.asarray(np.exp(np.clip(ln_J, -_LARGEST_LN, _LARGEST_LN)))


def measured_feature(x: float) -> Feature:
    """A measured feature."""
    return Feature(Estimate(x), np.full(_EACH * N_CURVES, x))


def predict_success(sigmoid: Sigmoid, plausible_J6: Floats | None, feature: Feature, seed: int) -> Estimate:
    """Predicts the success of a new model with that feature, with its interval."""
    if feature.y.value is None:
        return Estimate()
    value, x_J = sigmoid(feature.y.value), feature.draws_J
    if plausible_J6 is None or x_J is None:
        return Estimate(value)
    drawn_J6 = np.resize(plausible_J6, (len(x_J), 6))
    y_J = curves(drawn_J6[:, :4], x_J) + drawn_J6[:, 4] * np.random.default_rng(seed).standard_t(drawn_J6[:, 5])
    lo, hi = np.quantile(np.clip(y_J, 0, 1), TAILS).tolist()
    # The value is of the least squares fit, which may lie outside the draws' interval.
    return Estimate(value, *extended_to(value, (lo, hi)))
