"""Forms of the rank distribution: parameters in; shares of ranks, RBP_k, entropy and cross-entropy out.

A form may be a mixture of kinds of tokens, each with a rank distribution of its own. The entropy of the ranks, H(P), is
then that of the mixture, and cross-entropy the mean entropy of the kinds; without kinds both are equal. Each entry of
`RANK_FORMS` is a row of closure in `ranks`.

Shapes: any leading axes "..." of sets of parameters, P parameters, C kinds of tokens, Q nodes, K values of k.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import log_expit

from rbpx.laws.numeric import Floats, ln_sum_exp
from rbpx.laws.ranks.family import FAMILIES, Family
from rbpx.laws.ranks.quadrature import RankNodes, Shares, curve_of, entropy_of

_AT_C, _WEIGHT_C = np.polynomial.hermite_e.hermegauss(15)  # nodes and weights of the normal distribution of exponents
_LN_WEIGHT_C: Final = np.log(_WEIGHT_C / _WEIGHT_C.sum())


@dataclass(frozen=True)
class RankForm:
    """A form of the distribution of the ranks.

    Attributes:
        label: its name in tables, at most 16 characters.
        equation: p_x up to its normalisation.
        parameters: their names; each is real, and a line in ln S where the form is fitted to several sizes.
        starts: where to search from.
        shares: function of parameters [..., P] and nodes; returns the shares of each kind of tokens.
    """

    label: str
    equation: str
    parameters: tuple[str, ...]
    starts: tuple[tuple[float, ...], ...]
    shares: Callable[[Floats, RankNodes], Shares]

    @property
    def n_parameters(self) -> int:
        """Number of parameters at one size."""
        return len(self.parameters)


def ln_mixture(shares: Shares) -> Floats:
    """Returns ln of the share of each rank among all tokens, [..., Q]."""
    ln_weight_C, ln_p_CQ = shares
    if ln_p_CQ.shape[-2] == 1:
        return ln_p_CQ[..., 0, :]
    return ln_sum_exp(ln_weight_C[..., None] + ln_p_CQ, axis=-2)[..., 0, :]


def derive(shares: Shares, nodes: RankNodes) -> Floats:
    """Returns what a form implies: -ln RBP_k at each k, H(P), then cross-entropy, nats, [..., K + 2].

    H(P) = -sum_x p_x ln p_x; CE = -sum_c w_c sum_x p_cx ln p_cx.
    """
    ln_weight_C, ln_p_CQ = shares
    own_C = entropy_of(ln_p_CQ, np.exp(ln_p_CQ + nodes.ln_ranks_Q))
    cross_entropy = (np.exp(ln_weight_C) * own_C).sum(axis=-1)
    return np.concatenate([curve_of(ln_mixture(shares), nodes), cross_entropy[..., None]], axis=-1)


_NAMES: Final = {
    **{"lognormal_full": "lognormal", "lognormal_inflated": "inflated lognormal", "weibull": "Weibull"},
    **{"power_law_cutoff": "truncated power law", "zipf_mandelbrot": "Zipf-Mandelbrot"},
}


def _of_family(family: Family) -> RankForm:
    def shares(theta: Floats, nodes: RankNodes) -> Shares:
        at = theta if family.is_linear else _each(theta)
        return nodes.one(family.ln_weight(at, nodes.x_Q, nodes.V))

    parameters = tuple(f"theta_{n}" for n in range(family.n_parameters))
    label = _NAMES.get(family.name, family.name.replace("_", " "))
    return RankForm(label, family.equation, parameters, family.starts, shares)


# ------------------------------------------------------------------------------------------------ components of shapes


def _each(theta: Floats) -> Floats:
    """Parameters first, [P, ..., 1], to broadcast over nodes."""
    return np.moveaxis(theta, -1, 0)[..., None]


def _at_first(odds: Floats, nodes: RankNodes) -> Floats:
    return np.where(nodes.x_Q == 1, odds, 0.0)


def _shifted(ln_shift: Floats, nodes: RankNodes) -> Floats:
    return np.asarray(np.log(nodes.x_Q - 1 + np.exp(ln_shift)))


def _cut_off(ln_rate: Floats, nodes: RankNodes) -> Floats:
    return np.asarray(np.exp(ln_rate) * nodes.x_Q / nodes.V)


def _stretched(ln_rate: Floats, ln_stretch: Floats, nodes: RankNodes) -> Floats:
    return np.asarray(np.exp(ln_rate) * np.exp(np.exp(ln_stretch) * np.log(nodes.x_Q / nodes.V)))


def _two_kinds(odds: Floats, ln_easy_Q: Floats, ln_hard_Q: Floats, nodes: RankNodes) -> Shares:
    """Easy and hard tokens, from the odds of the easy ones and the log-weights of the ranks of both."""
    ln_p_CQ = np.stack([nodes.normalised(ln_easy_Q), nodes.normalised(ln_hard_Q)], axis=-2)
    return np.concatenate([log_expit(odds), log_expit(-odds)], axis=-1), ln_p_CQ


# ------------------------------------------------------------------------------------------------------------- shapes


def _generalised_gamma(theta: Floats, nodes: RankNodes) -> Shares:
    odds, beta, ln_rate, ln_stretch = _each(theta)
    return nodes.one(_at_first(odds, nodes) - beta * nodes.ln_x_Q - _stretched(ln_rate, ln_stretch, nodes))


def _geometric_and_power(theta: Floats, nodes: RankNodes) -> Shares:
    odds, ln_fall, beta, ln_rate = _each(theta)
    easy = -np.exp(ln_fall) * (nodes.x_Q - 1)
    return _two_kinds(odds, easy, -beta * nodes.ln_x_Q - _cut_off(ln_rate, nodes), nodes)


def _inflated_cut_off(theta: Floats, nodes: RankNodes) -> Shares:
    odds, beta, ln_rate = _each(theta)
    return nodes.one(_at_first(odds, nodes) - beta * nodes.ln_x_Q - _cut_off(ln_rate, nodes))


def _shifted_cut_off(theta: Floats, nodes: RankNodes) -> Shares:
    beta, ln_shift, ln_rate = _each(theta)
    return nodes.one(-beta * _shifted(ln_shift, nodes) - _cut_off(ln_rate, nodes))


def _shifted_stretched(theta: Floats, nodes: RankNodes) -> Shares:
    beta, ln_shift, ln_rate, ln_stretch = _each(theta)
    return nodes.one(-beta * _shifted(ln_shift, nodes) - _stretched(ln_rate, ln_stretch, nodes))


def _spread_exponents(theta: Floats, nodes: RankNodes) -> Shares:
    """Power laws with one cut-off, their exponents normally distributed over tokens."""
    mean, ln_sd, ln_rate = _each(theta)[..., None]
    beta_C1 = mean + np.exp(ln_sd) * _AT_C[:, None]
    ln_p_CQ = nodes.normalised(-beta_C1 * nodes.ln_x_Q - _cut_off(ln_rate, nodes))
    return np.broadcast_to(_LN_WEIGHT_C, (*theta.shape[:-1], len(_LN_WEIGHT_C))), ln_p_CQ


def _two_power_laws(theta: Floats, nodes: RankNodes) -> Shares:
    odds, ln_steep, beta, ln_rate = _each(theta)
    easy = -np.exp(ln_steep) * nodes.ln_x_Q
    return _two_kinds(odds, easy, -beta * nodes.ln_x_Q - _cut_off(ln_rate, nodes), nodes)


RANK_FORMS: Final[dict[str, RankForm]] = {name: _of_family(family) for name, family in FAMILIES.items()} | {
    "generalised_gamma": RankForm(
        "gen. gamma",
        "share_1 at x = 1, x^(-b) exp(-r (x/V)^s) beyond",
        ("odds", "b", "ln r", "ln s"),
        ((0.2, 0.9, 1.0, 0.0),),
        _generalised_gamma,
    ),
    "geometric_and_power": RankForm(
        "geometric, power",
        "w exp(-h (x-1)) / Z1 + (1 - w) x^(-b) exp(-r x / V) / Z2",
        ("ln w/(1-w)", "ln h", "b", "ln r"),
        ((-2.0, 0.5, 0.9, 1.0),),
        _geometric_and_power,
    ),
    "inflated_cut_off": RankForm(
        "cut off, rank 1",
        "share_1 at x = 1, x^(-b) exp(-r x / V) beyond",
        ("odds", "b", "ln r"),
        ((0.2, 0.9, 1.0),),
        _inflated_cut_off,
    ),
    "shifted_cut_off": RankForm(
        "Zipf-M., cut off",
        "(x + q)^(-b) exp(-r x / V)",
        ("b", "ln 1+q", "ln r"),
        ((0.9, 0.0, 1.0), (1.0, -0.8, 1.0)),
        _shifted_cut_off,
    ),
    "shifted_stretched": RankForm(
        "zeta, stretched",
        "(x + q)^(-b) exp(-r (x/V)^s)",
        ("b", "ln 1+q", "ln r", "ln s"),
        ((0.9, 0.0, 1.0, 0.0), (1.0, -0.8, 1.2, 0.2)),
        _shifted_stretched,
    ),
    "spread_exponents": RankForm(
        "spread exponents",
        "mean over b ~ N(m, s^2) of x^(-b) exp(-r x / V) / Z(b)",
        ("m", "ln s", "ln r"),
        ((0.95, -1.2, 1.0),),
        _spread_exponents,
    ),
    "two_power_laws": RankForm(
        "two power laws",
        "w x^(-b1) / Z1 + (1 - w) x^(-b2) exp(-r x / V) / Z2",
        ("ln w/(1-w)", "ln b1", "b2", "ln r"),
        ((-1.0, 0.7, 0.9, 1.0), (-3.0, 1.0, 0.9, 1.0)),
        _two_power_laws,
    ),
}
"""All forms by name: the families of `ranks`, then those with a cut-off, a stretched end or kinds of tokens."""
