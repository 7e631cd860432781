"""Maximum likelihood of the distributions of the ranks over 1..V, and the curves of RBP and entropy that follow.

All distributions are exact, discrete and truncated at V, so that their likelihoods compare. The lognormal is the
conjecture of the RBP paper (arXiv 2510.20387, eq. 9); the others are its rivals.

Shapes: P parameters, R different ranks, V the vocabulary, X the ranks, or nodes among them, that sums are evaluated at,
M sets of parameters, K values of k.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.numeric import Floats, ln_sum_exp
from rbpx.laws.ranks.family import (
    FAMILIES,
    Family,
    Params,
    RankFit,
    RankNodes,
    checked_counts,
    every_rank,
    rank_nodes,
    scored,
)
from rbpx.laws.solver import maximise
from rbpx.status import Status

_STEP: Final = 1e-5  # of a parameter, to difference the exact gradient
_BLOCK: Final = 8192  # ranks at a time: the temporaries of a family stay in the cache of a core


@dataclass(frozen=True, eq=False)
class Seen:
    """Tokens by rank, and where to evaluate a family: at every rank, or at the nodes of `rank_nodes`.

    Attributes:
        nodes: the places.
        seen_X: tokens.
        n: all of them.
        V: the last rank.
    """

    nodes: RankNodes
    seen_X: Floats
    n: float
    V: int

    @property
    def x_X(self) -> Floats:
        """The places."""
        return self.nodes.x_Q

    @cached_property
    def ln_ranks_X(self) -> Floats:
        """Logarithm of how many ranks each place stands for."""
        return np.log(self.nodes.weight_Q)

    @cached_property
    def occurs_X(self) -> NDArray[np.intp]:
        """Places with tokens: a share of 0 elsewhere is no reason for a likelihood of 0."""
        return np.flatnonzero(self.seen_X)


@dataclass(frozen=True, eq=False)
class RankSample:
    """Tokens of each rank, as fits over 1..V see them.

    Attributes:
        rank_R: the ranks that occur, ascending whole numbers.
        n_R: tokens of each.
        V: the last rank.
        breaks: ranks up to which there will be sums, each the end of a block of nodes.
    """

    rank_R: Floats
    n_R: Floats
    V: int
    breaks: tuple[int, ...] = ()

    @cached_property
    def n(self) -> float:
        """All tokens."""
        return float(self.n_R.sum())

    @cached_property
    def at_R(self) -> NDArray[np.int64]:
        """Indices of the ranks in 1..V."""
        return self.rank_R.astype(np.int64) - 1

    @cached_property
    def few(self) -> Seen:
        """At the nodes."""
        nodes = rank_nodes(self.V, self.breaks)
        return Seen(nodes, nodes.moved(self.rank_R, self.n_R), self.n, self.V)

    @cached_property
    def every(self) -> Seen:
        """At every rank."""
        return Seen(every_rank(self.V), self._n_V(), self.n, self.V)

    @cached_property
    def cdf_V(self) -> Floats:
        """Share of the tokens up to each rank."""
        cdf_V = self._n_V()
        return np.divide(np.cumsum(cdf_V, out=cdf_V), self.n, out=cdf_V)

    def _n_V(self) -> Floats:
        return np.bincount(self.at_R, self.n_R, self.V).astype(np.float64, copy=False)


def normalised(family: Family, theta: Floats, seen: Seen) -> Floats:
    """Ln p_x at each place."""
    return _shares(family.ln_weight(theta, seen.x_X, seen.V), seen)[0]


def _shares(ln_weight_X: Floats, seen: Seen) -> tuple[Floats, Floats]:
    """Ln p_x at each place, and the share of the ranks that it stands for."""
    ln_weights_X = ln_weight_X + seen.ln_ranks_X
    top = ln_weights_X.max()
    ln_weights_X -= top
    share_X = np.exp(ln_weights_X, out=ln_weights_X)
    norm = share_X.sum()
    share_X /= norm
    return ln_weight_X - (top + np.log(norm)), share_X


def total(seen: Seen, ln_p_X: Floats) -> float:
    """The log-likelihood."""
    return float(seen.seen_X[seen.occurs_X] @ ln_p_X[seen.occurs_X])


@dataclass(frozen=True)
class OverAllRanks:
    """What sums over every rank 1..V say of a family.

    Attributes:
        loglik: of the sample, nats.
        distance: the largest difference between its CDF and that of the family.
        share_1: p_1.
    """

    loglik: float
    distance: float
    share_1: float


def over_all_ranks(family: Family, theta: Floats, sample: RankSample) -> OverAllRanks:
    """Sum over every rank, in one pass."""
    V = sample.V
    p_V = np.empty(V)
    for begin in range(0, V, _BLOCK):
        x_X = np.arange(begin + 1, min(begin + _BLOCK, V) + 1, dtype=np.float64)
        p_V[begin : begin + _BLOCK] = family.ln_weight(theta, x_X, V)
    top, ln_weight_R = p_V.max(), p_V[sample.at_R]
    p_V -= top
    np.exp(p_V, out=p_V)
    norm = p_V.sum()
    loglik = float(sample.n_R @ (ln_weight_R - (top + np.log(norm))))
    p_V /= norm
    share_1 = float(p_V[0])
    np.cumsum(p_V, out=p_V)
    p_V -= sample.cdf_V
    return OverAllRanks(loglik, float(np.abs(p_V, out=p_V).max()), share_1)


def likelihood(
    family: Family, theta: Floats, seen: Seen, statistics_PX: Floats | None = None
) -> tuple[float, Floats, Floats]:
    """Log-likelihood, gradient [P] and Hessian [P, P].

    Args:
        family: which.
        theta: its parameters.
        seen: the tokens.
        statistics_PX: slopes of a family that is linear, which are the same everywhere, if they are known.
    """
    if family.is_linear:
        slopes_PX = family.slopes(theta, seen.x_X, seen.V) if statistics_PX is None else statistics_PX
        ln_p_X, p_X = _shares(theta @ slopes_PX, seen)
    else:
        slopes_PMX = family.slopes(_beside(theta), seen.x_X, seen.V)
        slopes_PX = slopes_PMX[:, -1]
        ln_p_X, p_X = _shares(family.ln_weight(theta, seen.x_X, seen.V), seen)
    mean_P = slopes_PX @ p_X
    about_PX = slopes_PX - mean_P[:, None]
    hessian_PP = -seen.n * (about_PX * p_X) @ about_PX.T
    if not family.is_linear:
        # sum_x (n_x - n p_x) d^2 ln w_x / d theta^2; it vanishes where the model fits, and decides where it does not
        P = len(theta)
        bent_PMX = slopes_PMX[:, :P] - slopes_PMX[:, P : 2 * P]
        hessian_PP += (bent_PMX @ (seen.seen_X - seen.n * p_X)).T / (2 * _STEP)
        hessian_PP = (hessian_PP + hessian_PP.T) / 2
    value = total(seen, ln_p_X)
    return (value if np.isfinite(value) else -np.inf), slopes_PX @ seen.seen_X - seen.n * mean_P, hessian_PP


def _beside(theta: Floats) -> Floats:
    """Theta with each parameter a step up, then each a step down, then as it is, [P, M, 1]."""
    steps_PP = _STEP * np.eye(len(theta))
    return (theta[:, None] + np.hstack([steps_PP, -steps_PP, np.zeros((len(theta), 1))]))[..., None]


DISTRIBUTIONS: Final = tuple(FAMILIES)
_DERIVED: Final = ("mu", "sigma", "share_1")  # from the other parameters
_SAME: Final = 1e-11  # relative: likelihoods at the nodes and at all ranks are the same up to rounding


def fit_distribution(name: str, rank: ArrayLike, n_tokens: ArrayLike, V: int) -> RankFit:
    """As `fit_distributions`, of one family."""
    (fit,) = fit_distributions([name], rank, n_tokens, V)
    return fit


def fit_distributions(names: Sequence[str], rank: ArrayLike, n_tokens: ArrayLike, V: int) -> list[RankFit]:
    """Maximum likelihood of families over all ranks 1..V, each by itself.

    Maximises sum_x n_x ln p_x, p_x = w_x / sum_{y<=V} w_y, by Newton's method from each of the family's starts. The
    search sums over the nodes of `rank_nodes`, or over all ranks where these do not give its likelihood to rounding.
    The slopes of ln w are exact; the curvature is exact for families that are linear in their parameters (these are
    concave, so their maximum is the only one) and differenced for the others.

    Args:
        names: of `DISTRIBUTIONS`.
        rank: ranks, shape [R], whole numbers in 1..V in any order.
        n_tokens: number of tokens of each rank, shape [R].
        V: width of the vocabulary of this model.

    Returns:
        Fits. If the best parameter lies beyond the edge of its family, it is put there and the others are fitted
        again: power_law_limit for gamma <= 0, where no lognormal fits, at_limit for a rate <= 0 or a q >= 1; the free
        maximum is in params as ..._unconstrained. at_limit without numbers: the search left the family.
        not_converged: it found no maximum from any start. too_few_tokens: fewer different ranks than 3 or
        than parameters and one more. mid_ranks: a rank is a half.

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
    """As `fit_distributions`, of counts that were checked."""
    given = Params({"V": sample.V})
    if np.any(sample.rank_R != np.floor(sample.rank_R)):
        return [_without_numbers(FAMILIES[name], given, Status.mid_ranks) for name in names]
    given["n_tokens"] = round(sample.n)
    return [_fit(FAMILIES[name], sample, given) for name in names]


