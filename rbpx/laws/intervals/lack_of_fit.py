"""Tests a law against its own points: curvature, and repeated trainings of a size.

Trainings of one size differ by pure error; what they have in common beyond the law, with each family's constant and
exponent removed, is lack of fit.

Shapes: N sizes, F families, M points of all families, B bootstrap replicates of the documents, P and Q columns, G
sizes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc

from rbpx.laws.intervals.estimate import Estimate, Replicates, from_stderr
from rbpx.laws.numeric import Floats

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FamilyPoints:
    """Points of F families, one family after the other.

    Attributes:
        x_M: ln(S / S_ref).
        ln_S_ref: mean of ln S over all points.
        family_M: 0 .. F-1.
        size_M: index of the size; equal where S is.
        change_BM: change of ln y under bootstrap replicates of the same documents for all families.
    """

    x_M: Floats
    ln_S_ref: float
    ln_y_M: Floats
    family_M: Whole
    size_M: Whole
    change_BM: Floats | None
    n_effective: float | None = None

    @property
    def n_families(self) -> int:
        """Number of families."""
        return int(self.family_M.max()) + 1

    @property
    def of_family_MF(self) -> Floats:
        """Indicators of the families."""
        return np.asarray(self.family_M[:, None] == np.arange(self.n_families), np.float64)

    @property
    def of_size_MG(self) -> Floats:
        """Indicators of the sizes."""
        return np.asarray(self.size_M[:, None] == np.unique(self.size_M), np.float64)

    @property
    def same_size_MM(self) -> Floats:
        """Whether two points have the same size, as 1 or 0."""
        return np.asarray(self.size_M[:, None] == self.size_M, np.float64)


def stack_family(ln_S_M: ArrayLike, ln_y_M: ArrayLike, change_BM: Floats | None = None) -> FamilyPoints:
    """Returns one family, in which a size may recur, from ln S and ln y."""
    x_M = np.asarray(ln_S_M, np.float64)
    size_M = np.unique(x_M, return_inverse=True)[1].astype(np.int64)
    ln_S_ref, family_M = float(x_M.mean()), np.zeros(len(x_M), np.int64)
    return FamilyPoints(x_M - ln_S_ref, ln_S_ref, np.asarray(ln_y_M, np.float64), family_M, size_M, change_BM)


def stack_families(
    S_F: Sequence[ArrayLike],
    y_F: Sequence[ArrayLike],
    y_replicates_F: Sequence[ArrayLike | None] | None = None,
    n_effective: float | None = None,
) -> FamilyPoints:
    """Concatenates families; replicates, [B, N_f] each of the same documents, are used where all have them.

    Rows with a value that is not positive and finite are left out.
    """
    sizes, values = ([np.asarray(each, np.float64) for each in of] for of in (S_F, y_F))
    y_M, family_M = np.concatenate(values), np.repeat(np.arange(len(sizes)), [len(S) for S in sizes])
    known, change_BM = [np.asarray(y, np.float64) for y in y_replicates_F or () if y is not None], None
    if len(known) == len(sizes) and len({len(y_BN) for y_BN in known}) == 1:
        replicates = Replicates.of(np.concatenate(known, axis=1), n_effective)
        change_BM = replicates.ln_y_BN - np.log(y_M) if replicates.suffices else None
    points = stack_family(np.log(np.concatenate(sizes)), np.log(y_M), change_BM)
    return replace(points, family_M=family_M, n_effective=n_effective)


_ROUNDING: Final = 64 * float(np.finfo(np.float64).eps)  # of the largest |ln y|: smaller residuals are rounding


def coefficient(J_NP: Floats, y_N: Floats, at: int) -> Estimate:
    """Returns one coefficient of y = J theta by least squares, with its interval from the scatter about the fit.

    var theta_p = s^2 |l_p|^2, s^2 = sum r^2 / (N - P), with r the residuals and l the rows of the pseudoinverse of J,
    which has full rank; Student's t of N - P.
    """
    L_PN, dof = np.linalg.pinv(J_NP), J_NP.shape[0] - J_NP.shape[1]
    theta_P = L_PN @ y_N
    left_N = y_N - J_NP @ theta_P
    stderr = float(np.linalg.norm(left_N) * np.linalg.norm(L_PN[at])) / dof**0.5 if dof > 0 else None
    return from_stderr(float(theta_P[at]), stderr, dof)


def curvature(ln_S_N: ArrayLike, ln_y_N: ArrayLike) -> Estimate:
    """Returns the coefficient q of ln y = a + b x + q x^2, x = ln(S / S_ref), with its 95 % interval over models.

    A power law has q = 0; an offset, or a law that flattens, has q > 0. Student's t of N - 3; 0 where the points lie on
    a line to within rounding, without ends for fewer than 4 sizes, all None for fewer than 3.
    """
    x_N, y_N = _centred(ln_S_N), np.asarray(ln_y_N, np.float64)
    if len(set(x_N.tolist())) < 3:
        return Estimate()
    straight = is_rounding(line_residuals(ln_S_N, ln_y_N), y_N)
    return coefficient(np.column_stack([np.ones(len(x_N)), x_N, x_N**2]), np.zeros(len(x_N)) if straight else y_N, 2)


def curvature_of_groups(x_N: Floats, y_N: Floats, group_N: NDArray[np.intp]) -> Estimate:
    """Returns q of y = a + b x + q x^2 where points of a group scatter together, with its 95 % interval.

    The variance is G / (G - 3) sum_g (sum_i l_i r_i)^2 over the G groups, with r the residuals and l the row of the
    pseudoinverse; Student's t of G - 3. Without ends for fewer than 4 groups, all None for fewer than 3 different x.

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
    """Returns residuals of the least-squares line of ln y on ln S, in the order of the arguments; at least 2 sizes."""
    x_N, y_N = _centred(ln_S_N), np.asarray(ln_y_N, np.float64)
    about_N = y_N - y_N.mean()
    return np.asarray(about_N - x_N * (float(x_N @ about_N) / float(x_N @ x_N)))


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
        p: Pr(F or more) if the smaller model holds.
        sd_about: standard deviation of the points about the smaller model.
        sd_rest: about the larger one.
    """

    F: float
    dof: int
    dof_rest: int
    p: float
    sd_about: float
    sd_rest: float


def lack_of_fit_test(points: FamilyPoints, own_MQ: Floats, residual_M: Floats) -> NestedTest | None:
    """Tests whether sizes have effects beyond the laws: F = lack of fit / pure error.

    Pure error is the difference of trainings of one size. `own_MQ` are derivatives of ln y by a constant and an
    exponent for each family, and by what they share; residuals are about any law within their span. None where too few
    sizes are trained more than once, or where the families are equal to within rounding.

    Source:
        N. R. Draper and H. Smith, Applied Regression Analysis, 3rd ed. (1998), section 2.2.
    """
    return _nested(points, own_MQ, np.column_stack([own_MQ, points.of_size_MG]), residual_M)


def _nested(points: FamilyPoints, small_MP: Floats, large_MQ: Floats, residual_M: Floats) -> NestedTest | None:
    n, n_small, n_large = len(residual_M), _rank(small_MP), _rank(large_MQ)
    if n_large == n_small or n_large >= n:
        return None
    left_small, left_large = (residual_M - J @ (np.linalg.pinv(J) @ residual_M) for J in (small_MP, large_MQ))
    rest = float(left_large @ left_large)
    if is_rounding(left_large, points.ln_y_M):
        return None
    step = max(float(left_small @ left_small) - rest, 0.0)
    dof, dof_rest = n_large - n_small, n - n_large
    F = (step / dof) / (rest / dof_rest)
    about = ((step + rest) / (dof + dof_rest)) ** 0.5
    return NestedTest(F, dof, dof_rest, float(fdtrc(dof, dof_rest, F)), about, (rest / dof_rest) ** 0.5)


def _rank(J_MP: Floats) -> int:
    return int(np.linalg.matrix_rank(J_MP))
