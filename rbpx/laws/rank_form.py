"""Forms of the distribution of the ranks: parameters in, the shares of the ranks and what follows from them out.

A form may be a mixture: tokens are of several kinds, and each kind has a distribution of its own. Then the entropy of
the ranks, H(P), is that of the mixture, and cross-entropy is the mean entropy of the kinds: what is left to a model
that knows which kind a token is of, and no more. A form without kinds says that both are the same.

Shapes: any leading axes "..." of sets of parameters, P parameters, C kinds of tokens, Q places (`rbpx.laws.rank_sums`),
K values of k.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.arrays import Floats
from rbpx.laws.exponential import ln_sum_exp
from rbpx.laws.family import FAMILIES, Family
from rbpx.laws.rank_sums import RankNodes, rank_nodes

Shares = tuple[Floats, Floats]
"""Ln of the weight of each kind, [..., C], and ln of the share of each rank among its tokens, [..., C, Q]."""


@dataclass(frozen=True, eq=False)
class Places:
    """Where forms are evaluated: the nodes of the ranks 1..V.

    Attributes:
        x_Q: the ranks, or places between them.
        ln_x_Q: their logarithms.
        ln_ranks_Q: logarithm of how many ranks each stands for.
        V: width of the vocabulary.
        upto_K: how many places lie up to each k.
        nodes: the nodes themselves.
    """

    x_Q: Floats
    ln_x_Q: Floats
    ln_ranks_Q: Floats
    V: int
    upto_K: NDArray[np.intp]
    nodes: RankNodes

    def one(self, ln_weight_Q: Floats) -> Shares:
        """A form without kinds: ln of shares from ln of weights up to a factor, [..., Q]."""
        ln_p_Q = self.normalised(ln_weight_Q)
        return np.zeros((*ln_p_Q.shape[:-1], 1)), ln_p_Q[..., None, :]

    def normalised(self, ln_weight_Q: Floats) -> Floats:
        """Ln of shares that sum to 1 over the ranks, in the last axis."""
        return np.asarray(ln_weight_Q - ln_sum_exp(ln_weight_Q + self.ln_ranks_Q, axis=-1))


def places_of(V: int, k_grid: Sequence[int] = ()) -> Places:
    """The places of the ranks 1..V, with an end at each k."""
    upto = np.minimum(np.asarray(k_grid, dtype=np.int64), V)
    nodes = rank_nodes(V, tuple(upto.tolist()))
    return Places(nodes.x_Q, np.log(nodes.x_Q), np.log(nodes.weight_Q), V, nodes.upto(upto), nodes)


@dataclass(frozen=True)
class RankForm:
    """A form of the distribution of the ranks, as a file of `rbpx.laws.rank_forms` gives it under the name FORM.

    Attributes:
        label: its name in tables, at most 16 characters.
        equation: p_x up to its normalisation.
        parameters: their names; each is real, and a law of ln S where the form is fitted to several sizes.
        starts: where to search from, each a set of parameters.
        shares: parameters [..., P] and places in, the shares of each kind of tokens out.
    """

    label: str
    equation: str
    parameters: tuple[str, ...]
    starts: tuple[tuple[float, ...], ...]
    shares: Callable[[Floats, Places], Shares]

    @property
    def n_parameters(self) -> int:
        """Number of parameters at one size."""
        return len(self.parameters)


def mixed(shares: Shares) -> Floats:
    """Ln of the share of each rank among all tokens, [..., Q]."""
    ln_weight_C, ln_p_CQ = shares
    if ln_p_CQ.shape[-2] == 1:
        return ln_p_CQ[..., 0, :]
    return ln_sum_exp(ln_weight_C[..., None] + ln_p_CQ, axis=-2)[..., 0, :]


def derive(shares: Shares, places: Places) -> Floats:
    """What follows from a form: -ln RBP_k at each k, then H(P), then cross-entropy, nats, [..., K + 2].

    H(P) = -sum_x p_x ln p_x; CE = -sum_c w_c sum_x p_cx ln p_cx.
    """
    ln_p_Q = mixed(shares)
    p_Q = np.exp(ln_p_Q + places.ln_ranks_Q)
    upto_Q = np.minimum(np.cumsum(p_Q, axis=-1), 1.0)
    ln_weight_C, ln_p_CQ = shares
    own_C = -_times(np.exp(ln_p_CQ + places.ln_ranks_Q), ln_p_CQ)
    cross_entropy = (np.exp(ln_weight_C) * own_C).sum(axis=-1)
    entropy = -_times(p_Q, ln_p_Q)
    with np.errstate(divide="ignore"):  # a share too small for a number
        curve_K = -np.log(upto_Q[..., places.upto_K - 1])
    return np.concatenate([curve_K, entropy[..., None], cross_entropy[..., None]], axis=-1)


def _times(p_Q: Floats, ln_p_Q: Floats) -> Floats:
    """Sum of p ln p; a share too small for a number counts as 0."""
    return np.asarray(np.where(p_Q > 0, p_Q * np.where(np.isfinite(ln_p_Q), ln_p_Q, 0.0), 0.0).sum(axis=-1))


@cache
def rank_forms() -> Mapping[str, RankForm]:
    """All forms by name: the families of `ranks`, then a file each."""
    files = sorted(module.name for module in iter_modules(import_module("rbpx.laws.rank_forms").__path__))
    more = {name: import_module(f"rbpx.laws.rank_forms.{name}").FORM for name in files}
    return {name: _of_family(family) for name, family in FAMILIES.items()} | more


def _of_family(family: Family) -> RankForm:
    """A family of the verb ranks, whose parameters are taken as they are, without an edge."""

    def shares(theta: Floats, places: Places) -> Shares:
        flat = theta.reshape(-1, theta.shape[-1])
        ln_weight = np.stack([family.ln_weight(each, places.x_Q, places.V) for each in flat])
        return places.one(ln_weight.reshape(*theta.shape[:-1], len(places.x_Q)))

    names = tuple(f"theta_{n}" for n in range(family.n_parameters))
    return RankForm(family.name.replace("_", " "), family.equation, names, family.starts, shares)
