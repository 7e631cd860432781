"""Fits a beta distribution of p to items by maximum likelihood; the exponent of its left tail is that of attempts.

Counts are binomial given p, integrated over nodes; a known p is the datum itself. Intervals over items are by the
sandwich: item i has the influence -H^-1 s_i, s_i its score and H the Hessian of all.

Source: arXiv 2502.17578. Shapes: I items, U distinct items, N nodes.
"""

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate, from_influence
from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.laws.solver import maximise
from rbpx.questions.attempts.mixing import condensed, density, nodes_for
from rbpx.questions.attempts.passing import CountedItems, Items

_LARGEST: Final = 60.0  # |ln a| and |ln b| of a search
_ALIKE: Final = 1e4  # a from which p is in effect the same at every item
_CERTAIN: Final = 2.0**-24  # 1 - p that single precision cannot tell from 0
_CHUNK: Final = 4_000_000  # elements of an array of items by nodes


class Likelihood:
    """Log-likelihood of a beta distribution of p over items.

    Attributes:
        of_I: index of each item among the U distinct ones.
        weight_U: number of items equal to each.
        ln_p_U: ln p of known chances below 1, the first of these.
        ln_UN: for the others, ln of likelihood times width at each node; a chance that is 1 in single precision has
            the width alone, at the nodes with p no smaller.
    """

    def __init__(self, items: Items) -> None:
        if isinstance(items, CountedItems):
            pairs, self.of_I, self.weight_U = np.unique(
                np.stack([items.right_I, items.tried_I]), axis=1, return_inverse=True, return_counts=True
            )
            right_U, tried_U = pairs.astype(np.float64)
            c_U, n_U = condensed(right_U, tried_U)
            self.ln_p_U, self.nodes = np.zeros(0), nodes_for(int(items.tried_I.max()))
            self.ln_UN = c_U[:, None] * self.nodes.ln_p_N + (n_U - c_U)[:, None] * self.nodes.ln_q_N
            self.ln_UN += self.nodes.ln_w_N
        else:
            ln_p_I = np.where(items.ln_p_I > -_CERTAIN, 0.0, items.ln_p_I)
            ln_p_U, self.of_I, self.weight_U = np.unique(ln_p_I, return_inverse=True, return_counts=True)
            self.ln_p_U, self.nodes = ln_p_U[ln_p_U < 0], nodes_for(1)
            above_N = np.where(self.nodes.ln_p_N > -_CERTAIN, self.nodes.ln_w_N, -np.inf)
            self.ln_UN = np.repeat(above_N[None], len(ln_p_U) - len(self.ln_p_U), axis=0)

    def at(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Ln L, scores [U, 2] and Hessians [U, 2, 2] of the distinct items."""
        known = density(theta, self.ln_p_U, np.log(-np.expm1(self.ln_p_U)))
        ln_f_N, s_N2, hessian_N22 = density(theta, self.nodes.ln_p_N, self.nodes.ln_q_N)
        squares_N22 = hessian_N22 + s_N2[:, :, None] * s_N2[:, None]
        ln_U, mean = self._means(ln_f_N, np.hstack([s_N2, squares_N22.reshape(-1, 4)]))
        summed = ln_U, mean[:, :2], mean[:, 2:].reshape(-1, 2, 2) - mean[:, :2, None] * mean[:, None, :2]
        ln_U, score_U2, hessian_U22 = map(np.concatenate, zip(known, summed, strict=True))
        return ln_U, score_U2, hessian_U22

    def total(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Ln L, gradient and Hessian summed over all items."""
        ln_U, score_U2, hessian_U22 = self.at(theta)
        w = self.weight_U
        return float(w @ ln_U), w @ score_U2, np.tensordot(w, hessian_U22, 1)

    def fails(self, theta: Floats, k: int) -> Floats:
        """E (1 - p)^k of each item given its counts, [I]."""
        ln_f_N, _, _ = density(theta, self.nodes.ln_p_N, self.nodes.ln_q_N)
        return np.asarray(self._means(ln_f_N, np.exp(k * self.nodes.ln_q_N)[:, None])[1][self.of_I, 0])

    def _means(self, ln_f_N: Floats, terms_NT: Floats) -> tuple[Floats, Floats]:
        """Ln of the integral of likelihood times density, [U], and the posterior means of terms, [U, T]."""
        ln_U, mean_UT = np.empty(len(self.ln_UN)), np.empty((len(self.ln_UN), terms_NT.shape[1]))
        size = max(1, _CHUNK // len(ln_f_N))
        for begin in range(0, len(ln_U), size):
            part = slice(begin, begin + size)
            ln_UN = self.ln_UN[part] + ln_f_N
            top_U1 = ln_UN.max(axis=1, keepdims=True)
            weight_UN = np.exp(ln_UN - top_U1)
            whole_U = weight_UN.sum(axis=1)
            ln_U[part] = np.log(whole_U) + top_U1[:, 0]
            mean_UT[part] = weight_UN @ terms_NT / whole_U[:, None]
        return ln_U, mean_UT


@dataclass(frozen=True, eq=False)
class Tail:
    """A beta distribution of p fitted to items.

    Attributes:
        theta: (ln a, ln b); None where no maximum was found.
        influence_I2: of each item on theta.
        all_alike: a single p for all items is likelier than any spread.
    """

    likelihood: Likelihood
    theta: Floats | None = None
    influence_I2: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    all_alike: bool = False

    @property
    def a(self) -> Estimate:
        """Exponent of the tail, with its interval over items."""
        return self._constant(0)

    @property
    def b(self) -> Estimate:
        """The other constant; pass@k reaches the tail at k far above it."""
        return self._constant(1)

    def _constant(self, at: int) -> Estimate:
        if self.theta is None:
            return Estimate()
        influence_I = self.influence_I2[:, at]
        return from_influence(float(self.theta[at]), influence_I, len(influence_I)).through(exp_or_none)

    @property
    def covariance_22(self) -> Floats:
        """Covariance of theta over items."""
        n = len(self.influence_I2)
        return np.asarray(self.influence_I2.T @ self.influence_I2 * n / max(n - 1, 1))


def _is_allowed(theta: Floats) -> bool:
    return bool(np.abs(theta).max() < _LARGEST and theta[0] < math.log(_ALIKE))


def fit_tail(items: Items) -> Tail:
    """Fits the distribution of p over the items of one model."""
    likelihood = Likelihood(items)
    mean = float(items.passes([1]).mean())
    if not 0 < mean < 1:
        return Tail(likelihood)
    start = np.log([0.3, 0.3 * (1 - mean) / mean])
    theta, found = maximise(likelihood.total, start, _is_allowed)
    if not found:
        return Tail(likelihood, all_alike=bool(theta[0] > math.log(_ALIKE) / 2))
    _, score_U2, hessian_U22 = likelihood.at(theta)
    hessian = np.tensordot(likelihood.weight_U, hessian_U22, 1)
    influence_I2 = -(score_U2 @ np.linalg.inv(hessian))[likelihood.of_I]
    return Tail(likelihood, theta, influence_I2)
