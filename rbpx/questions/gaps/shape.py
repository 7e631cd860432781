"""Tests whether the ratio of two losses is a power law in size, and fits it with offsets where it is not.

ln(L_A / L_B) is a straight line in ln S if both losses are power laws. If a loss has an irreducible part,
L = E + C S^(-alpha), it is not: the ratio bends, and tends to E_A / E_B.

Shapes: N sizes, B resamples, G sizes at which the laws are evaluated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import (
    MIN_REPLICATES,
    NO_ESTIMATE,
    Estimate,
    Replicates,
    document_t,
    moments,
    student_t,
)
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.intervals import p_of_zero
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.power.regression import Regression
from rbpx.laws.power.uncertainty import Uncertainty, uncertainty
from rbpx.laws.prediction.verdict import NEGLIGIBLE, Form

REACH: Final = 10.0  # factor outside the sizes up to which a closing is looked for
_GRID: Final = 400
_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)  # residuals as small as this are no curve


@dataclass(frozen=True)
class Curvature(Estimate):
    """How a parabola through ln(L_A / L_B) against ln S bends: the coefficient of ln(S / S_ref)^2.

    Attributes:
        p: two-sided p value of no curvature.
        turns: whether the parabola turns round within the sizes: its slopes at the smallest and the largest size have
            opposite signs, each significantly.
    """

    p: float = 1.0
    turns: bool = False


def curvature(S_N: Floats, ln_ratio_N: Floats, replicates: Replicates | None) -> Curvature | None:
    """Test whether ln(L_A / L_B) is a straight line in ln S, against a parabola; None below 4 sizes.

    Args:
        S_N: sizes.
        ln_ratio_N: logarithms of the ratios.
        replicates: the ratios under resampled documents.
    """
    if len(np.unique(S_N)) < 4:
        return None
    x_N = np.log(S_N) - np.log(S_N).mean()
    straight_N = np.polyval(np.polyfit(x_N, ln_ratio_N, 1), x_N)
    if np.abs(ln_ratio_N - straight_N).max() <= _ROUNDING * max(1.0, float(np.abs(ln_ratio_N).max())):
        return Curvature(0.0, 0.0, 0.0)
    J_NP = np.column_stack([np.ones(len(x_N)), x_N, x_N**2])
    L_PN = np.linalg.pinv(J_NP)
    theta_P = L_PN @ ln_ratio_N
    residual_N = ln_ratio_N - J_NP @ theta_P
    parabola = Regression(theta_P, J_NP, np.ones(len(x_N)), residual_N)
    documents = None if replicates is None else (moments(theta_P, replicates.ln_y_BN @ L_PN.T), replicates)
    about, bend, of_bend_P = uncertainty(parabola, documents), float(theta_P[2]), np.array([0.0, 0.0, 1.0])
    turns = _slope(theta_P, float(x_N.min()), about) * _slope(theta_P, float(x_N.max()), about) < 0
    return Curvature(bend, *about.interval(bend, of_bend_P), p=p_of_zero(bend, of_bend_P, about), turns=turns)


def _slope(theta_P: Floats, x: float, about: Uncertainty) -> int:
    """The sign of the slope at x; 0 where it is not significant."""
    at_P = np.array([0.0, 1.0, 2 * x])
    lo, hi = about.interval(float(at_P @ theta_P), at_P)
    return 1 if lo > 0 else -1 if hi < 0 else 0


@dataclass(frozen=True)
class OffsetRatio:
    """The ratio of two losses that each have an irreducible part.

    Attributes:
        form: what the two losses call for: `offset` where the 95 % interval of an E leaves out 0, `power` where both
            contain negligible offsets only, else `either`.
        E_a: irreducible part of A, in the unit of the loss; an end None where the data set none.
        E_b: of B.
        ln_S_closed: ln of the size at which the two laws meet; it and its ends None where they are not within 10 times
            the sizes.
    """

    form: Form
    E_a: Estimate
    E_b: Estimate
    ln_S_closed: Estimate


def offset_ratio(
    S_N: Floats, a_N: Floats, b_N: Floats, drawn_2BN: Floats | None = None, n_documents: int | None = None
) -> OffsetRatio | None:
    """The ratio of two losses with an irreducible part each, and where it is 1.

    Each law is fitted by itself. What a model does to both losses alike drops out of their ratio: its interval comes
    from the residuals of both with their correlation, by Student's t of N - 3 degrees of freedom, and from the
    documents that were drawn for both. The gap may be closed at a size where the 95 % band of ln(L_A / L_B) contains
    0; such sizes are looked for up to 10 times outside those measured.

    Args:
        S_N: sizes.
        a_N: losses on A.
        b_N: on B.
        drawn_2BN: both under resampled documents; a resample in which one is not positive and finite is left out.
        n_documents: that were resampled, of the text with fewer; None where they are not counted.

    Returns:
        The ratio; None below 4 sizes or where one of the fits does not converge.
    """
    drawn: list[Replicates] = []
    if drawn_2BN is not None:
        usable_B = np.all((drawn_2BN > 0) & np.isfinite(drawn_2BN), axis=(0, 2))
        if usable_B.sum() >= MIN_REPLICATES:
            drawn = [Replicates.of(y_BN[usable_B], n_documents) for y_BN in drawn_2BN]
    sides = (a_N, b_N)
    laws = [_law(tuple(S_N.tolist()), tuple(y_N.tolist())) for y_N in sides if not drawn]  # a text is in many pairs
    laws += [fit_power_law(S_N, y_N, of, Method.offset, backtests=False) for y_N, of in zip(sides, drawn, strict=False)]
    if any(law.theta_P is None or law.r2.value is None for law in laws):
        return None
    form = Form.either
    if any(law.E.lo is not None and law.E.lo > 0 for law in laws):
        form = Form.offset
    elif all(law.E.hi is not None and law.E.hi <= NEGLIGIBLE * min(law.y) for law in laws):
        form = Form.power
    changes = [of.ln_y_BN - np.log(y_N) for y_N, of in zip(sides, drawn, strict=False)]
    a, b = laws
    return OffsetRatio(form, a.E, b.E, _closed(S_N, laws, changes, n_documents))


@lru_cache(maxsize=1024)
def _law(S: tuple[float, ...], y: tuple[float, ...]) -> PowerLaw:
    return fit_power_law(S, y, None, Method.offset, backtests=False)


def _along(law: PowerLaw, x_G: Floats) -> tuple[Floats, Floats]:
    """Ln of a loss at G sizes, and its derivatives by each ln y that was fitted, [G, N]; none by an E at its bound."""
    theta_P, x_N = law.theta_P, np.log(law.S) - np.log(law.S).mean()
    assert theta_P is not None, "the fit converged"
    free = 2 if theta_P[2] == 0 else 3
    (_, J_NP), (ln_y_G, J_GP) = (_ln_loss(x, theta_P) for x in (x_N, x_G))
    return ln_y_G, J_GP[:, :free] @ np.linalg.pinv(J_NP[:, :free])


def _ln_loss(x_G: Floats, theta_P: Floats) -> tuple[Floats, Floats]:
    """ln(E + C S^(-alpha)) and its derivatives by ln_C_ref, alpha and E."""
    power_G = np.exp(theta_P[0] - theta_P[1] * x_G)
    y_G = power_G + theta_P[2]
    return np.log(y_G), np.column_stack([power_G / y_G, -x_G * power_G / y_G, 1 / y_G])


def _closed(S_N: Floats, laws: Sequence[PowerLaw], changes: Sequence[Floats], n_documents: int | None) -> Estimate:
    """The ln of the size at which both laws meet, and the ends of the range in which they may."""
    ln_S_ref, n = float(np.log(S_N).mean()), len(S_N)
    ln_S_G = np.linspace(math.log(S_N.min() / REACH), math.log(S_N.max() * REACH), _GRID)
    (ln_a_G, by_a_GN), (ln_b_G, by_b_GN) = (_along(law, ln_S_G - ln_S_ref) for law in laws)
    gap_G = ln_a_G - ln_b_G
    residual_N2 = np.column_stack([law.residuals_ln for law in laws])
    noise_22 = residual_N2.T @ residual_N2 / (n - 3)
    by_GN2 = np.stack([by_a_GN, -by_b_GN], axis=-1)
    variance_G = student_t(n - 3) ** 2 * np.einsum("gni,ij,gnj->g", by_GN2, noise_22, by_GN2)
    if changes:
        moved_BG = changes[0] @ by_a_GN.T - changes[1] @ by_b_GN.T
        gap_G = gap_G - moved_BG.mean(axis=0)
        variance_G = variance_G + document_t(n_documents) ** 2 * moved_BG.var(axis=0, ddof=1)
    crossings = np.flatnonzero(np.diff(np.sign(gap_G)) != 0)
    if len(crossings) == 0:
        return NO_ESTIMATE
    at = int(crossings[np.argmin(np.abs(ln_S_G[crossings] - ln_S_ref))])
    value = _root(ln_S_G[at : at + 2], gap_G[at : at + 2])
    outside_G = np.abs(gap_G) - np.sqrt(variance_G)
    below = np.flatnonzero(outside_G[: at + 1] > 0)[-1:]
    above = np.flatnonzero(outside_G[at + 1 :] > 0)[:1] + at
    lo, hi = ([_root(ln_S_G[G : G + 2], outside_G[G : G + 2]) for G in end] for end in (below, above))
    return Estimate(value, min(*lo, value) if lo else None, max(*hi, value) if hi else None)


def _root(x_2: Floats, y_2: Floats) -> float:
    """Where the line through two points is 0; their middle where it does not cross 0 between them."""
    if y_2[0] * y_2[1] > 0:
        return float(x_2.mean())
    return float(x_2[0] - y_2[0] * (x_2[1] - x_2[0]) / (y_2[1] - y_2[0]))
