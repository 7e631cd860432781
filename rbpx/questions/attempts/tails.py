"""Fits distributions of the chance p to items by maximum likelihood; their left tails are the exponents of attempts.

Counts are binomial given p; where p is known it is the datum itself. Intervals are over items: each item moves the
constants by -H^-1 s, s its score and H the Hessian of all (the sandwich), and shifts of other drawings of items follow.

Source: arXiv 2502.17578. Shapes: I items, N nodes.
"""

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from scipy.special import betaln, polygamma, psi

from rbpx.laws.intervals.estimate import Estimate, from_influence
from rbpx.laws.numeric import Floats
from rbpx.laws.solver import maximise
from rbpx.questions.attempts.mixing import Density, Nodes, Shape, condensed, density, nodes_for
from rbpx.questions.attempts.passing import Counted, Items

_LARGEST: Final = 60.0  # |ln a| and |ln b| of a search
_ALIKE: Final = 1e4  # a from which p is the same at every item, as far as any number of samples tells
_CERTAIN: Final = 2.0**-24  # 1 - p that single precision does not tell from 0
_CHUNK: Final = 4_000_000  # numbers of an array of items by nodes


@dataclass(frozen=True, eq=False)
class Tail:
    """A distribution of p, fitted to items.

    Attributes:
        shape: which.
        theta: (ln a, ln b); None where the search found no maximum.
        loglik: without the binomial coefficients; of known p that of their logits.
        influence_I2: what an item that counts for a little more changes in theta, over that little.
        hessian_22: of ln L.
        all_alike: whether the search found no maximum because one p for all items is likelier than any spread.
    """

    shape: Shape
    theta: Floats | None
    loglik: float | None = None
    influence_I2: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    hessian_22: Floats = field(default_factory=lambda: np.zeros((2, 2)))
    all_alike: bool = False

    @property
    def a(self) -> Estimate:
        """The exponent of the tail, with its interval over items."""
        return self._constant(0)

    @property
    def b(self) -> Estimate:
        """The other constant; beta's tail is reached at k far above it."""
        return self._constant(1)

    def _constant(self, at: int) -> Estimate:
        if self.theta is None:
            return Estimate()
        ln = from_influence(float(self.theta[at]), self.influence_I2[:, at])
        return ln.through(lambda each: None if each > 700 else math.exp(each))

    @property
    def covariance_22(self) -> Floats:
        """Of theta, over items."""
        n = len(self.influence_I2)
        return np.asarray(self.influence_I2.T @ self.influence_I2 * n / max(n - 1, 1))

    @property
    def aic(self) -> float | None:
        """Akaike's criterion; two constants."""
        return None if self.loglik is None else 4 - 2 * self.loglik


