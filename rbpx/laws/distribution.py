"""Distributions of the ranks over 1..V: counts of ranks in, the most likely member of each family out.

All are exact, discrete and truncated at V, so that their likelihoods compare. Shapes: P parameters, R different ranks,
V the vocabulary, D documents, X the ranks, or nodes among them, that sums are evaluated at.

Source: the lognormal is the conjecture of the RBP paper (arXiv 2510.20387, eq. 9); the others are its rivals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.ascent import maximise
from rbpx.laws.family import FAMILIES, Family
from rbpx.laws.rank_fit import Params, RankFit, checked_counts, scored, without_numbers
from rbpx.laws.rank_sums import rank_nodes
from rbpx.status import Status

__all__ = ["DISTRIBUTIONS", "fit_distribution", "fit_distributions", "ln_shares", "parameter_influence"]

Floats = NDArray[np.float64]

DISTRIBUTIONS: Final = tuple(FAMILIES)
_DERIVED: Final = ("mu", "sigma", "share_1")  # from the other parameters
_SAME: Final = 1e-11  # relative: likelihoods at the nodes and at all ranks are the same up to rounding
_STEP: Final = 1e-5  # of a parameter, to difference the exact gradient


def fit_distribution(name: str, rank: ArrayLike, n_tokens: ArrayLike, V: int) -> RankFit:
    """As `fit_distributions`, of one family."""
    (fit,) = fit_distributions([name], rank, n_tokens, V)
    return fit


def fit_distributions(names: Sequence[str], rank: ArrayLike, n_tokens: ArrayLike, V: int) -> list[RankFit]:
    """Maximum likelihood of families over all ranks 1..V, each by itself.

    Maximises sum_x n_x ln p_x, p_x = w_x / sum_{y<=V} w_y, by Newton's method from each of the family's starts. The
    search sums over the nodes of `rank_sums`, or over all ranks where these do not give its likelihood to rounding. The
    slopes of ln w are exact; the curvature is exact for families that are linear in their parameters (these are
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
    given: Params = {"V": V}
    if np.any(rank_R != np.floor(rank_R)):
        return [without_numbers(name, Status.mid_ranks, _empty_params(FAMILIES[name], V) | given) for name in names]
    given["n_tokens"] = round(float(n_R.sum()))
    every_V, few_Q = _every(rank_R, n_R, V), _few(rank_R, n_R, V)
    return [_fit(name, len(rank_R), every_V, few_Q, given) for name in names]


def _fit(name: str, n_ranks: int, every_V: "_Seen", few_Q: "_Seen", given: Params) -> RankFit:
    family, V = FAMILIES[name], every_V.V
    if n_ranks < max(3, family.n_parameters + 1):
        return without_numbers(name, Status.too_few_tokens, _empty_params(family, V) | given)
    theta, status, free, ends = _search(family, few_Q)
    if not all(_agree(family, end, few_Q, every_V) for end in ends):
        theta, status, free, _ = _search(family, every_V)
    if theta is None:
        return without_numbers(name, status, _empty_params(family, V) | given)
    params = family.params(theta, V) | given
    if family.edge is not None:
        params |= {f"{key}_unconstrained": value for key, value in free.items() if key not in _DERIVED}
    ln_p_V, seen_V = _normalised(family, theta, every_V), every_V.seen_X
    loglik = _total(every_V, ln_p_V)
    distance = float(np.abs(np.cumsum(seen_V / seen_V.sum() - np.exp(ln_p_V))).max())
    return scored(name, params, loglik, family.n_parameters, distance, status)


def ln_shares(fit: RankFit, V: int) -> Floats:
    """Ln p_x of a fitted distribution at the ranks x = 1..V, shape [V].

    Raises:
        ValueError: if the fit has no numbers, or is not a distribution over 1..V.
    """
    nothing = np.zeros(0)
    return _normalised(*_fitted(fit, V), _every(nothing, nothing, V))


def parameter_influence(fit: RankFit, rank: ArrayLike, n_tokens: ArrayLike, V: int) -> tuple[Floats, Floats]:
    """How the maximum moves when the counts do, to first order: the resampled theta is theta + n_resampled @ influence.

    influence_r = J^(-1) d ln p_r / d theta, J = -sum_x n_x d^2 ln p_x / d theta^2 at the maximum. At the counts of the
    fit itself the sum over ranks is 0. A parameter at an edge stays there.

    Args:
        fit: with numbers, to these counts.
        rank: ranks, shape [R], all different.
        n_tokens: tokens of each rank, shape [R].
        V: width of the vocabulary.

    Returns:
        Influence on theta, shape [R, P], and the slopes d ln p / d theta of all ranks, shape [P, V].

    Raises:
        ValueError: as in `ln_shares`.

    Source:
        One-step estimator (Le Cam); van der Vaart, Asymptotic Statistics, section 5.7.
    """
    family, theta = _fitted(fit, V)
    at_R = np.asarray(rank, dtype=np.int64) - 1
    every_V = _every(np.asarray(rank, np.float64), np.asarray(n_tokens, np.float64), V)
    free = _free(family, theta)
    _, _, hessian_PP = _likelihood(family, theta, every_V)
    slopes_PV = family.slopes(theta, every_V.x_X, V)
    score_PV = slopes_PV - (slopes_PV @ np.exp(_normalised(family, theta, every_V)))[:, None]
    influence_RP = np.zeros((len(at_R), family.n_parameters))
    influence_RP[:, free] = np.linalg.solve(-hessian_PP[np.ix_(free, free)], score_PV[free][:, at_R]).T
    return influence_RP, score_PV


@dataclass(frozen=True, eq=False)
class _Seen:
    """Tokens by rank, and where to evaluate a family: at every rank, or at the nodes of `rank_sums`.

    Attributes:
        x_X: the ranks or nodes.
        ln_ranks_X: logarithm of how many ranks each stands for.
        seen_X: tokens.
        n: all of them.
        V: the last rank.
    """

    x_X: Floats
    ln_ranks_X: Floats
    seen_X: Floats
    n: float
    V: int


def _every(rank_R: Floats, n_R: Floats, V: int) -> _Seen:
    seen_V = np.bincount(rank_R.astype(np.int64) - 1, weights=n_R, minlength=V).astype(np.float64)
    return _Seen(np.arange(1, V + 1, dtype=np.float64), np.zeros(V), seen_V, float(n_R.sum()), V)


def _few(rank_R: Floats, n_R: Floats, V: int) -> _Seen:
    nodes = rank_nodes(V)
    return _Seen(nodes.x_Q, np.log(nodes.weight_Q), nodes.moved(rank_R, n_R), float(n_R.sum()), V)


def _agree(family: Family, theta: Floats, few: _Seen, every: _Seen) -> bool:
    """Whether the likelihood at the nodes is that of all ranks, which it is not where a family is too steep."""
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):  # where a search ran away to
        at_few, at_every = (_total(seen, _normalised(family, theta, seen)) for seen in (few, every))
    return abs(at_few - at_every) <= _SAME * abs(at_every)


