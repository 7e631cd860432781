"""Fits a law with an offset by least squares to many sets of points at once.

In ln y = ln C + ln(exp(-alpha x) + q), q = E / C, the best ln C is a mean, so two numbers are left to search. In alpha
and q the sum of squares is a narrow and bent valley, as points hardly tell an offset from a smaller exponent. They do
tell the slope -m of ln y at x = 0, where m = alpha / (1 + q), and how ln y bends there, by m^2 q: in m and q the valley
is straight, and three or four of Newton's steps reach its floor.

Shapes: N sizes, P parameters (ln C, alpha, E), B sets of points; a symmetric matrix of two parameters is [3, B].
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.numeric import Floats, Problem

Truths = NDArray[np.bool_]
Places = NDArray[np.intp]

_SMALLEST_SHARE: Final = 2.0**-40  # of the power law in the whole; below it float64 hardly tells where it would go
_BLOCK: Final = 8192  # sets whose squares are summed at once, so that they stay in the cache
_FIRST_STEPS: Final = 5  # in which nearly all searches end
_MOST_STEPS: Final = 300
_SMALL: Final = 1e-7  # of a parameter: Newton's steps square their error, so what the next one would move is rounding
_SMALLEST: Final = 1e-11  # the same of a step that is not Newton's
_UNIT: Final = 1e-3  # a parameter below it counts as that
_ROUNDING: Final = 4 * float(np.finfo(np.float64).eps)
_LEAST_CURVATURE: Final = 1e-3  # of that of Gauss and Newton
_FREE: Final = 0.01  # damping that does not yet shorten a step


def search_offsets(x_N: Floats, ln_y_BN: Floats, start_BP: Floats, holds_alpha: bool = False) -> Floats:
    """The best law with an offset E >= 0 for each set of points, each from a start of its own.

    Args:
        x_N: ln(S / S_ref), S_ref in the middle of the sizes.
        ln_y_BN: logarithms of the values.
        start_BP: where each search starts.
        holds_alpha: keep the exponents of the starts.

    Returns:
        Parameters, [B, P]; NaN where the search did not end.
    """
    with np.errstate(all="ignore"):  # a step too far has no sum of squares, and is not taken
        mean_B = ln_y_BN.mean(axis=1)
        most_q_B = np.full(len(mean_B), 1 / _SMALLEST_SHARE)
        if holds_alpha:
            most_q_B *= np.exp(np.abs(start_BP[:, 1]) * np.abs(x_N).max())
        q_B = np.minimum(start_BP[:, 2] * np.exp(-start_BP[:, 0]), most_q_B)
        u_2B = np.stack([start_BP[:, 1] if holds_alpha else start_BP[:, 1] / (1 + q_B), q_B])
        left_B = _search(x_N, np.ascontiguousarray((ln_y_BN - mean_B[:, None]).T), u_2B, most_q_B, holds_alpha)
        alpha_B, q_B = _law(u_2B, holds_alpha)
        ln_C_B = mean_B - np.log(np.exp(-x_N[:, None] * alpha_B) + q_B).mean(axis=0)
        theta_BP = np.column_stack([ln_C_B, alpha_B, q_B * np.exp(ln_C_B)])
    theta_BP[left_B] = np.nan
    return theta_BP


def offset_residuals(x_N: Floats, ln_y_BN: Floats, theta_BP: Floats) -> Floats:
    """Residuals of ln y about laws with an offset, [B, N]; either may be one for all."""
    with np.errstate(over="ignore"):  # no law reaches that far
        return np.asarray(ln_y_BN - np.log(np.exp(theta_BP[:, :1] - theta_BP[:, 1:2] * x_N) + theta_BP[:, 2:]))


def _law(u_2B: Floats, holds_alpha: bool) -> tuple[Floats, Floats]:
    """The exponent and q of (m, q), or of (alpha, q)."""
    return u_2B[0] if holds_alpha else u_2B[0] * (1 + u_2B[1]), u_2B[1]


def _search(x_N: Floats, about_NB: Floats, u_2B: Floats, most_q_B: Floats, holds_alpha: bool) -> Places:
    """Move all sets to their ends; which of them have none."""
    left_B = np.arange(u_2B.shape[1])
    for most_steps in (_FIRST_STEPS, _MOST_STEPS):  # sets that take longer leave their block, and go on side by side
        ends = []
        for first in range(0, len(left_B), _BLOCK):
            of_B = left_B[first : first + _BLOCK]
            block = about_NB[:, of_B], u_2B[:, of_B], most_q_B[of_B]
            u_2B[:, of_B], ended_B = _descend(x_N, *block, holds_alpha, most_steps)
            ends.append(of_B[~ended_B])
        left_B = np.concatenate(ends or [left_B])
    return left_B


def _descend(
    x_N: Floats, about_NB: Floats, u_2B: Floats, most_q_B: Floats, holds_alpha: bool, most_steps: int
) -> tuple[Floats, Truths]:
    """Steps of each set until they end; where they led, and which have ended.

    A step that does not descend is tried again with a larger multiple of the diagonal added, as Levenberg and Marquardt
    do.
    """
    n_sets = u_2B.shape[1]
    reached_2B, left_B, damping_B, is_flat_B = u_2B.copy(), np.arange(n_sets), np.zeros(n_sets), False
    length_B = np.linalg.norm(about_NB, axis=0)
    at_9B = _squares(x_N, about_NB, u_2B, holds_alpha)
    for _ in range(most_steps):
        new_2B, is_newton_B = _stepped(u_2B, at_9B, most_q_B, damping_B, holds_alpha)
        step_B = (np.abs(new_2B - u_2B) / (_UNIT + np.abs(u_2B))).max(axis=0)
        ends_B = (step_B <= np.where(is_newton_B, _SMALL, _SMALLEST)) | is_flat_B
        if ends_B.any():
            reached_2B[:, left_B[ends_B]] = new_2B[:, ends_B]
            rest = np.flatnonzero(~ends_B)
            left_B, damping_B, length_B, most_q_B = left_B[rest], damping_B[rest], length_B[rest], most_q_B[rest]
            u_2B, new_2B, at_9B, about_NB = (of_B[:, rest] for of_B in (u_2B, new_2B, at_9B, about_NB))
            if len(rest) == 0:
                break
        new_9B = _squares(x_N, about_NB, new_2B, holds_alpha)
        gain_B, rounding_B = at_9B[0] - new_9B[0], _ROUNDING * length_B * np.sqrt(at_9B[0])
        better_B = gain_B >= -rounding_B
        is_flat_B = better_B & (gain_B <= rounding_B) & (damping_B <= _FREE)
        u_2B, at_9B = np.where(better_B, new_2B, u_2B), np.where(better_B, new_9B, at_9B)
        freer_B = np.where(damping_B < _FREE / 1000, 0.0, damping_B / 10)
        damping_B = np.where(better_B, freer_B, np.maximum(8 * damping_B, _FREE))
    reached_2B[:, left_B] = u_2B
    ended_B = np.ones(n_sets, bool)
    ended_B[left_B] = False
    return reached_2B, ended_B


def _stepped(
    u_2B: Floats, at_9B: Floats, most_q_B: Floats, damping_B: Floats, holds_alpha: bool
) -> tuple[Floats, Truths]:
    """Where one step leads, 0 <= q <= most_q, and whether it is Newton's own.

    Where the second derivatives are no valley, the matrix of Gauss and Newton stands in for them.
    """
    g_2B, gauss_3B, newton_3B = at_9B[1:3].copy(), at_9B[3:6].copy(), at_9B[6:9].copy()
    q_B = u_2B[1]
    bound = np.flatnonzero(((q_B == 0) & (g_2B[1] >= 0)) | ((q_B == most_q_B) & (g_2B[1] <= 0)))
    for fixed, of in ((0, slice(None) if holds_alpha else []), (1, bound)):
        g_2B[fixed, of] = 0
        for matrix_3B in (gauss_3B, newton_3B):
            matrix_3B[1, of], matrix_3B[2 * fixed, of] = 0, 1
    is_valley_B = (newton_3B[::2] > _LEAST_CURVATURE * gauss_3B[::2]).all(axis=0)
    is_valley_B &= _det(newton_3B) > _LEAST_CURVATURE**2 * gauss_3B[0] * gauss_3B[2]
    matrix_3B = newton_3B if is_valley_B.all() else np.where(is_valley_B, newton_3B, gauss_3B)
    matrix_3B[::2] += damping_B * gauss_3B[::2]
    step_2B = (matrix_3B[1] * g_2B[::-1] - matrix_3B[::-2] * g_2B) / _det(matrix_3B)
    new_2B = u_2B + step_2B
    np.clip(new_2B[1], 0.0, most_q_B, out=new_2B[1])
    return new_2B, is_valley_B & (damping_B == 0)


def _det(matrix_3B: Floats) -> Floats:
    return np.asarray(matrix_3B[0] * matrix_3B[2] - matrix_3B[1] ** 2)


def _squares(x_N: Floats, about_NB: Floats, u_2B: Floats, holds_alpha: bool) -> Floats:
    """Half the sum of squares about the law, its gradient (2), the matrix of Gauss and Newton (3) and Newton's (3)."""
    alpha_B, q_B = _law(u_2B, holds_alpha)
    found_9B, xx_N, n = np.empty((9, len(q_B))), x_N**2, len(x_N)
    share_NB = np.exp(-x_N[:, None] * alpha_B)
    r_NB = share_NB + q_B
    per_law_NB = 1 / r_NB
    share_NB *= per_law_NB
    np.subtract(about_NB, np.log(r_NB, out=r_NB), out=r_NB)
    r_NB -= r_NB.mean(axis=0)
    found_9B[0] = np.einsum("nb,nb->b", r_NB, r_NB) / 2

    # ln of the law has the derivatives -x share by alpha and 1 / law by q. Residuals are about their mean, so the
    # means of these matter in their products alone.
    of_NB = r_NB * per_law_NB
    found_9B[2] = -of_NB.sum(axis=0)
    found_9B[8] = np.einsum("nb,nb->b", of_NB, per_law_NB)
    of_NB *= share_NB
    found_9B[6], found_9B[7] = -q_B * (xx_N @ of_NB), -(x_N @ of_NB)
    found_9B[1] = x_N @ np.multiply(r_NB, share_NB, out=of_NB)
    sum_alpha_B, mean_q_B = -(x_N @ share_NB), per_law_NB.mean(axis=0)
    found_9B[3] = xx_N @ np.multiply(share_NB, share_NB, out=of_NB) - sum_alpha_B**2 / n
    found_9B[4] = -(x_N @ np.multiply(share_NB, per_law_NB, out=of_NB)) - sum_alpha_B * mean_q_B
    per_law_NB -= mean_q_B
    found_9B[5] = np.einsum("nb,nb->b", per_law_NB, per_law_NB)
    found_9B[6:] += found_9B[3:6]
    if not holds_alpha:
        m_B, by_m_B = u_2B[0], 1 + q_B  # alpha = m (1 + q), so q moves alpha too
        for a, b, c in ((3, 4, 5), (6, 7, 8)):
            found_9B[c] += m_B * (m_B * found_9B[a] + 2 * found_9B[b])
            found_9B[b] = by_m_B * (m_B * found_9B[a] + found_9B[b])
            found_9B[a] *= by_m_B**2
        found_9B[7] += found_9B[1]
        found_9B[2] += m_B * found_9B[1]
        found_9B[1] *= by_m_B
    return found_9B


@dataclass(frozen=True, eq=False)
class Search(Problem):
    """Sets of points to which a law with an offset E >= 0 is to be fitted by least squares: parameters [B, P] of each.

    Attributes:
        x_N: ln(S / S_ref).
        ln_y_BN: logarithms of the values.
        start_BP: where each search starts.
        holds_alpha: keep the exponents of the starts.
    """

    x_N: Floats
    ln_y_BN: Floats
    start_BP: Floats
    holds_alpha: bool = False

    def kind(self) -> Hashable:
        """The sizes, and whether exponents are held."""
        return self.x_N.tobytes(), self.holds_alpha

    @staticmethod
    def solve(alike: Sequence["Search"]) -> list[Floats]:
        """The parameters of each; NaN where a search did not end."""
        ln_y_BN, start_BP = (np.concatenate([getattr(s, name) for s in alike]) for name in ("ln_y_BN", "start_BP"))
        found_BP = search_offsets(alike[0].x_N, ln_y_BN, start_BP, alike[0].holds_alpha)
        return np.split(found_BP, np.cumsum([len(each.start_BP) for each in alike])[:-1])
