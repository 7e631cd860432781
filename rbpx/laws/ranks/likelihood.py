"""The likelihood of a family of rank distributions: its parameters and a sample of ranks in, value and slopes out.

Shapes: P parameters, R different ranks, V the vocabulary, X the ranks, or nodes among them, that sums are evaluated at,
M sets of parameters.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.ranks.derived import RankNodes, every_rank, rank_nodes
from rbpx.laws.ranks.family import Family

_STEP: Final = 1e-5  # of a parameter, to difference the exact gradient
_BLOCK: Final = 8192  # ranks at a time: the temporaries of a family stay in the cache of a core


@dataclass(frozen=True, eq=False)
class Seen:
    """Tokens by rank, and where to evaluate a family: at every rank, or at the nodes of `rank_sums`.

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
