"""The beta density of the chance p over items, and quadrature nodes in p.

In x = ln(p / (1 - p)) it is smooth, p^a (1 - p)^b / B(a, b). The trapezoid rule in x has nodes that are dense where
counts are sharp and sparse in the tails. Shapes: N nodes or items; parameters are (ln a, ln b).
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import betaln

from rbpx.laws.numeric import Floats

_FAR: Final = 700.0  # largest |x|, where p is the smallest float
_WIDE: Final = 10.0  # |x| beyond which the distance between nodes grows
_SHARPEST: Final = 10_000  # samples of the sharpest count that nodes resolve
_STEP: Final = 5e-3  # of ln a and ln b, for derivatives
_STEPS_OF_PEAK: Final = 0.8  # nodes for each standard deviation of the sharpest count


@dataclass(frozen=True, eq=False)
class Nodes:
    """Quadrature nodes: ln p, ln (1 - p), and ln of the width in x."""

    ln_p_N: Floats
    ln_q_N: Floats
    ln_w_N: Floats


def nodes_for(n_samples: int) -> Nodes:
    """Nodes for counts of n samples, whose likelihoods are as narrow as 2 / sqrt(n) in x."""
    step = min(0.2, 2 / math.sqrt(min(n_samples, _SHARPEST)) / _STEPS_OF_PEAK)
    far = math.asinh(_FAR / _WIDE)
    t_N = np.linspace(-far, far, 2 * math.ceil(far * _WIDE / step) + 1)
    x_N = _WIDE * np.sinh(t_N)
    ln_w_N = np.log(_WIDE * np.cosh(t_N) * (t_N[1] - t_N[0]))
    return Nodes(-np.logaddexp(0, -x_N), -np.logaddexp(0, x_N), ln_w_N)


def condensed(right_U: Floats, tried_U: Floats) -> tuple[Floats, Floats]:
    """Counts with the same shares but few enough attempts for the nodes, up to 10,000 unchanged.

    A density of p is smooth over 0.01 in x, so only the position of a sharper likelihood matters.
    """
    wrong_U = tried_U - right_U
    with np.errstate(divide="ignore"):  # without a right or a wrong attempt the likelihood has no peak
        x_U = np.log(right_U) - np.log(wrong_U)
    resolved_U = _SHARPEST / 4 / (1 + (x_U / _WIDE) ** 2)  # information of a count that the nodes resolve at x
    information_U = right_U * wrong_U / tried_U
    is_sharp_U = information_U > resolved_U
    times_U = np.where(is_sharp_U, resolved_U / np.where(is_sharp_U, information_U, 1.0), 1.0)
    return right_U * times_U, tried_U * times_U


def density(theta: Floats, ln_p_N: Floats, ln_q_N: Floats) -> tuple[Floats, Floats, Floats]:
    """Ln of the density in x, its score [N, 2] and its Hessian [N, 2, 2].

    Derivatives are central differences at two steps, combined to fourth order (Richardson).
    """
    fine, coarse = (_differences(theta, ln_p_N, ln_q_N, step) for step in (_STEP, 2 * _STEP))
    ln_f_N, score_N2, hessian_N4 = ((4 * each - other) / 3 for each, other in zip(fine, coarse, strict=True))
    return ln_f_N, score_N2, hessian_N4.reshape(-1, 2, 2)


def _differences(theta: Floats, ln_p_N: Floats, ln_q_N: Floats, step: float) -> tuple[Floats, ...]:
    at = {(i, j): _beta(theta + step * np.array([i, j]), ln_p_N, ln_q_N)
          for i in (-1, 0, 1) for j in (-1, 0, 1)}  # fmt: skip
    score_N2 = np.stack([at[1, 0] - at[-1, 0], at[0, 1] - at[0, -1]], axis=-1) / (2 * step)
    bends = at[1, 0] - 2 * at[0, 0] + at[-1, 0], at[0, 1] - 2 * at[0, 0] + at[0, -1]
    both = (at[1, 1] - at[1, -1] - at[-1, 1] + at[-1, -1]) / 4
    return at[0, 0], score_N2, np.stack([bends[0], both, both, bends[1]], axis=-1) / step**2


def _beta(theta: Floats, ln_p_N: Floats, ln_q_N: Floats) -> Floats:
    a, b = np.exp(theta).tolist()
    return np.asarray(a * ln_p_N + b * ln_q_N - betaln(a, b))
