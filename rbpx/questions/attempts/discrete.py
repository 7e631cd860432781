"""Estimates the exponent of the left tail of p without assuming a distribution, by maximum likelihood on a grid.

Shapes: I items, G values of p, B bootstrap replicates over items.
"""

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import xlog1py, xlogy

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, estimate
from rbpx.laws.numeric import Floats
from rbpx.questions.attempts.passing import Counted, Items

_A_DECADE: Final = 8  # values of p
_DECADES: Final = 2.0  # of p above 1 / n, over which the slope is taken
_LARGEST_P: Final = 0.1  # upper limit of p*
_ROUNDING: Final = 1e-9
_ROUNDS: Final = 300
_ROUNDS_AGAIN: Final = 60
_REPLICATES: Final = 200


def discrete_tail(items: Items, weights_BI: npt.NDArray[np.int64]) -> tuple[Estimate, tuple[float, float]]:
    """Returns the exponent a of Pr(P <= p) ~ p^a with its interval over items, and the range of p that it rests on.

    The masses at p = 0 and at eight values of p a decade come from expectation maximisation; where p is known they are
    shares of items. Values of p below 1 / n, n the samples, cannot be told apart, so these masses are censored (Hill's
    estimator for a censored tail): a = m / (sum m_j ln(p* / p_j) + m_0 ln(n p*)), with m = sum m_j the mass from 1 / n
    to p*, and m_0 that below. p* is two decades above 1 / n, at most 0.1. There is no estimate if less than a decade is
    left or no item lies there.
    """
    least = 1 / items.most
    n_cells = min(round(_A_DECADE * _DECADES), math.floor(_A_DECADE * math.log10(_LARGEST_P / least) + _ROUNDING))
    top = least * 10 ** (n_cells / _A_DECADE)
    if n_cells < _A_DECADE:
        return NO_ESTIMATE, (least, top)
    all_BG, drawn_BG = np.ones((1, len(items.names))), weights_BI.astype(np.float64)
    if isinstance(items, Counted):
        # Cells of an eighth of a decade, with 1 / n and p* on their edges and the mass of each in its middle.
        cells = np.arange(-round(_A_DECADE * _DECADES), math.ceil(-_A_DECADE * math.log10(least)))
        p_G = np.concatenate([[0.0], np.minimum(least * 10 ** ((cells + 0.5) / _A_DECADE), 1.0), [1.0]])
        right_I1, tried_I1 = items.right_I[:, None], items.tried_I[:, None]
        ln_IG = xlogy(right_I1, p_G) + xlog1py(tried_I1 - right_I1, -p_G)
        likelihood_IG = np.exp(ln_IG - ln_IG.max(axis=1, keepdims=True))
        all_BG = _masses(likelihood_IG, all_BG, np.ones((1, len(p_G))), _ROUNDS)
        drawn_BG = _masses(likelihood_IG, drawn_BG[:_REPLICATES], all_BG + 1 / 50 / len(p_G), _ROUNDS_AGAIN)
    else:
        p_G = np.exp(items.ln_p_I)
    is_in_G = (p_G >= least) & (p_G < top)
    far_G = np.log(top / np.clip(p_G, least, top))
    if not (all_BG @ is_in_G)[0] > _ROUNDING:  # a mass that vanishes with the iterations does not count
        return NO_ESTIMATE, (least, top)
    with np.errstate(divide="ignore", invalid="ignore"):
        value, a_B = (masses @ is_in_G / (masses @ far_G) for masses in (all_BG, drawn_BG))
    return estimate(float(value[0]), a_B, len(items.names), Recipe.percentile), (least, top)


def _masses(likelihood_IG: Floats, weights_BI: Floats, start: Floats, rounds: int) -> Floats:
    """Maximum-likelihood masses, [B, G]."""
    m_BG = np.broadcast_to(start / start.sum(axis=1, keepdims=True), (len(weights_BI), likelihood_IG.shape[1]))
    n_B1 = weights_BI.sum(axis=1, keepdims=True)
    for _ in range(rounds):
        # An item that a replicate does not draw may have no mass left.
        shares_BI = np.divide(weights_BI, m_BG @ likelihood_IG.T, out=np.zeros_like(weights_BI), where=weights_BI > 0)
        m_BG = m_BG * (shares_BI @ likelihood_IG) / n_B1
    return np.asarray(m_BG)
