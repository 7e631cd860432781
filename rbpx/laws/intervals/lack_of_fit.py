"""Tests a law against its own points: curvature, and repeated trainings of a size.

Shapes: N points, P columns, G groups.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc

from rbpx.laws.intervals.estimate import Estimate, from_stderr
from rbpx.laws.numeric import Floats, line

_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)  # of the largest |ln y|: smaller residuals are rounding


def coefficient(J_NP: Floats, y_N: Floats, at: int) -> Estimate:
    """One coefficient of y = J theta by least squares, with its interval from the scatter about the fit."""
    L_PN, dof = np.linalg.pinv(J_NP), J_NP.shape[0] - J_NP.shape[1]
    theta_P = L_PN @ y_N
    left_N = y_N - J_NP @ theta_P
    stderr = float(np.linalg.norm(left_N) * np.linalg.norm(L_PN[at])) / dof**0.5 if dof > 0 else None
    return from_stderr(float(theta_P[at]), stderr, dof)


def curvature(ln_S_N: ArrayLike, ln_y_N: ArrayLike) -> Estimate:
    """The coefficient q of ln y = a + b x + q x^2, x = ln(S / S_ref), with its 95 % interval over models.

    A power law has q = 0, a law that flattens q > 0. Without ends for fewer than 4 sizes, all None for fewer than 3.
    """
    x_N, y_N = _centred(ln_S_N), np.asarray(ln_y_N, np.float64)
    if len(set(x_N.tolist())) < 3:
        return Estimate()
    straight = is_rounding(line_residuals(ln_S_N, ln_y_N), y_N)
    return coefficient(np.vander(x_N, 3, increasing=True), np.zeros(len(x_N)) if straight else y_N, 2)


def curvature_of_groups(x_N: Floats, y_N: Floats, group_N: NDArray[np.intp]) -> Estimate:
    """The coefficient q of y = a + b x + q x^2 where points of a group scatter together, with its 95 % interval.

    The variance is G / (G - 3) sum_g (sum_i l_i r_i)^2, with r the residuals and l the row of the pseudoinverse;
    Student's t of G - 3. Without ends for fewer than 4 groups, all None for fewer than 3 different x.

    Source:
        Liang and Zeger (1986), Biometrika 73, 13.
    """
    if len(set(x_N.tolist())) < 3:
        return Estimate()
    J_NP, G = np.vander(x_N - x_N.mean(), 3, increasing=True), len(np.unique(group_N))
    L_PN = np.linalg.pinv(J_NP)
    left_N = y_N - J_NP @ (L_PN @ y_N)
    squares = float((np.bincount(group_N, L_PN[2] * left_N) ** 2).sum())
    return from_stderr(float(L_PN[2] @ y_N), (squares * G / (G - 3)) ** 0.5 if G > 3 else None, G - 3)


def line_residuals(ln_S_N: ArrayLike, ln_y_N: ArrayLike) -> Floats:
    """Residuals of the least-squares line of ln y on ln S; at least 2 sizes."""
    level, alpha = line(ln_S_N, ln_y_N)
    return np.asarray(np.asarray(ln_y_N) - level + alpha * _centred(ln_S_N))


def is_rounding(residual_N: Floats, ln_y_N: Floats) -> bool:
    """Whether residuals of ln y are within float64 rounding, so that the points lie on the law."""
    return bool(np.abs(residual_N).max() <= _ROUNDING * max(1.0, float(np.abs(ln_y_N).max())))


def _centred(ln_S_N: ArrayLike) -> Floats:
    ln_S = np.asarray(ln_S_N, np.float64)
    return np.asarray(ln_S - ln_S.mean())


@dataclass(frozen=True)
class NestedTest:
    """The F test of a model within a larger one.

    Attributes:
        F: mean square explained by the larger one in addition, with `dof`, over the one it leaves, with `dof_rest`.
        sd_about: standard deviation of the points about the smaller model; `sd_rest` about the larger one.
    """

    F: float
    dof: int
    dof_rest: int
    p: float
    sd_about: float
    sd_rest: float


def lack_of_fit_test(ln_S_N: Floats, ln_y_N: Floats, J_NP: Floats, residual_N: Floats) -> NestedTest | None:
    """Tests whether sizes have effects beyond a law: F = lack of fit / pure error, the difference of their trainings.

    Residuals are about any law within the span of `J_NP`. None where too few sizes are trained more than once, or their
    trainings are equal.

    Source:
        N. R. Draper and H. Smith, Applied Regression Analysis, 3rd ed. (1998), section 2.2.
    """
    models = J_NP, np.column_stack([J_NP, np.equal.outer(ln_S_N, np.unique(ln_S_N))])
    n_law, n_sizes = (int(np.linalg.matrix_rank(each)) for each in models)
    if n_law == n_sizes or n_sizes >= len(residual_N):
        return None
    about_N, left_N = (residual_N - each @ (np.linalg.pinv(each) @ residual_N) for each in models)
    if is_rounding(left_N, ln_y_N):
        return None
    rest = float(left_N @ left_N)
    step = max(float(about_N @ about_N) - rest, 0.0)
    dof, dof_rest = n_sizes - n_law, len(residual_N) - n_sizes
    F = (step / dof) / (rest / dof_rest)
    about = ((step + rest) / (dof + dof_rest)) ** 0.5
    return NestedTest(F, dof, dof_rest, float(fdtrc(dof, dof_rest, F)), about, (rest / dof_rest) ** 0.5)