def _fit(family: Family, sample: RankSample, given: Params) -> RankFit:
    if len(sample.rank_R) < max(3, family.n_parameters + 1):
        return _without_numbers(family, given, Status.too_few_tokens)
    theta, status, free, ends = _search(family, sample.few)
    with np.errstate(all="ignore"):  # where a search ran away to
        at_all = [over_all_ranks(family, end, sample) for end in ends]
        holds = [holds_at_nodes(family, end, sample, at.loglik) for end, at in zip(ends, at_all, strict=True)]
    if not all(holds):
        theta, status, free, ends = _search(family, sample.every)
    if theta is None:
        return _without_numbers(family, given, status)
    over_all = at_all[-1] if all(holds) else over_all_ranks(family, theta, sample)
    params = family.params(theta, sample.V, over_all.share_1) | given
    if family.edge is not None:
        params |= {f"{key}_unconstrained": value for key, value in free.items() if key not in _DERIVED}
    return scored(family.name, params, over_all.loglik, family.n_parameters, over_all.distance, status)


def ln_shares(fit: RankFit, V: int) -> Floats:
    """Ln p_x of a fitted distribution at the ranks x = 1..V, shape [V]; raises as `fitted`."""
    family, theta = fitted(fit, V)
    ln_weight_V = family.ln_weight(theta, np.arange(1, V + 1, dtype=np.float64), V)
    return np.asarray(ln_weight_V - ln_sum_exp(ln_weight_V, axis=0))