@dataclass(frozen=True, eq=False)
class Kernel:
    """The likelihood of each item at each node.

    Attributes:
        nodes: where.
        ln_IN: c ln p + (n - c) ln(1 - p) and the logarithm of the width of the node; of a p that is known to lie above
            all that single precision tells from 1, that of the width there alone.
    """

    nodes: Nodes
    ln_IN: Floats

    @staticmethod
    def of(right_I: Floats, tried_I: Floats, nodes: Nodes) -> "Kernel":
        """Of counts."""
        ln_IN = right_I[:, None] * nodes.ln_p_N + (tried_I - right_I)[:, None] * nodes.ln_q_N
        return Kernel(nodes, ln_IN + nodes.ln_w_N)

    def summed(self, ln_f_N: Floats, terms_NT: Floats) -> tuple[Floats, Floats]:
        """Ln of the integral of likelihood times density, [I], and the means of terms under their product, [I, T]."""
        ln_I, mean_IT = list[Floats](), list[Floats]()
        size = max(1, _CHUNK // self.ln_IN.shape[1])
        for begin in range(0, len(self.ln_IN), size):
            ln_IN = self.ln_IN[begin : begin + size] + ln_f_N
            top_I1 = ln_IN.max(axis=1, keepdims=True)
            weight_IN = np.exp(ln_IN - top_I1)
            whole_I = weight_IN.sum(axis=1)
            ln_I.append(np.log(whole_I) + top_I1[:, 0])
            mean_IT.append(weight_IN @ terms_NT / whole_I[:, None])
        return np.concatenate(ln_I), np.concatenate(mean_IT)


class Likelihood:
    """ln L of a distribution over items: value, scores of the items and Hessian at theta."""

    def __init__(self, shape: Shape, items: Items) -> None:
        self.shape, self.kernel = shape, None
        if isinstance(items, Counted):
            pairs = np.stack([items.right_I, items.tried_I])
            unique, self.of_I, self.weight_U = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
            right_U, tried_U = unique.astype(np.float64)
            self.c_U, self.n_U = condensed(right_U, tried_U)
            # What condensing takes from ln L where all p are as likely, 0 where it does nothing.
            self.lost_U = betaln(right_U + 1, tried_U - right_U + 1) - betaln(self.c_U + 1, self.n_U - self.c_U + 1)
            self.closed = shape is Shape.beta
            if not self.closed:
                self.kernel = Kernel.of(self.c_U, self.n_U, nodes_for(int(items.tried_I.max())))
            self.ln_p_U = None
        else:
            self.closed = False
            self.ln_p_U, self.of_I, self.weight_U = np.unique(items.ln_p_I, return_inverse=True, return_counts=True)
            self.lost_U = np.zeros(len(self.ln_p_U))
            self.is_certain_U = self.ln_p_U > -_CERTAIN
            nodes = nodes_for(1)
            above_N = np.where(nodes.ln_p_N > -_CERTAIN, nodes.ln_w_N, -np.inf)
            self.kernel = Kernel(nodes, above_N[None]) if self.is_certain_U.any() else None

    def at(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Ln L, scores [U, 2] and Hessians [U, 2, 2] of different items."""
        if self.closed:
            return _beta_binomial(theta, self.c_U, self.n_U)
        if self.ln_p_U is None:
            assert self.kernel is not None, "counts have one"
            return marginal(self.kernel, density(self.shape, theta, self.kernel.nodes.ln_p_N, self.kernel.nodes.ln_q_N))
        ln_p_U = np.where(self.is_certain_U, -1.0, self.ln_p_U)
        of = density(self.shape, theta, ln_p_U, np.log(-np.expm1(ln_p_U)))
        ln_f_U, score_U2, hessian_U22 = (
            of.ln_f_N.copy(),
            of.score_2N.T.copy(),
            np.moveaxis(of.hessian_22N, -1, 0).copy(),
        )
        if self.kernel is not None:
            nodes = self.kernel.nodes
            each = marginal(self.kernel, density(self.shape, theta, nodes.ln_p_N, nodes.ln_q_N))
            for array, value in zip((ln_f_U, score_U2, hessian_U22), each, strict=True):
                array[self.is_certain_U] = value[0]
        return ln_f_U, score_U2, hessian_U22

    def total(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Value, gradient and Hessian of all items."""
        ln_U, score_U2, hessian_U22 = self.at(theta)
        w = self.weight_U
        return float(w @ ln_U), w @ score_U2, np.tensordot(w, hessian_U22, 1)


def _beta_binomial(theta: Floats, c_U: Floats, n_U: Floats) -> tuple[Floats, Floats, Floats]:
    a, b = np.exp(theta)
    ln_U = betaln(a + c_U, b + n_U - c_U) - betaln(a, b)
    both = psi(a + b) - psi(a + b + n_U)
    score_U2 = np.stack([a * (psi(a + c_U) - psi(a) + both), b * (psi(b + n_U - c_U) - psi(b) + both)], axis=1)
    shared = polygamma(1, a + b) - polygamma(1, a + b + n_U)
    hessian = np.empty((len(c_U), 2, 2))
    hessian[:, 0, 0] = a**2 * (polygamma(1, a + c_U) - polygamma(1, a) + shared) + score_U2[:, 0]
    hessian[:, 1, 1] = b**2 * (polygamma(1, b + n_U - c_U) - polygamma(1, b) + shared) + score_U2[:, 1]
    hessian[:, 0, 1] = hessian[:, 1, 0] = a * b * shared
    return ln_U, score_U2, hessian


def marginal(kernel: Kernel, of: Density) -> tuple[Floats, Floats, Floats]:
    """Ln of the integral of the likelihood of each item over p, and its derivatives."""
    s = of.score_2N
    squares = of.hessian_22N + s[:, None] * s[None]
    ln_I, mean = kernel.summed(of.ln_f_N, np.stack([*s, squares[0, 0], squares[0, 1], squares[1, 1]], axis=1))
    return ln_I, mean[:, :2], mean[:, [2, 3, 3, 4]].reshape(-1, 2, 2) - mean[:, :2, None] * mean[:, None, :2]


def _is_allowed(theta: Floats) -> bool:
    return bool(np.abs(theta).max() < _LARGEST and theta[0] < math.log(_ALIKE))


def fit_tail(shape: Shape, items: Items) -> Tail:
    """The distribution of p over the items of one model by maximum likelihood."""
    likelihood = Likelihood(shape, items)
    mean = float(items.passes([1]).mean())
    if not 0 < mean < 1:
        return Tail(shape, None)
    start = np.log([0.3, 0.3 * (1 - mean) / mean])
    theta, found = maximise(likelihood.total, start, _is_allowed)
    if not found:
        return Tail(shape, None, all_alike=bool(theta[0] > math.log(_ALIKE) / 2))
    ln_U, score_U2, hessian_U22 = likelihood.at(theta)
    hessian = np.tensordot(likelihood.weight_U, hessian_U22, 1)
    influence_I2 = -(score_U2 @ np.linalg.inv(hessian))[likelihood.of_I]
    return Tail(shape, theta, float(likelihood.weight_U @ (ln_U + likelihood.lost_U)), influence_I2, hessian)
