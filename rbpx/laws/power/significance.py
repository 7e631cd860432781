"""How far a number is from 0 under its own interval: p values, alone and adjusted for many tests.

An interval over documents and models is not that of one distribution (`half_width`), so a p value is
found from the interval itself: the level at which it would just reach 0. Below 0.05 the 95 % interval leaves 0 out.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import ndtri, stdtrit

from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.numeric.solvers import roots
from rbpx.laws.power.uncertainty import Uncertainty

ALPHA: Final = 0.05  # a test with a smaller p is significant
_SMALLEST: Final = 1e-100


def p_of_zero(value: float, gradient_P: Floats, about: Uncertainty) -> float:
    """Two-sided p value of a function of fitted parameters being 0, under the interval of `Uncertainty.interval`.

    Args:
        value: the function at the fitted parameters.
        gradient_P: its derivatives.
        about: of the fit.

    Returns:
        p such that the interval at level 1 - p ends at 0; 0 below 1e-100.
    """
    distance = abs(value - float(gradient_P @ about.bias_P))
    unit = float(gradient_P @ about.spread_PP @ gradient_P)
    shared = max(float(gradient_P @ about.text_PP @ gradient_P) - about.text_scatter**2 * unit, 0.0)

    def left(ln_p: float) -> float:
        half_p = math.exp(ln_p) / 2
        t = -float(stdtrit(about.dof, half_p)) if about.scatter > 0 else 0.0
        z = -float(ndtri(half_p))
        t_D = z if about.n_documents is None else -float(stdtrit(about.n_documents - 1, half_p))
        return distance - math.sqrt(max(t * about.scatter, z * about.text_scatter) ** 2 * unit + t_D**2 * shared)

    if left(math.log(_SMALLEST)) >= 0:
        return 0.0 if distance > 0 else 1.0
    if distance == 0:
        return 1.0
    (ln_p,) = roots(lambda at: np.array([left(float(at[0]))]), [math.log(_SMALLEST)], [0.0], 1e-14)
    return math.exp(ln_p)


def holm(p_T: Sequence[float]) -> list[float]:
    """Adjust the p values of several tests, so that one false finding among all of them has a chance of 0.05 at most.

    The smallest is multiplied by their number T, the next by T - 1 and so on; none may be smaller than one before it,
    or above 1. Valid however the tests depend on each other.

    Source:
        Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.
    """
    order = np.argsort(p_T, kind="stable")
    factors_T = len(p_T) - np.arange(len(p_T))
    adjusted_T = np.minimum(np.maximum.accumulate(np.asarray(p_T, float)[order] * factors_T), 1.0)
    back = np.empty(len(p_T))
    back[order] = adjusted_T
    return [float(p) for p in back]
