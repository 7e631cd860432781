"""The law in k of one model: its exponent with an interval that knows that RBP_k is nested in k, and its curvature.

The hits at k are among those at every larger k, so the values of one model err together, and their residuals from a
line say little about its slope: neighbours share them. The line is least squares, as in the paper; its error is that of
the documents, resampled at all k at once. Where no documents are known, nested counts have a known covariance up to
its scale, and the residuals, seen through it, give the scale.

Shapes: K ranks, P parameters, B resamples of the documents.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.interval import Estimate, around, document_t, half_width, student_t
from rbpx.laws.logarithms import exp_or_none
from rbpx.laws.names import Method
from rbpx.laws.power import PowerLawFit, fit_power_law
from rbpx.laws.power_fit import Bend
from rbpx.laws.power_intervals import Intervals
from rbpx.laws.resampled import Resampled
from rbpx.laws.uncertainty import Uncertainty
from rbpx.laws.verdict import trend_doubts, with_reasons
from rbpx.status import Status

__all__ = ["curvature_of", "fit_k_law", "nested_covariance"]

Floats = NDArray[np.float64]

SOURCE: Final = "RBP paper, arXiv 2510.20387, appendix B, table 1"


def fit_k_law(
    k_grid: Sequence[int],
    y_K: Floats,
    y_BK: Floats | None,
    method: Method = Method.ols,
    n_documents: int | None = None,
) -> PowerLawFit:
    """Fit -ln RBP_k = C k^(-alpha) at one size; the interval holds the documents, at all k together.

    Args:
        k_grid: ranks, increasing.
        y_K: -ln RBP_k.
        y_BK: the same under resamples of the documents, the same documents at every k; None where they are unknown.
        method: how ln y is regressed on ln k.
        n_documents: that were resampled; None where they are not counted.

    Returns:
        The fit of `fit_power_law`, with k in the place of S. alpha_stderr, alpha_lo and alpha_hi are of what the same
        regression would find over other documents (the interval is "documents"), or, where none are known, of nested
        counts as variable as the residuals show ("nested counts"). The status is bends where the curvature of `bend` is
        significant. The slope is then that of the best line over this grid.

    Raises:
        ValueError: as in `fit_power_law`.
    """
    resampled = None if y_BK is None else Resampled.of(y_BK, n_documents)
    fit = fit_power_law(k_grid, y_K, resampled, method)
    theta_P, about = fit.theta_P, fit.uncertainty
    if fit.alpha is None or theta_P is None or about is None:
        return with_reasons(fit, [fit.status])
    sd_P, kind = _standard_deviations(fit, about, k_grid, resampled is not None and resampled.suffices)
    reach = document_t(n_documents) if kind == "documents" else student_t(len(y_K) - 2)
    alpha_lo, alpha_hi = (None, None) if kind is None else around(fit.alpha, float(sd_P[1]) * reach)
    ends = Intervals(r2=fit.ends.r2)
    if kind is not None:
        ln_C_lo, ln_C_hi = around(float(theta_P[0]) + fit.alpha * math.log(fit.S_ref), sd_P[2] * reach)
        ends = ends._replace(C=(exp_or_none(ln_C_lo), exp_or_none(ln_C_hi)))
        if fit.offset.value is not None:
            lo, hi = around(fit.offset.value, sd_P[3] * reach)
            ends = ends._replace(E=(max(lo, 0.0), hi))
    curvature = curvature_of(k_grid, y_K, resampled)
    reasons = [fit.status, *trend_doubts(fit.alpha, alpha_lo, alpha_hi)]
    bent = None if curvature is None else curvature.ends
    if method is not Method.offset and bent is not None and not bent[0] <= 0 <= bent[1]:
        reasons.append(Status.bends)
    judged = replace(
        fit,
        alpha_stderr=None if kind is None else float(sd_P[1]),
        alpha_lo=alpha_lo,
        alpha_hi=alpha_hi,
        interval=kind,
        limited_by=None if kind is None else "text",
        ends=ends,
        bend=Bend(_autocorrelation(np.array(fit.residuals_ln)), curvature),
    )
    return with_reasons(judged, reasons)


def curvature_of(k_grid: Sequence[int], y_K: Floats, resampled: Resampled | None) -> Estimate | None:
    """The coefficient of the square of ln k in ln y, by least squares, with its interval; None below 4 ranks."""
    x_K = np.log(np.asarray(k_grid, dtype=np.float64))
    if len(x_K) < 4:
        return None
    J_KP = np.column_stack([np.ones(len(x_K)), x_K - x_K.mean(), (x_K - x_K.mean()) ** 2])
    of_K = np.linalg.pinv(J_KP)[2]
    value = float(of_K @ np.log(y_K))
    if resampled is not None and resampled.suffices:
        shared = float(resampled.covariance_of(of_K[None])[0, 0])
        return Estimate(value, *around(value, half_width(shared, n_documents=resampled.n_documents)))
    if resampled is not None:
        return Estimate(value, None, None)
    covariance_KK, dof = _scaled(y_K, J_KP)
    half = student_t(dof) * math.sqrt(float(of_K @ covariance_KK @ of_K)) if dof > 0 else math.inf
    return Estimate(value, *around(value, half)) if math.isfinite(half) else Estimate(value, None, None)


def nested_covariance(y_K: Floats) -> Floats:
    """Covariance of ln(-ln RBP_k) over samples of one token, to first order: that of nested counts.

    The hits at j are among those at k > j, so cov(RBP_j, RBP_k) = RBP_j (1 - RBP_k), over the derivatives RBP ln RBP.

    Args:
        y_K: -ln RBP_k, falling.
    """
    larger_KK = np.exp(-np.minimum(y_K[:, None], y_K))
    return np.asarray((1 - larger_KK) / (larger_KK * y_K[:, None] * y_K))


def _standard_deviations(
    fit: PowerLawFit, about: Uncertainty, k_grid: Sequence[int], knows_text: bool
) -> tuple[Floats, str | None]:
    """Standard deviations of ln C at k_ref, alpha, ln C at k = 1 and E (where there is one), and what they are of."""
    n, ln_ref = len(about.bias_P), math.log(fit.S_ref)
    if knows_text:
        covariance_PP, kind = about.text_PP, "documents"
    elif about.knows_text:
        return np.full(4, math.nan), None
    else:
        x_K = np.log(np.asarray(k_grid, dtype=np.float64)) - ln_ref
        J_KP = np.column_stack([np.ones(len(x_K)), -x_K])
        covariance_KK, dof = _scaled(np.array(fit.y), J_KP)
        if n == 3 or dof < 1:
            return np.full(4, math.nan), None
        L_PK = np.linalg.pinv(J_KP)
        covariance_PP, kind = L_PK @ covariance_KK @ L_PK.T, "nested counts"
    of_rows = [np.eye(n)[0], np.eye(n)[1], np.eye(n)[0] + ln_ref * np.eye(n)[1], *np.eye(n)[2:]]
    return np.sqrt([float(of_P @ covariance_PP @ of_P) for of_P in of_rows]), kind


def _scaled(y_K: Floats, J_KP: Floats) -> tuple[Floats, int]:
    """The covariance of nested counts at the scale of the residuals of generalised least squares, and its freedom."""
    covariance_KK = nested_covariance(y_K)
    inverse_KK = np.linalg.pinv(covariance_KK, hermitian=True)  # the same RBP at two k is one observation
    dof = int(np.linalg.matrix_rank(covariance_KK, hermitian=True)) - J_KP.shape[1]
    if dof < 1:
        return covariance_KK, 0
    z_K = np.log(y_K)
    theta_P = np.linalg.solve(J_KP.T @ inverse_KK @ J_KP, J_KP.T @ inverse_KK @ z_K)
    left_K = z_K - J_KP @ theta_P
    return covariance_KK * float(left_K @ inverse_KK @ left_K) / dof, dof


def _autocorrelation(residual_K: Floats) -> float | None:
    """Correlation of the residuals of neighbours in k; None where they do not vary."""
    before_K, after_K = residual_K[:-1], residual_K[1:]
    squares = float(before_K @ before_K) * float(after_K @ after_K)
    return float(before_K @ after_K) / math.sqrt(squares) if squares > 0 else None