def fitted(fit: RankFit, V: int) -> tuple[Family, Floats]:
    """The family of a fit and its parameters as the search sees them.

    Raises:
        ValueError: if the fit has no numbers, or is not a distribution over 1..V.
    """
    if fit.distribution not in FAMILIES or fit.loglik is None:
        raise ValueError(f"needs a fit over 1..V that has numbers, got {fit.distribution} with {fit.status}")
    family = FAMILIES[fit.distribution]
    return family, family.theta(fit.params, V)


def holds_at_nodes(family: Family, theta: Floats, sample: RankSample, loglik: float) -> bool:
    """Whether the likelihood at the nodes is that of all ranks, which it is not where a family is too steep."""
    at_nodes = total(sample.few, normalised(family, theta, sample.few))
    return abs(at_nodes - loglik) <= _SAME * abs(loglik)


def _without_numbers(family: Family, given: Params, status: Status) -> RankFit:
    """A fit whose parameters have names and no values."""
    names = family.params(np.array(family.starts[0]), V=1)
    return RankFit(family.name, dict.fromkeys(names) | given, status=status)


def _search(family: Family, seen: Seen) -> tuple[Floats | None, Status, Params, list[Floats]]:
    """The best maximum inside the family: theta or None, its status, the free maximum, and where the search ended."""
    climbs = [_climb(family, seen, np.array(start), None) for start in family.starts]
    tops = [theta for theta, converged in climbs if converged]
    if not tops:
        ran_away = not any(family.holds(1.1 * theta) for theta, _ in climbs)
        return None, Status.at_limit if ran_away else Status.not_converged, {}, [theta for theta, _ in climbs]
    theta = tops[0]
    if len(tops) > 1:
        with np.errstate(all="ignore"):  # far from the best
            theta = max(tops, key=lambda top: total(seen, normalised(family, top, seen)))
    if family.edge is None or theta[family.edge[0]] > 0:
        return theta, Status.ok, family.params(theta, seen.V), [theta]
    edge, status = family.edge
    start = np.array(theta)
    start[edge] = 0.0
    at_edge, converged = _climb(family, seen, start, edge)
    return (at_edge if converged else None), status, family.params(theta, seen.V), [theta, at_edge]


def _climb(family: Family, seen: Seen, start: Floats, fixed: int | None) -> tuple[Floats, bool]:
    statistics_PX = family.slopes(start, seen.x_X, seen.V) if family.is_linear else None

    def objective(theta: Floats) -> tuple[float, Floats, Floats]:
        return likelihood(family, theta, seen, statistics_PX)

    return maximise(objective, start, family.holds, fixed)


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
    held = family.edge[0] if family.edge is not None and theta[family.edge[0]] == 0 else None
    free = [i for i in range(family.n_parameters) if i != held]
    influence_RP = np.zeros((len(sample.rank_R), family.n_parameters))
    influence_RP[:, free] = np.linalg.solve(-hessian_PP[np.ix_(free, free)], score_PR[free]).T
    return RankCurve(
        np.append(-np.log(rbp_K), -p_X @ ln_p_X),
        np.column_stack([by_theta_PK, -moved_PX @ ln_p_X]),
        influence_RP,
        family.ln_weight(theta, sample.rank_R, sample.V) - ln_z,
    )
