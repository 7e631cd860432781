"""Profile intervals of a law with an offset, along the valley in which exponent and offset trade off.

The exponents whose best law has a sum of squares up to SS_min (1 + t^2 / dof) are in (the F-test of nonlinear least
squares), t of Student; what moves all sizes alike is added at each end.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.arrays import Floats
from rbpx.laws.interval import student_t
from rbpx.laws.regression import profile_offset
from rbpx.laws.side_by_side import Searching
from rbpx.laws.uncertainty import Uncertainty

Ends = tuple[float | None, float | None]

_REACH: Final = np.linspace(-8, 24, 161)  # half widths of the linear interval, to either side of the fit
_STEEPEST: Final = 4.0  # exponents beyond it are a step between two sizes, no power law


@dataclass(frozen=True)
class OffsetEnds:
    """95 % intervals of a law with an offset; an end is None where the valley does not close.

    Attributes:
        alpha: of the exponent.
        ln_C: of the logarithm of the constant at S = 1.
        E: of the offset, in the unit of y.
    """

    alpha: Ends
    ln_C: Ends
    E: Ends


def offset_ends(
    x_N: Floats, ln_y_N: Floats, theta_P: Floats, spread: Uncertainty, ln_S_ref: float
) -> Searching[OffsetEnds]:
    """The intervals of alpha, ln C and E.

    Args:
        x_N: ln(S / S_ref).
        ln_y_N: logarithms of the values.
        theta_P: ln_C_ref, alpha, E of the fit.
        spread: its uncertainty.
        ln_S_ref: logarithm of S_ref.
    """
    gradients_PP = np.array([[0.0, 1.0, 0.0], [1.0, ln_S_ref, 0.0], [0.0, 0.0, 1.0]])
    alpha, width = float(theta_P[1]), spread.half_width(gradients_PP[0])
    if width == 0:
        ends = [(float(value), float(value)) for value in gradients_PP @ theta_P]
        return OffsetEnds(*ends)
    alpha_G = alpha + width * _REACH
    alpha_G = alpha_G[(np.abs(alpha_G) <= max(_STEEPEST, abs(alpha))) | (_REACH == 0)]
    best = int(np.argmin(np.abs(alpha_G - alpha)))
    theta_GP, ss_G = yield from profile_offset(x_N, ln_y_N, theta_P, alpha_G)
    limit = spread.scatter**2 * (spread.dof + student_t(spread.dof) ** 2)
    down, up = _crossing(ss_G[best::-1], limit), _crossing(ss_G[best:], limit)
    of_alpha, of_ln_C, of_E = (
        _ends(theta_GP @ g_P, best, down, up, spread.shared_half_width(g_P)) for g_P in gradients_PP
    )
    slope = float(x_N @ ln_y_N) / float(x_N @ x_N)
    without_offset = float(np.sum((ln_y_N - ln_y_N.mean() - slope * x_N) ** 2))
    if without_offset <= limit:  # tested directly: the valley bends where E reaches 0, between two steps
        of_E = (0.0, of_E[1])
    return OffsetEnds(of_alpha, of_ln_C, of_E)


def _ends(value_G: Floats, best: int, down: float | None, up: float | None, rest: float) -> Ends:
    """The value at both crossings, widened by the noise shared by all sizes. It increases along the valley."""
    middle, place_G = float(value_G[best]), np.arange(len(value_G))
    ends: list[float | None] = []
    for steps, side in ((down, -1), (up, 1)):
        if steps is None:
            ends.append(None)
            continue
        end = float(np.interp(best + side * steps, place_G, value_G))
        reach = abs(end - middle)
        ends.append(end + side * (float(np.hypot(reach, rest)) - reach))  # exactly the end where nothing is shared
    return ends[0], ends[1]


def _crossing(ss_G: Floats, limit: float) -> float | None:
    """How many steps from the fit the sum of squares passes the limit; None if it never does, or a search failed."""
    over_G = ~(ss_G <= limit)
    if not over_G.any():
        return None
    at = int(np.argmax(over_G))
    if at == 0 or not np.isfinite(ss_G[at]):
        return None
    # The root of the sum of squares is nearly linear in alpha, the sum itself is not.
    before, after, wanted = np.sqrt(np.maximum([ss_G[at - 1], ss_G[at], limit] - ss_G[0], 0.0))
    return at - 1 + float((wanted - before) / (after - before))
