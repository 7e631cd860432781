"""Intervals, R2 and information criteria of a fitted power law, from its regression and its refits to resamples.

Shapes: N is the number of sizes, B of resamples of the documents, P of parameters.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from rbpx.laws.arrays import Floats
from rbpx.laws.estimate import FoundLaw
from rbpx.laws.exponential import exp_or_none
from rbpx.laws.interval import reaching
from rbpx.laws.names import Method
from rbpx.laws.profile import offset_ends
from rbpx.laws.r_squared import R2
from rbpx.laws.regression import Regression
from rbpx.laws.side_by_side import Searching

Ends = tuple[float | None, float | None]


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