def _fitted(fit: RankFit, V: int) -> tuple[Family, Floats]:
    if fit.distribution not in FAMILIES or fit.loglik is None:
        raise ValueError(f"needs a fit over 1..V that has numbers, got {fit.distribution} with {fit.status}")
    family = FAMILIES[fit.distribution]
    return family, family.theta(fit.params, V)


def _normalised(family: Family, theta: Floats, seen: _Seen) -> Floats:
    """Ln p_x at each place."""
    ln_weight_X = family.ln_weight(theta, seen.x_X, seen.V)
    ln_weights_X = ln_weight_X + seen.ln_ranks_X
    top = ln_weights_X.max()
    return np.asarray(ln_weight_X - (top + np.log(np.exp(ln_weights_X - top).sum())))


def _total(seen: _Seen, ln_p_X: Floats) -> float:
    """The log-likelihood."""
    occurs_X = seen.seen_X != 0
    return float(seen.seen_X[occurs_X] @ ln_p_X[occurs_X])


def _empty_params(family: Family, V: int) -> Params:
    """The names of the parameters, without their values."""
    return dict.fromkeys(family.params(np.array(family.starts[0]), V))


def _free(family: Family, theta: Floats) -> list[int]:
    at_edge = family.edge is not None and theta[family.edge[0]] == 0
    return [i for i in range(family.n_parameters) if not (at_edge and family.edge is not None and i == family.edge[0])]


def _search(family: Family, seen: _Seen) -> tuple[Floats | None, Status, Params, list[Floats]]:
    """The best maximum inside the family: theta or None, its status, the free maximum, and where the search ended."""
    climbs = [_climb(family, seen, np.array(start), None) for start in family.starts]
    tops = [(value, theta) for value, theta, converged in climbs if converged]
    if not tops:
        ran_away = not any(family.holds(1.1 * theta) for _, theta, _ in climbs)
        return None, Status.at_limit if ran_away else Status.not_converged, {}, [theta for _, theta, _ in climbs]
    _, theta = max(tops, key=lambda top: top[0])
    if family.edge is None or theta[family.edge[0]] > 0:
        return theta, Status.ok, family.params(theta, seen.V), [theta]
    edge, status = family.edge
    start = np.array(theta)
    start[edge] = 0.0
    _, at_edge, converged = _climb(family, seen, start, edge)
    return (at_edge if converged else None), status, family.params(theta, seen.V), [theta, at_edge]


def _climb(family: Family, seen: _Seen, start: Floats, fixed: int | None) -> tuple[float, Floats, bool]:
    free = [i for i in range(family.n_parameters) if i != fixed]

    def objective(theta: Floats) -> tuple[float, Floats, Floats]:
        return _likelihood(family, theta, seen)

    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):  # steps too far are halved
        theta, converged = maximise(objective, start, free, family.holds)
        return objective(theta)[0], theta, converged


def _likelihood(family: Family, theta: Floats, seen: _Seen) -> tuple[float, Floats, Floats]:
    """Log-likelihood, gradient [P] and Hessian [P, P]."""
    ln_p_X = _normalised(family, theta, seen)
    slopes_PX = family.slopes(theta, seen.x_X, seen.V)
    p_X = np.exp(ln_p_X + seen.ln_ranks_X)
    mean_P = slopes_PX @ p_X
    about_PX = slopes_PX - mean_P[:, None]
    hessian_PP = -seen.n * (about_PX * p_X) @ about_PX.T
    if not family.is_linear:
        # sum_x (n_x - n p_x) d^2 ln w_x / d theta^2; it vanishes where the model fits, and decides where it does not
        unexplained_X = seen.seen_X - seen.n * p_X
        for i in range(len(theta)):
            step_P = np.zeros(len(theta))
            step_P[i] = _STEP
            bent_PX = family.slopes(theta + step_P, seen.x_X, seen.V) - family.slopes(theta - step_P, seen.x_X, seen.V)
            hessian_PP[i] += bent_PX @ unexplained_X / (2 * _STEP)
        hessian_PP = (hessian_PP + hessian_PP.T) / 2
    value = _total(seen, ln_p_X)
    return (value if np.isfinite(value) else -np.inf), slopes_PX @ seen.seen_X - seen.n * mean_P, hessian_PP
