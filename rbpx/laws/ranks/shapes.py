"""Forms of the rank distribution: parameters in; shares of ranks, RBP_k, entropy and cross-entropy out.

A form may be a mixture of kinds of tokens. The entropy of the ranks, H(P), is then that of the mixture, and
cross-entropy the mean entropy of the kinds. Each entry of `RANK_FORMS` is a row of closure in `ranks`.

Shapes: any leading axes "..." of sets of parameters, P parameters, C kinds of tokens, Q nodes, K values of k.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import log_expit

from rbpx.laws.numeric import Floats, ln_sum_exp
from rbpx.laws.ranks.family import LOGNORMAL, POWER_LAW_CUTOFF, Exponential
from rbpx.laws.ranks.quadrature import RankNodes, Shares, curve_of, entropy_of


@dataclass(frozen=True)
class RankForm:
    """A form of the distribution of the ranks.

    Attributes:
        label: its name in tables, at most 16 characters.
        equation: p_x up to its normalisation.
        parameters: names; each is real, and a line in ln S where the form is fitted to several sizes.
        shares: of parameters [..., P] and nodes; returns the shares of each kind of tokens.
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
    """Ln of the share of each rank among all tokens, [..., Q]."""
    ln_weight_C, ln_p_CQ = shares
    if ln_p_CQ.shape[-2] == 1:
        return ln_p_CQ[..., 0, :]
    return ln_sum_exp(ln_weight_C[..., None] + ln_p_CQ, axis=-2)[..., 0, :]


def derive(shares: Shares, nodes: RankNodes) -> Floats:
    """What a form implies: -ln RBP_k at each k, H(P), then cross-entropy, nats, [..., K + 2].

    H(P) = -sum_x p_x ln p_x; CE = -sum_c w_c sum_x p_cx ln p_cx.
    """
    ln_weight_C, ln_p_CQ = shares
    own_C = entropy_of(ln_p_CQ, np.exp(ln_p_CQ + nodes.ln_ranks_Q))
    cross_entropy = (np.exp(ln_weight_C) * own_C).sum(axis=-1)
    return np.concatenate([curve_of(ln_mixture(shares), nodes), cross_entropy[..., None]], axis=-1)


def _of_family(family: Exponential) -> RankForm:
    def shares(theta: Floats, nodes: RankNodes) -> Shares:
        return nodes.one(family.ln_weight(theta, nodes.x_Q, nodes.V))

    parameters = tuple(f"theta_{n}" for n in range(family.n_parameters))
    return RankForm(family.label, family.equation, parameters, family.starts, shares)


def _geometric_and_power(theta: Floats, nodes: RankNodes) -> Shares:
    odds, ln_fall, beta, ln_rate = np.moveaxis(theta, -1, 0)[..., None]
    easy_Q = -np.exp(ln_fall) * (nodes.x_Q - 1)
    hard_Q = -beta * nodes.ln_x_Q - np.exp(ln_rate) * nodes.x_Q / nodes.V
    ln_p_CQ = np.stack([nodes.normalised(easy_Q), nodes.normalised(hard_Q)], axis=-2)
    return np.concatenate([log_expit(odds), log_expit(-odds)], axis=-1), ln_p_CQ


RANK_FORMS: Final[dict[str, RankForm]] = {
    "lognormal_full": _of_family(LOGNORMAL),
    "power_law_cutoff": _of_family(POWER_LAW_CUTOFF),
    "geometric_and_power": RankForm(
        "geometric, power",
        "w exp(-h (x-1)) / Z1 + (1 - w) x^(-b) exp(-r x / V) / Z2",
        ("ln w/(1-w)", "ln h", "b", "ln r"),
        ((-2.0, 0.5, 0.9, 1.0),),
        _geometric_and_power,
    ),
}
"""All forms by name: the lognormal of the paper's conjecture, a rival, and one with two kinds of tokens."""
