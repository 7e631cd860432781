"""Fits distributions of the ranks over 1..V by maximum likelihood, and derives their curves of RBP and entropy.

All are exact, discrete and truncated at V, so that their likelihoods compare. The lognormal is the conjecture of the
RBP paper (arXiv 2510.20387, eq. 9); the others are its rivals.

Shapes: P parameters, R different ranks, V the vocabulary, Q the ranks, or the nodes among them, that sums run over, K
values of k.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.numeric import Floats, ln_sum_exp
from rbpx.laws.ranks.family import FAMILIES, Family, Params, RankFit, checked_counts, scored
from rbpx.laws.ranks.quadrature import RankNodes, curve_of, every_rank, nodes_of
from rbpx.laws.solver import maximise
from rbpx.status import Status

DISTRIBUTIONS: Final = tuple(FAMILIES)
_STEP: Final = 1e-5  # of a parameter, to difference the exact gradient
_DERIVED: Final = ("mu", "sigma", "share_1")  # from the other parameters
_SAME: Final = 1e-11  # relative: likelihoods at the nodes and at all ranks are the same up to rounding


class RankCounts(NamedTuple):
    """Token counts by rank, [Q], at every rank or moved to the nodes."""

    nodes: RankNodes
    n_Q: Floats

    def ln_p(self, family: Family, theta: Floats) -> Floats:
        """Ln p_x at each node."""
        return self.nodes.normalised(family.ln_weight(theta, self.nodes.x_Q, self.nodes.V))

    def total(self, ln_p_Q: Floats) -> float:
        """The log-likelihood; ranks without tokens may have p = 0."""
        occurs_Q = np.flatnonzero(self.n_Q)
        return float(self.n_Q[occurs_Q] @ ln_p_Q[occurs_Q])


@dataclass(frozen=True, eq=False)
class RankSample:
    """Tokens of each rank that occurs, ascending whole numbers up to V; sums are taken up to each rank of `k_grid`."""

    rank_R: Floats
    n_R: Floats
    V: int
    k_grid: tuple[int, ...] = ()

    @cached_property
    def few(self) -> RankCounts:
        """Counts at the nodes."""
        nodes = nodes_of(self.V, self.k_grid)
        return RankCounts(nodes, nodes.moved(self.rank_R, self.n_R))

    @cached_property
    def every(self) -> RankCounts:
        """Counts at every rank."""
        n_V = np.bincount(self.rank_R.astype(np.int64) - 1, self.n_R, self.V).astype(np.float64, copy=False)
        return RankCounts(every_rank(self.V, self.k_grid), n_V)

    def holds_at_nodes(self, family: Family, theta: Floats) -> bool:
        """Whether the likelihood at the nodes equals that of all ranks; it does not where a family is too steep."""
        with np.errstate(all="ignore"):  # where a search diverged
            few, every = (seen.total(seen.ln_p(family, theta)) for seen in (self.few, self.every))
        return abs(few - every) <= _SAME * abs(every)


def likelihood(family: Family, theta: Floats, seen: RankCounts) -> tuple[float, Floats, Floats]:
    """The log-likelihood, its gradient [P] and Hessian [P, P]."""
    nodes, n_Q = seen
    ln_p_Q, slopes_PQ = seen.ln_p(family, theta), family.slopes(theta, nodes.x_Q, nodes.V)
    p_Q, n = np.exp(ln_p_Q + nodes.ln_ranks_Q), n_Q.sum()
    p_Q /= p_Q.sum()  # differs from 1 only by rounding of steep weights
    about_PQ = slopes_PQ - (slopes_PQ @ p_Q)[:, None]
    hessian_PP = -n * (about_PQ * p_Q) @ about_PQ.T
    if not family.is_linear:
        # sum_x (n_x - n p_x) d^2 ln w_x / d theta^2; it vanishes where the model fits and dominates where it does not
        for at, step_P in enumerate(_STEP * np.eye(len(theta))):
            ahead_PQ, back_PQ = (family.slopes(theta + to_P, nodes.x_Q, nodes.V) for to_P in (step_P, -step_P))
            hessian_PP[at] += (ahead_PQ - back_PQ) @ (n_Q - n * p_Q) / (2 * _STEP)
        hessian_PP = (hessian_PP + hessian_PP.T) / 2
    value = seen.total(ln_p_Q)
    return (value if np.isfinite(value) else -np.inf), about_PQ @ n_Q, hessian_PP


def fit_distributions(names: Sequence[str], rank: ArrayLike, n_tokens: ArrayLike, V: int) -> list[RankFit]:
    """Fits families of `DISTRIBUTIONS` over all ranks 1..V by maximum likelihood.

    Maximises sum_x n_x ln p_x, p_x = w_x / sum_{y<=V} w_y, by Newton's method from each start of the family. Sums run
    over the nodes, or over all ranks where the nodes do not reproduce the likelihood to rounding.

    If the best parameter lies beyond the edge of its family (gamma <= 0, where no lognormal fits, a rate <= 0 or a q >=
    1), it is fixed at the edge and the others are fitted again: at_bound, and params hold the free maximum as
    ..._unconstrained. at_bound without numbers: the search left the family. not_known: a rank is a half.

    Raises:
        ValueError: if a name is unknown, shapes disagree, a rank is below 1 or above V, or a count is negative.
    """
    for name in names:
        if name not in FAMILIES:
            raise ValueError(f"{name} is not a known distribution; known: {', '.join(FAMILIES)}")
    rank_R, n_R = checked_counts(rank, n_tokens)
    if len(rank_R) and rank_R[-1] > V:
        raise ValueError(f"rank {rank_R[-1]:g} exceeds the vocabulary of {V}")
    return fit_sample(names, RankSample(rank_R, n_R, V))


def fit_sample(names: Sequence[str], sample: RankSample) -> list[RankFit]:
    """Fits families to counts that were already checked."""
    given = Params({"V": sample.V})
    if np.any(sample.rank_R != np.floor(sample.rank_R)):
        return [_without_numbers(FAMILIES[name], given, Status.not_known) for name in names]
    return [_fit(FAMILIES[name], sample, given | {"n_tokens": round(float(sample.n_R.sum()))}) for name in names]


def _fit(family: Family, sample: RankSample, given: Params) -> RankFit:
    if len(sample.rank_R) < max(3, family.n_parameters + 1):
        return _without_numbers(family, given, Status.too_few_tokens)
    theta, status, free, ends = _search(family, sample.few)
    if not all(sample.holds_at_nodes(family, end) for end in ends):
        theta, status, free, ends = _search(family, sample.every)
    if theta is None:
        return _without_numbers(family, given, status)
    n_V, ln_p_V = sample.every.n_Q, sample.every.ln_p(family, theta)
    p_V = np.exp(ln_p_V)
    distance = float(np.abs(np.cumsum(p_V) - np.cumsum(n_V) / n_V.sum()).max())
    params = family.params(theta, sample.V, float(p_V[0])) | given
    if family.edge is not None:
        params |= {f"{key}_unconstrained": value for key, value in free.items() if key not in _DERIVED}
    return scored(family.name, params, theta, sample.every.total(ln_p_V), distance, status)


def ln_shares(fit: RankFit, V: int) -> Floats:
    """Ln p_x of a fitted distribution at the ranks x = 1..V, [V]."""
    family = FAMILIES[fit.distribution]
    ln_weight_V = family.ln_weight(np.array(fit.theta), np.arange(1, V + 1, dtype=np.float64), V)
    return np.asarray(ln_weight_V - ln_sum_exp(ln_weight_V, axis=0))


def _without_numbers(family: Family, given: Params, status: Status) -> RankFit:
    names = family.params(np.array(family.starts[0]), V=1)
    return RankFit(family.name, dict.fromkeys(names) | given, status=status)


def _search(family: Family, seen: RankCounts) -> tuple[Floats | None, Status, Params, list[Floats]]:
    """The best maximum inside the family, its status, the free maximum, and where the searches ended."""

    def climb(start: Floats, fixed: int | None = None) -> tuple[Floats, bool]:
        return maximise(lambda theta: likelihood(family, theta, seen), start, family.holds, fixed)

    climbs = [climb(np.array(start)) for start in family.starts]
    tops = [theta for theta, converged in climbs if converged]
    if not tops:
        ran_away = not any(family.holds(1.1 * theta) for theta, _ in climbs)
        return None, Status.at_bound if ran_away else Status.not_converged, {}, [theta for theta, _ in climbs]
    with np.errstate(all="ignore"):  # far from the best
        theta = max(tops, key=lambda top: seen.total(seen.ln_p(family, top)))
    free = family.params(theta, seen.nodes.V)
    if family.edge is None or theta[family.edge] > 0:
        return theta, Status.ok, free, [theta]
    at_edge, converged = climb(np.where(np.arange(len(theta)) == family.edge, 0.0, theta), family.edge)
    return (at_edge if converged else None), Status.at_bound, free, [theta, at_edge]


@dataclass(frozen=True, eq=False)
class RankCurve:
    """The curve of a fit: -ln RBP_k at each k, then the entropy of the ranks, nats, [K + 1].

    Attributes:
        slopes: d curve / d theta, [P, K + 1].
        influence: change of theta with one more token of each rank, [R, P].
        ln_share: ln p_x of the ranks that occur.
    """

    curve: Floats
    slopes: Floats
    influence: Floats
    ln_share: Floats


def rank_curve(fit: RankFit, sample: RankSample) -> RankCurve:
    """Derives the curve of a distribution fitted to a sample, its slopes, and the influence of each rank on theta.

    Under resampled counts theta is theta + n_resampled @ influence, influence_r = J^(-1) d ln p_r / d theta, J = -sum_x
    n_x d^2 ln p_x / d theta^2 at the maximum. A parameter at an edge stays there.

    Source:
        One-step estimator (Le Cam); van der Vaart, Asymptotic Statistics, section 5.7.
    """
    family, V, theta = FAMILIES[fit.distribution], sample.V, np.array(fit.theta)
    seen = sample.few if sample.holds_at_nodes(family, theta) else sample.every
    nodes, ln_p_Q = seen.nodes, seen.ln_p(family, theta)
    p_Q, slopes_PQ = np.exp(ln_p_Q + nodes.ln_ranks_Q), family.slopes(theta, nodes.x_Q, V)
    mean_P, curve, last_K = slopes_PQ @ p_Q, curve_of(ln_p_Q, nodes), nodes.upto_K - 1
    moved_PQ = (slopes_PQ - mean_P[:, None]) * p_Q
    by_theta_PK = -np.cumsum(moved_PQ, axis=1)[:, last_K] / np.exp(-curve[:-1])
    _, _, hessian_PP = likelihood(family, theta, seen)
    score_PR = family.slopes(theta, sample.rank_R, V) - mean_P[:, None]
    held = family.edge if family.edge is not None and theta[family.edge] == 0 else None
    free = [i for i in range(family.n_parameters) if i != held]
    influence_RP = np.zeros((len(sample.rank_R), family.n_parameters))
    influence_RP[:, free] = np.linalg.solve(-hessian_PP[np.ix_(free, free)], score_PR[free]).T
    ln_z = family.ln_weight(theta, nodes.x_Q[:1], V)[0] - ln_p_Q[0]
    by_theta = np.column_stack([by_theta_PK, -moved_PQ @ ln_p_Q])
    return RankCurve(curve, by_theta, influence_RP, family.ln_weight(theta, sample.rank_R, V) - ln_z)
