"""Fits y = E + C S^-alpha by least squares of ln y, for many sets of points at once.

In ln y = ln C + ln(exp(-alpha x) + q) with q = E / C, the best ln C is a mean, so two parameters are left to search. In
alpha and q the sum of squares is a narrow, bent valley, because points hardly distinguish an offset from a smaller
exponent. They determine the slope -m of ln y at x = 0, m = alpha / (1 + q), and its curvature m^2 q. In m and q the
valley is straight, and Newton's method needs three or four steps.

Shapes: N sizes, P parameters (ln C, alpha, E), B sets of points.
"""

from typing import Final

import numpy as np

from rbpx.laws.numeric import Floats
from rbpx.laws.solver import LocalQuadratic, ObjectiveFunction, Sets, diagonal, minimise

_SMALLEST_SHARE: Final = 2.0**-40  # of the power law in y; float64 does not resolve smaller ones
_LEAST_CURVATURE: Final = 1e-3  # of Gauss-Newton's; below it Newton's matrix is not used
_ROUNDING: Final = 4 * float(np.finfo(np.float64).eps)


def search_offsets(x_N: Floats, ln_y_BN: Floats, start_BP: Floats, holds_alpha: bool = False) -> Floats:
    """Fits a law with an offset E >= 0 to each set of points.

    x is ln(S / S_ref), with S_ref in the middle of the sizes; `holds_alpha` keeps the exponents of the starts.

    Returns:
        Parameters, [B, P]; NaN where the search did not converge.
    """
    mean_B = ln_y_BN.mean(axis=1)
    most_q_B = np.full(len(mean_B), 1 / _SMALLEST_SHARE)
    ln_C_B, alpha_B, E_B = start_BP.T
    with np.errstate(over="ignore"):
        if holds_alpha:
            most_q_B *= np.exp(np.abs(alpha_B) * np.abs(x_N).max())
        q_B = np.minimum(E_B * np.exp(-ln_C_B), most_q_B)
    first_B, reach = (alpha_B, 0.0) if holds_alpha else (alpha_B / (1 + q_B), np.inf)
    lower_2B, upper_2B = np.stack([first_B - reach, np.zeros(len(q_B))]), np.stack([first_B + reach, most_q_B])
    about_NB = np.ascontiguousarray((ln_y_BN - mean_B[:, None]).T)
    found = minimise(_objective(x_N, about_NB, holds_alpha), np.stack([first_B, q_B]), lower_2B, upper_2B)
    m_B, q_B = found.theta_PB
    alpha_B = m_B if holds_alpha else m_B * (1 + q_B)
    with np.errstate(all="ignore"):
        ln_C_B = mean_B - np.log(np.exp(-x_N[:, None] * alpha_B) + q_B).mean(axis=0)
        theta_BP = np.column_stack([ln_C_B, alpha_B, q_B * np.exp(ln_C_B)])
    theta_BP[~found.converged_B] = np.nan
    return theta_BP


def offset_residuals(x_N: Floats, ln_y_BN: Floats, theta_BP: Floats) -> Floats:
    """Returns residuals of ln y about laws with an offset, [B, N]; either argument may have one row for all."""
    with np.errstate(over="ignore"):  # at exponents far from any optimum
        return np.asarray(ln_y_BN - np.log(np.exp(theta_BP[:, :1] - theta_BP[:, 1:2] * x_N) + theta_BP[:, 2:]))


def _objective(x_N: Floats, about_NB: Floats, holds_alpha: bool) -> ObjectiveFunction:
    """Half the sum of squares by m (alpha if it is fixed) and q, residuals being centred."""
    length_B, xx_N = np.linalg.norm(about_NB, axis=0), x_N**2

    def at(theta_PB: Floats, sets: Sets) -> LocalQuadratic:
        m_B, q_B = theta_PB
        share_NB = np.exp(-x_N[:, None] * (m_B if holds_alpha else m_B * (1 + q_B)))
        per_law_NB = 1 / (share_NB + q_B)
        share_NB *= per_law_NB
        r_NB = about_NB[:, sets] + np.log(per_law_NB)
        r_NB -= r_NB.mean(axis=0)
        value_B = np.einsum("nb,nb->b", r_NB, r_NB) / 2
        # The derivatives of ln y are -x share by alpha and 1 / law by q; they are centred below.
        J_PNB = np.stack([-x_N[:, None] * share_NB, per_law_NB])
        slope_PB = -np.einsum("pnb,nb->pb", J_PNB, r_NB)
        r_NB *= per_law_NB
        bend_q_B = np.einsum("nb,nb->b", r_NB, per_law_NB)
        r_NB *= share_NB
        bend_PPB = np.array([[-q_B * (xx_N @ r_NB), -(x_N @ r_NB)], [-(x_N @ r_NB), bend_q_B]])
        J_PNB -= J_PNB.mean(axis=1, keepdims=True)
        gauss_PPB = np.einsum("pnb,qnb->pqb", J_PNB, J_PNB)
        newton_PPB = gauss_PPB + bend_PPB
        if not holds_alpha:  # alpha = m (1 + q)
            turn_PPB = np.array([[1 + q_B, m_B], [np.zeros_like(q_B), np.ones_like(q_B)]])
            gauss_PPB, newton_PPB = (
                np.einsum("rpb,rsb,sqb->pqb", turn_PPB, each, turn_PPB) for each in (gauss_PPB, newton_PPB)
            )
            newton_PPB[[0, 1], [1, 0]] += slope_PB[0]
            slope_PB = np.einsum("rpb,rb->pb", turn_PPB, slope_PB)
        scale_PPB = diagonal(gauss_PPB)
        a, b, c = newton_PPB[0, 0], newton_PPB[0, 1], newton_PPB[1, 1]
        least_a, least_c = _LEAST_CURVATURE * scale_PPB[0, 0], _LEAST_CURVATURE * scale_PPB[1, 1]
        is_valley_B = (a > least_a) & (c > least_c) & (a * c - b**2 > least_a * least_c)
        curve_PPB = np.where(is_valley_B, newton_PPB, gauss_PPB)
        return LocalQuadratic(value_B, slope_PB, curve_PPB, scale_PPB, _ROUNDING * length_B[sets] * np.sqrt(value_B))

    return at
