"""Intervals, R2 and information criteria of a fitted power law, from its regression and its refits to resamples.

Shapes: N is the number of sizes, B of resamples of the documents, P of parameters, L of laws.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.special import gammaincinv, ncfdtr

from rbpx.laws.intervals.estimate import TAILS, reaching, student_t
from rbpx.laws.names import Method
from rbpx.laws.numeric.arrays import Floats
from rbpx.laws.numeric.logarithms import exp_or_none
from rbpx.laws.numeric.side_by_side import Problem, Searching
from rbpx.laws.numeric.solvers import roots
from rbpx.laws.power.found import FoundLaw
from rbpx.laws.power.regression import Regression, profile_offset
from rbpx.laws.power.uncertainty import Uncertainty

_NUMERATOR_CERTAIN: Final = 1e6
Ends = tuple[float | None, float | None]
_REACH: Final = np.linspace(-8, 24, 161)  # half widths of the linear interval, to either side of the fit
_STEEPEST: Final = 4.0  # exponents beyond it are a step between two sizes, no power law


@dataclass(frozen=True)
class R2(Problem):
    """The R2 of a regression, whose interval is wanted.

    Attributes:
        value: in [0, 1).
        n: number of sizes, above 2.
    """

    value: float
    n: int

    def kind(self) -> Hashable:
        """All are alike."""
        return None

    @staticmethod
    def solve(alike: Sequence["R2"]) -> list[tuple[float, float]]:
        """The interval of each, that of `r2_interval`."""
        value_L, n_L = np.array([(each.value, each.n) for each in alike], dtype=np.float64).T
        dof_L = n_L - 2
        F_L = dof_L * value_L / (1 - value_L)
        lo_hi_2L = np.empty((2, len(alike)))
        certain_L = F_L > _NUMERATOR_CERTAIN
        for end, tail in enumerate(TAILS):
            by_dof_L = 2 * gammaincinv(dof_L[certain_L] / 2, tail) / dof_L[certain_L]
            lo_hi_2L[end, certain_L] = F_L[certain_L] * by_dof_L
            lo_hi_2L[end, ~certain_L] = _noncentrality(F_L[~certain_L], dof_L[~certain_L], 1 - tail)
        lo_hi_2L /= lo_hi_2L + n_L
        return [(lo, hi) for lo, hi in lo_hi_2L.T.tolist()]


def _noncentrality(F_L: Floats, dof_L: Floats, tail: float) -> Floats:
    """The noncentrality of which F has this probability of being at most as large; 0 where none is."""
    found_L, high_L = np.zeros(len(F_L)), np.maximum(F_L, 1.0)
    some_L = tail < ncfdtr(1, dof_L, 0.0, F_L)  # else even no noncentrality at all leaves F below its quantile
    while (low_L := ncfdtr(1, dof_L, high_L, F_L) > tail).any():
        high_L[low_L] *= 2
    F_L, dof_L = F_L[some_L], dof_L[some_L]
    found_L[some_L] = roots(lambda nc_L: ncfdtr(1, dof_L, nc_L, F_L) - tail, np.zeros(len(F_L)), high_L[some_L], 0.0)
    return found_L


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


class Intervals(NamedTuple):
    """The 95 % intervals of a law beside that of alpha; an end is None where it is not known."""

    C: Ends = (None, None)
    E: Ends = (None, None)
    r2: Ends = (None, None)


NO_INTERVALS: Final = Intervals()


def intervals(found: FoundLaw, r2: float | None, method: Method) -> Searching[tuple[Ends, Intervals]]:
    """The 95 % interval of alpha, and the others; without an r2 there is none of it."""
    regression, spread, ln_S_ref = found.regression, found.spread, found.ln_S_ref
    n_more = len(regression.theta_P) - 2
    of_alpha_P, of_ln_C_P = np.array([0.0, 1.0, *[0.0] * n_more]), np.array([1.0, ln_S_ref, *[0.0] * n_more])
    alpha, ln_C = float(regression.theta_P[1]), float(of_ln_C_P @ regression.theta_P)
    ends: Ends = spread.interval(alpha, of_alpha_P)
    ln_C_ends: Ends = spread.interval(ln_C, of_ln_C_P)
    E_lo: float | None = None
    E_hi: float | None = None
    if method is Method.offset:
        valley = yield from offset_ends(found.x_N, found.ln_y_N, regression.theta_P, spread, ln_S_ref)
        ends, ln_C_ends = valley.alpha, valley.ln_C
        E_lo, E_hi = valley.E
        if None not in ln_C_ends:  # the valley may turn, so that an end of alpha is none of C
            ln_C_ends = reaching(ln_C, (ln_C_ends[0], ln_C_ends[1]))  # type: ignore[arg-type]
        if E_hi is not None:
            E_lo, E_hi = reaching(float(regression.theta_P[2]), (E_lo or 0.0, E_hi))
    C_ends = exp_or_none(ln_C_ends[0]), exp_or_none(ln_C_ends[1])
    r2_ends: Ends = (None, None)
    if method in (Method.ols, Method.weighted) and r2 is not None and r2 < 1:
        r2_ends = reaching(r2, (yield R2(r2, len(regression.residual_N))))
    return ends, Intervals(C_ends, (None if E_lo is None else max(E_lo, 0.0), E_hi), r2_ends)


def quality(
    regression: Regression, ln_y_N: Floats, method: Method, sigma_N: Floats | None
) -> tuple[float, float | None, float | None]:
    """R2, AIC and BIC: n ln(SS / n) + sum ln sigma^2 + penalty, the normal likelihood up to one constant."""
    w_N, n = (np.ones(len(ln_y_N)) if sigma_N is None else 1 / sigma_N**2), len(ln_y_N)
    mean = float(w_N @ ln_y_N / w_N.sum())
    ss_residual, ss_total = float(w_N @ regression.residual_N**2), float(w_N @ (ln_y_N - mean) ** 2)
    if method is Method.robust or ss_residual == 0:
        return 1 - ss_residual / ss_total, None, None
    fit = n * math.log(ss_residual / n) - float(np.log(w_N).sum())
    n_parameters = len(regression.theta_P)
    return 1 - ss_residual / ss_total, fit + 2 * n_parameters, fit + n_parameters * math.log(n)
