"""What a fitted distribution of the ranks says of RBP and entropy, and how that moves when its counts do.

Shapes: P parameters, R different ranks, K values of k, X the ranks, or nodes among them, that sums are evaluated at.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.ranks.distribution import fitted, holds_at_nodes
from rbpx.laws.ranks.family import Family
from rbpx.laws.ranks.fit import RankFit
from rbpx.laws.ranks.likelihood import RankSample, likelihood, normalised


@dataclass(frozen=True, eq=False)
class RankCurve:
    """The curve of a fit: -ln RBP_k at each k and then the entropy of the ranks, nats, [K + 1].

    Attributes:
        curve: of the fit.
        slopes: d curve / d theta, [P, K + 1].
        influence: how theta moves with a token more of each rank, to first order, [R, P].
        ln_share: ln p_x of the ranks that occur, [R].
    """

    curve: Floats
    slopes: Floats
    influence: Floats
    ln_share: Floats


def rank_curve(fit: RankFit, sample: RankSample, k_grid: Sequence[int]) -> RankCurve:
    """The curve of a distribution that was fitted to a sample, its sums at the nodes where these are right to rounding.

    The theta of resampled counts is theta + n_resampled @ influence, influence_r = J^(-1) d ln p_r / d theta,
    J = -sum_x n_x d^2 ln p_x / d theta^2 at the maximum. At the counts of the fit itself the sum over ranks is 0. A
    parameter at an edge stays there.

    Args:
        fit: with numbers, to the counts of the sample.
        sample: with breaks at each k below V.
        k_grid: whole numbers from 1, in any order; RBP is 1 from V on.

    Raises:
        ValueError: if the fit has no numbers, or is not a distribution over 1..V.

    Source:
        One-step estimator (Le Cam); van der Vaart, Asymptotic Statistics, section 5.7.
    """
    family, theta = fitted(fit, sample.V)
    seen = sample.few if holds_at_nodes(family, theta, sample, float(fit.loglik or 0.0)) else sample.every
    last_K = seen.nodes.upto(np.minimum(np.asarray(k_grid, np.int64), sample.V)) - 1
    ln_p_X = normalised(family, theta, seen)
    p_X = np.exp(ln_p_X + seen.ln_ranks_X)
    rbp_K = np.minimum(np.cumsum(p_X)[last_K], 1.0)
    slopes_PX = family.slopes(theta, seen.x_X, sample.V)
    mean_P = slopes_PX @ p_X
    moved_PX = (slopes_PX - mean_P[:, None]) * p_X
    by_theta_PK = -np.cumsum(moved_PX, axis=1)[:, last_K] / rbp_K
    _, _, hessian_PP = likelihood(family, theta, seen)
    score_PR = family.slopes(theta, sample.rank_R, sample.V) - mean_P[:, None]
    ln_z = family.ln_weight(theta, seen.x_X[:1], sample.V)[0] - ln_p_X[0]
    free = _free(family, theta)
    influence_RP = np.zeros((len(sample.rank_R), family.n_parameters))
    influence_RP[:, free] = np.linalg.solve(-hessian_PP[np.ix_(free, free)], score_PR[free]).T
    return RankCurve(
        np.append(-np.log(rbp_K), -p_X @ ln_p_X),
        np.column_stack([by_theta_PK, -moved_PX @ ln_p_X]),
        influence_RP,
        family.ln_weight(theta, sample.rank_R, sample.V) - ln_z,
    )


def _free(family: Family, theta: Floats) -> list[int]:
    """The parameters that are not at an edge."""
    at_edge = family.edge is not None and theta[family.edge[0]] == 0
    return [i for i in range(family.n_parameters) if not (at_edge and family.edge is not None and i == family.edge[0])]
