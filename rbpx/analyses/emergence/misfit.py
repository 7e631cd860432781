"""Whether one pooled exponent stands: exponents of the window lengths compared, curvature, and growth with N.

Each of these is a linear function of the values z = ln(-ln p) of the cells, whose errors at one size belong together:
windows of different N are windows of the same model over the same tokens, and nobody knows how closely. So the errors
are summed within a size first, and only these sums are taken to be independent. Sums of residuals are smaller than
those of errors, and differ between sizes that weigh more and less; a guess of the covariance within a size says how
much, and how many degrees of freedom are left. For one window length that is Student's t of least squares.

Shapes: C cells, each one size and one window length; M sizes; P parameters; B resamples of the documents. Source: Bell
and McCaffrey, Survey Methodology 28 (2002), 169; Satterthwaite, Biometrics Bulletin 2 (1946), 110.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from rbpx.laws.intervals.estimate import LEVEL, Estimate, around, few_documents, half_width, student_t
from rbpx.laws.numeric.arrays import Floats

_ALIKE: Final = 0.5  # the guess: correlation of the errors of a size
_LEAST_SEEN: Final = 0.5  # of the error of one size: with less left in the residuals nothing is known about it
_ROUNDING: Final = 1e-8  # of ln(-ln p): values that lie on the law as closely say nothing against it
_LEAST_CELLS: Final = 3  # of a window length whose exponent is compared


@dataclass(frozen=True, eq=False)
class Cells:
    """The values that a pooled law was fitted to.

    Attributes:
        x_C: ln(S / S_ref).
        length_C: which window length, from 0.
        size_C: which size, from 0.
        fitted_C: ln(-ln p) by the law.
        residual_C: measured minus fitted, (p - p_fitted) / (d p / d ln(-ln p)), which exists for a share of 0 too.
        weight_C: one over the variance that each value is taken to have.
        change_BC: change of the values under each resample of the documents; None without documents.
        n_documents: that were resampled; None where they are not counted.
    """

    x_C: Floats
    length_C: NDArray[np.intp]
    size_C: NDArray[np.intp]
    fitted_C: Floats
    residual_C: Floats
    weight_C: Floats
    change_BC: Floats | None
    n_documents: int | None

    @property
    def lengths_CN(self) -> Floats:
        """1 where a cell is of a window length."""
        return np.eye(int(self.length_C.max()) + 1)[self.length_C]

    @property
    def pooled_CP(self) -> Floats:
        """Derivatives of z by the constants and the one exponent."""
        return np.column_stack([self.lengths_CN, -self.x_C])


@dataclass(frozen=True)
class Contrast:
    """A number that is 0 if the pooled law holds, with its 95 % interval and the probability of one as far off."""

    name: str
    estimate: Estimate
    p: float


def exponents(cells: Cells, lengths: Sequence[int]) -> tuple[dict[int, Estimate], list[Contrast]]:
    """The exponent of each window length with 3 sizes or more, and its difference from the pooled one."""
    compared = [at for at in range(len(lengths)) if np.count_nonzero(cells.length_C == at) >= _LEAST_CELLS]
    at_CN = cells.lengths_CN
    rest_C = -cells.x_C * (1 - at_CN[:, compared].sum(axis=1))
    own_CP = np.column_stack(
        [at_CN, *(-cells.x_C * at_CN[:, at] for at in compared), *([rest_C] if rest_C.any() else [])]
    )
    of_own_PC, of_pooled_C = _sensitivity(cells, own_CP), _sensitivity(cells, cells.pooled_CP)[-1]
    alphas: dict[int, Estimate] = {}
    contrasts = []
    for place, at in enumerate(compared):
        of_C = of_own_PC[at_CN.shape[1] + place]
        alphas[lengths[at]] = _contrast(cells, own_CP, of_C, "").estimate
        if len(compared) > 1:
            contrasts.append(_contrast(cells, own_CP, of_C - of_pooled_C, f"alpha at N = {lengths[at]}"))
    return alphas, contrasts


def drift(cells: Cells, lengths: Sequence[int]) -> list[Contrast]:
    """Change of the exponent per unit of ln N, where it changes steadily; none for one window length."""
    if len(lengths) < 2:
        return []
    ln_N_C = np.log(np.asarray(lengths, dtype=np.float64))[cells.length_C]
    drifting_CP = np.column_stack([cells.pooled_CP, -cells.x_C * (ln_N_C - ln_N_C.mean())])
    return [_contrast(cells, drifting_CP, _sensitivity(cells, drifting_CP)[-1], "drift")]


def curvature(cells: Cells) -> list[Contrast]:
    """Half of the change of the exponent per unit of ln S, one for all window lengths; none below 4 sizes."""
    if len(np.unique(cells.size_C)) < 4:
        return []
    bent_CP = np.column_stack([cells.pooled_CP, cells.x_C**2])
    return [_contrast(cells, bent_CP, _sensitivity(cells, bent_CP)[-1], "curvature")]


def growth(cells: Cells, lengths: Sequence[int]) -> list[Contrast]:
    """How far each constant is from N times the same: 0 at every N if tokens were independent."""
    if len(lengths) < 2:
        return []
    of_constant_NC = _sensitivity(cells, cells.pooled_CP)[:-1]
    total_N = cells.weight_C @ cells.lengths_CN
    of_mean_C = total_N @ of_constant_NC / total_N.sum()
    ln_N = np.log(np.asarray(lengths, dtype=np.float64))
    expected_N = ln_N - total_N @ ln_N / total_N.sum()
    return [
        _contrast(cells, cells.pooled_CP, of_constant_NC[at] - of_mean_C, f"constant at N = {N}", expected_N[at])
        for at, N in enumerate(lengths)
    ]


def significant(contrasts: Sequence[Contrast], questions: int = 1) -> list[Contrast]:
    """Those that differ from 0 when all of them are asked at once, by Holm (Scand. J. Statistics 6, 1979, 65).

    Args:
        contrasts: that answer one question together.
        questions: how many questions are asked, each of which gets as much of the chance of a false answer.
    """
    found = []
    for rank, contrast in enumerate(sorted(contrasts, key=lambda one: one.p)):
        if contrast.p * (len(contrasts) - rank) > (1 - LEVEL) / questions:
            break
        found.append(contrast)
    return found


def _sensitivity(cells: Cells, J_CP: Floats) -> Floats:
    """Change of each parameter for a change of each value: (J' W J)^-1 J' W."""
    w_C = cells.weight_C
    return np.asarray(np.linalg.solve((J_CP.T * w_C) @ J_CP, J_CP.T * w_C))


def _contrast(cells: Cells, J_CP: Floats, of_C: Floats, name: str, expected: float = 0.0) -> Contrast:
    """Sum of `of_C` times the values, less what is expected; J is the regression that the residuals are about."""
    value = float(of_C @ (cells.fitted_C + cells.residual_C)) - expected
    half, dof = _half_width(cells, J_CP, of_C)
    if not math.isfinite(half):
        return Contrast(name, Estimate(value, None, None), 1.0)
    lo, hi = around(value, half)
    if float(np.abs(cells.residual_C).max()) < _ROUNDING:
        return Contrast(name, Estimate(value, lo, hi), 1.0)
    p = 2 * float(stdtr(dof, -abs(value) / half * student_t(dof))) if half > 0 else float(value == 0)
    return Contrast(name, Estimate(value, lo, hi), p)


def _half_width(cells: Cells, J_CP: Floats, of_C: Floats) -> tuple[float, float]:
    """Half of a 95 % interval over documents and models, and the degrees of freedom; infinite where none are left."""
    left_CC = np.eye(len(J_CP)) - J_CP @ _sensitivity(cells, J_CP)
    sd_C = 1 / np.sqrt(cells.weight_C)
    alike_CC = np.where(cells.size_C[:, None] == cells.size_C, _ALIKE, 0.0) + (1 - _ALIKE) * np.eye(len(J_CP))
    guess_CC = alike_CC * sd_C[:, None] * sd_C
    sums_MC = np.eye(int(cells.size_C.max()) + 1)[cells.size_C].T * of_C
    variance_M = np.einsum("mc,cd,md->m", sums_MC, guess_CC, sums_MC)
    known_M = variance_M > 0  # a size that the number does not depend on says nothing about its error
    unit_MC = sums_MC[known_M] / np.sqrt(variance_M[known_M, None])
    left_MC = unit_MC @ left_CC
    seen_MM = left_MC @ guess_CC @ left_MC.T
    seen = float(np.trace(seen_MM))
    if seen < _LEAST_SEEN:  # the regression passes through the sums
        return math.inf, 0.0
    scale, dof = float(variance_M.sum()) / seen, seen**2 / float(np.sum(seen_MM**2))
    scatter = scale * float(np.sum((left_MC @ cells.residual_C) ** 2))
    if cells.change_BC is None:
        return half_width(scatter=math.sqrt(scatter), dof=dof), dof
    centred_BC = math.sqrt(few_documents(cells.n_documents)) * (cells.change_BC - cells.change_BC.mean(axis=0))
    own = scale * float(np.mean(np.sum((centred_BC @ left_MC.T) ** 2, axis=1)))
    shared = max(float(np.var(centred_BC @ of_C, ddof=1)) - own, 0.0)
    return half_width(shared, math.sqrt(scatter), dof, math.sqrt(own), n_documents=cells.n_documents), dof
