"""Distributions of the chance p over items: beta and Kumaraswamy, with the derivatives that a fit needs.

Densities are those of x = ln(p / (1 - p)), smooth where that of p has poles: beta's is p^a (1 - p)^b / B(a, b),
Kumaraswamy's a b p^a (1 - p^a)^(b - 1) (1 - p). Both are ~ p^(a - 1) dp near 0. Integrals over p are sums over nodes in
x that lie close where counts are sharp and far apart in the tails, by the trapezoid rule, which is as good as exact for
such functions.

Shapes: N nodes or items; parameters are (ln a, ln b).
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from scipy.special import betaln, polygamma, psi

from rbpx.laws.numeric import Floats

_FAR: Final = 700.0  # of x, where p is the least that a float holds
_WIDE: Final = 10.0  # |x| from which nodes lie ever further apart
_SHARPEST: Final = 10_000  # samples of the sharpest count that nodes resolve
_STEPS_OF_PEAK: Final = 0.8  # nodes for each standard deviation of the sharpest count


class Shape(StrEnum):
    """The distribution of p over items."""

    beta = "beta"
    kumaraswamy = "kumaraswamy"


@dataclass(frozen=True, eq=False)
class Nodes:
    """Points at which integrals over p are summed.

    Attributes:
        ln_p_N: ln p.
        ln_q_N: ln (1 - p).
        ln_w_N: logarithm of the width of each in x.
    """

    ln_p_N: Floats
    ln_q_N: Floats
    ln_w_N: Floats


def nodes_for(n_samples: int) -> Nodes:
    """Nodes for items that were tried so often, or as `condensed`: likelihoods are as narrow in x as 2 / sqrt(n)."""
    step = min(0.2, 2 / math.sqrt(min(n_samples, _SHARPEST)) / _STEPS_OF_PEAK)
    far = math.asinh(_FAR / _WIDE)
    t_N = np.linspace(-far, far, 2 * math.ceil(far * _WIDE / step) + 1)
    x_N = _WIDE * np.sinh(t_N)
    ln_w_N = np.log(_WIDE * np.cosh(t_N) * (t_N[1] - t_N[0]))
    return Nodes(-np.logaddexp(0, -x_N), -np.logaddexp(0, x_N), ln_w_N)


def condensed(right_U: Floats, tried_U: Floats) -> tuple[Floats, Floats]:
    """Counts with the same shares, of so few attempts that nodes resolve their likelihoods; up to 10,000 the same.

    Nodes for a million attempts would be ten times as many, and a density of p is smooth over a hundredth in x: where a
    count is sharper than that, its place matters and its width does not.
    """
    wrong_U = tried_U - right_U
    with np.errstate(divide="ignore"):  # of none right or none wrong, whose likelihood is a slope without a peak
        x_U = np.log(right_U) - np.log(wrong_U)
    resolved_U = _SHARPEST / 4 / (1 + (x_U / _WIDE) ** 2)  # information of a count, as nodes lie further apart
    information_U = right_U * wrong_U / tried_U
    is_sharp_U = information_U > resolved_U
    times_U = np.where(is_sharp_U, resolved_U / np.where(is_sharp_U, information_U, 1.0), 1.0)
    return right_U * times_U, tried_U * times_U


@dataclass(frozen=True, eq=False)
class Density:
    """ln f at some p, and its derivatives by (ln a, ln b).

    Attributes:
        ln_f_N: the logarithm of the density in x.
        score_2N: first derivatives.
        hessian_22N: second ones.
    """

    ln_f_N: Floats
    score_2N: Floats
    hessian_22N: Floats


def density(shape: Shape, theta: Floats, ln_p_N: Floats, ln_q_N: Floats) -> Density:
    """The density in x, at p given by ln p and ln (1 - p)."""
    a, b = (float(each) for each in np.exp(theta))
    of_a_b = _beta if shape is Shape.beta else _kumaraswamy
    ln_f_N, d_2N, dd_22N = of_a_b(a, b, ln_p_N, ln_q_N)
    scale = np.array([a, b])
    score_2N = scale[:, None] * d_2N
    hessian_22N = scale[:, None, None] * scale[None, :, None] * dd_22N
    hessian_22N[0, 0] += score_2N[0]
    hessian_22N[1, 1] += score_2N[1]
    return Density(ln_f_N, score_2N, hessian_22N)


def _beta(a: float, b: float, ln_p_N: Floats, ln_q_N: Floats) -> tuple[Floats, Floats, Floats]:
    both = float(psi(a + b))
    d_2N = np.stack([ln_p_N - float(psi(a)) + both, ln_q_N - float(psi(b)) + both])
    dd, shared = np.empty((2, 2, len(ln_p_N))), float(polygamma(1, a + b))
    dd[0, 0], dd[1, 1] = shared - float(polygamma(1, a)), shared - float(polygamma(1, b))
    dd[0, 1] = dd[1, 0] = shared
    return a * ln_p_N + b * ln_q_N - float(betaln(a, b)), d_2N, dd


def _kumaraswamy(a: float, b: float, ln_p_N: Floats, ln_q_N: Floats) -> tuple[Floats, Floats, Floats]:
    power_N = np.exp(a * ln_p_N)
    left_N = -np.expm1(a * ln_p_N)  # 1 - p^a
    near = left_N < 1e-100  # where its square is nothing to a float: 1 - p^a is a (1 - p)
    exact_N = np.where(power_N < 0.5, np.log1p(-np.minimum(power_N, 0.5)), np.log(np.where(near, 1.0, left_N)))
    ln_left_N = np.where(near, math.log(a) + ln_q_N, exact_N)
    ratio_N = np.where(near, -1 / a, power_N * ln_p_N / np.where(near, 1.0, left_N))  # p^a ln p / (1 - p^a)
    second_N = np.where(near, 1 / a**2, power_N * ln_p_N**2 / np.where(near, 1.0, left_N) ** 2)
    d_2N = np.stack([1 / a + ln_p_N - (b - 1) * ratio_N, 1 / b + ln_left_N])
    dd = np.empty((2, 2, len(ln_p_N)))
    dd[0, 0], dd[1, 1] = -1 / a**2 - (b - 1) * second_N, -1 / b**2
    dd[0, 1] = dd[1, 0] = -ratio_N
    return math.log(a) + math.log(b) + a * ln_p_N + (b - 1) * ln_left_N + ln_q_N, d_2N, dd
