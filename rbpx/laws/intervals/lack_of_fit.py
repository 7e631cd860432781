"""Lack of fit of a power law, from its own points: curvature, and runs of residuals with the same sign.

Scatter of the models is as often above the law as below it, whatever the size. A wrong form is not: its residuals
curve, and neighbouring sizes err to the same side. Both are looked at here for a straight line of ln y on ln S.

Shapes: N sizes, B resamples of the documents.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.estimate import Estimate, around, half_width
from rbpx.laws.intervals.resampled import Resampled
from rbpx.laws.numeric.arrays import Floats

_FEWEST_FOR_RUNS: Final = 6  # sizes; with fewer, even the smoothest residuals are not rare
_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)  # of the largest |ln y|: residuals below it are no scatter
_STEP: Final = 0.1
_LOG_FREQUENCY: Final = np.arange(-45.0, 90.0, _STEP)  # beyond both ends the integrand is below rounding


def curvature(ln_S_N: ArrayLike, ln_y_N: ArrayLike, ln_y_BN: ArrayLike | Resampled | None = None) -> Estimate:
    """The coefficient q of ln y = a + b x + q x^2, x = ln(S / S_ref), by least squares.

    A power law has q = 0; an offset, or a law that flattens, has q > 0. The value at S = 10^n S_ref lies
    q (n ln 10)^2 in ln y away from the line through the points near S_ref.

    Args:
        ln_S_N: logarithms of the sizes, shape [N], in any order.
        ln_y_N: logarithms of the values, shape [N].
        ln_y_BN: the same under B resamples of the documents, the same documents for every size, shape [B, N], or y as
            `Resampled`. Rows with a value that is not finite are left out; fewer than 20 say nothing.

    Returns:
        q per (ln S)^2 with its 95 % interval, which includes the scatter of the models (Student's t of N - 3 degrees
        of freedom) and the noise of the documents that all sizes share, by the recipe of `half_width`. Where there are
        resamples, their bias is taken off the number, which so stays in the middle of its interval. Without ends for
        fewer than 4 sizes, all None for fewer than 3.
    """
    x_N, y_N = _centred(ln_S_N), np.asarray(ln_y_N, np.float64)
    if len(set(x_N.tolist())) < 3:
        return Estimate()
    J_NP = np.column_stack([np.ones(len(x_N)), x_N, x_N**2])
    L_PN = np.linalg.pinv(J_NP)
    of_q_N = L_PN[2]
    straight = is_rounding(line_residuals(ln_S_N, ln_y_N), y_N)
    value = 0.0 if straight else float(of_q_N @ y_N)
    left_N = np.zeros(len(x_N)) if straight else y_N - J_NP @ (L_PN @ y_N)
    dof, unit = len(x_N) - 3, float(of_q_N @ of_q_N)
    text, explained, n_documents = 0.0, 0.0, None
    if ln_y_BN is not None:
        resampled = ln_y_BN if isinstance(ln_y_BN, Resampled) else Resampled.of_logarithms(ln_y_BN)
        n_documents = resampled.n_documents
        if resampled.suffices:
            value -= float(of_q_N @ (resampled.mean_N - y_N))
            text = float(resampled.covariance_of(of_q_N[None])[0, 0])
            if dof > 0:
                explained = float(resampled.mean_squares_of(np.eye(len(x_N)) - J_NP @ L_PN).sum()) / dof
    if dof <= 0:
        return Estimate(value)
    scatter = float(np.sqrt(left_N @ left_N / dof))
    shared = max(text - explained * unit, 0.0)
    return Estimate(value, *around(value, half_width(shared, scatter, dof, explained**0.5, unit, n_documents)))


def runs_p(ln_S_N: ArrayLike, ln_y_N: ArrayLike) -> float | None:
    """How probable residuals about the line would be that follow each other as smoothly, if sizes scattered alone.

    The statistic is von Neumann's ratio of the residuals e in order of S, d = sum (e_i+1 - e_i)^2 / sum e_i^2; small
    where neighbouring sizes err to the same side. p = Pr(d <= observed) under normal scatter that is independent and
    the same at each size, exact for these sizes: e = M eps, so p is the probability that the quadratic form
    eps' M (D - d I) M eps is at most 0, by Imhof's integral. One-sided: residuals that alternate have p near 1.

    Args:
        ln_S_N: logarithms of the sizes, shape [N], in any order.
        ln_y_N: logarithms of the values, shape [N].

    Returns:
        p; None for fewer than 6 sizes, or where the points lie on the line to within rounding.

    Source:
        J. Durbin and G. S. Watson, Testing for Serial Correlation in Least Squares Regression I, Biometrika 37 (1950);
        J. P. Imhof, Computing the Distribution of Quadratic Forms in Normal Variables, Biometrika 48 (1961), eq. 3.2.
    """
    order_N = np.argsort(np.asarray(ln_S_N, np.float64), kind="stable")
    x_N, y_N = _centred(ln_S_N)[order_N], np.asarray(ln_y_N, np.float64)[order_N]
    n = len(x_N)
    if n < _FEWEST_FOR_RUNS:
        return None
    residual_N = line_residuals(x_N, y_N)
    if is_rounding(residual_N, y_N):
        return None
    ratio = float((np.diff(residual_N) ** 2).sum() / (residual_N @ residual_N))
    difference = np.diff(np.eye(n), axis=0)
    line_NP = np.linalg.qr(np.column_stack([np.ones(n), x_N]))[0]
    rest_NN = np.eye(n) - line_NP @ line_NP.T
    form_NN = rest_NN @ (difference.T @ difference - ratio * np.eye(n)) @ rest_NN
    return _probability_at_most_0(np.linalg.eigvalsh(form_NN))


def line_residuals(ln_S_N: ArrayLike, ln_y_N: ArrayLike) -> Floats:
    """Residuals of the least-squares line of ln y on ln S, in the order of the arguments; at least 2 sizes."""
    x_N, y_N = _centred(ln_S_N), np.asarray(ln_y_N, np.float64)
    about_N = y_N - y_N.mean()
    return np.asarray(about_N - x_N * (float(x_N @ about_N) / float(x_N @ x_N)))


def is_rounding(residual_N: Floats, ln_y_N: Floats) -> bool:
    """Whether residuals of ln y are no larger than float64 makes them, so that the points lie on the law."""
    return bool(np.abs(residual_N).max() <= _ROUNDING * max(1.0, float(np.abs(ln_y_N).max())))


def _centred(ln_S_N: ArrayLike) -> Floats:
    ln_S = np.asarray(ln_S_N, np.float64)
    return np.asarray(ln_S - ln_S.mean())


def _probability_at_most_0(weight_M: Floats) -> float:
    """Pr(sum of weight_m z_m^2 <= 0) of independent standard normal z.

    Imhof: 1/2 - 1/pi int_0^inf sin(theta(u)) / (u rho(u)) du. With u = e^s the integrand is analytic in a strip about
    the real line and falls exponentially to both sides, where the trapezoidal sum converges exponentially too.
    """
    scaled_M = weight_M / np.abs(weight_M).max()
    product_UM = np.exp(_LOG_FREQUENCY)[:, None] * scaled_M
    theta_U = np.arctan(product_UM).sum(axis=1) / 2
    ln_rho_U = np.log1p(product_UM**2).sum(axis=1) / 4
    integral = float((np.sin(theta_U) * np.exp(-ln_rho_U)).sum()) * _STEP
    return min(max(0.5 - integral / np.pi, 0.0), 1.0)
