"""Searches for the law p = exp(-C_N S^-alpha) of shares of windows by quasi-likelihood, and tests whether it stands.

The search (`search`). A share p of n windows is taken to vary by p (1 - p) d_N / n + tau^2 (p ln p)^2: the documents
make it vary d_N times as much as independent windows, and tau is the standard deviation of the models in ln(-ln p).
Parameters and tau are found in turns.

The tests (`exponents`, `drift`, `curvature`, `growth`). Each is a linear function of the values z = ln(-ln p) of the
cells. Errors at one size belong together, because windows of different N are windows of the same model over the same
tokens, and nobody knows how closely. So errors are summed within a size first, and only these sums are taken to be
independent. Sums of residuals are smaller than sums of errors, by different factors where sizes weigh differently; a
guess of the covariance within a size gives these factors and the degrees of freedom. For one window length that is
Student's t of least squares.

Source: Bell and McCaffrey, Survey Methodology 28 (2002), 169; Satterthwaite, Biometrics Bulletin 2 (1946), 110.
Shapes: M sizes, N window lengths, C cells (each one size and one window length), P parameters (ln C_N at the middle of
the sizes, then alpha), B resamples of the documents.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from rbpx.laws.counts.passing import Tally, climb
from rbpx.laws.intervals.estimate import (
    LEVEL,
    MIN_REPLICATES,
    Estimate,
    few_documents,
    from_half_width,
    half_width,
    student_t,
)
from rbpx.laws.numeric import Floats
from rbpx.questions.emergence.law import checked

_ALIKE: Final = 0.5  # the guess: correlation of the errors of a size
_LEAST_SEEN: Final = 0.5  # of the error of one size: with less left in the residuals nothing is known about it
_ROUNDING: Final = 1e-8  # of ln(-ln p): values that lie this close to the law say nothing against it
_LEAST_CELLS: Final = 3  # of a window length whose exponent is compared
_ROUNDS: Final = 30  # of fit and variances, each from the other
_SETTLED: Final = 1e-4  # relative change of the variance of the models
_LARGEST_COUNT: Final = 1e6  # counts are scaled to it: only their proportions matter to the estimate


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
        change_BC: changes of the values under each resample of the documents; None without documents.
        n_documents: how many were resampled; None where they are not counted.
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
    """The exponent of each window length with 3 sizes or more, and its difference from the pooled exponent."""
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
    return [_of_one_more(cells, -cells.x_C * (ln_N_C - ln_N_C.mean()), "drift")]


def curvature(cells: Cells) -> list[Contrast]:
    """Half of the change of the exponent per unit of ln S, one for all window lengths; none below 4 sizes."""
    if len(np.unique(cells.size_C)) < 4:
        return []
    return [_of_one_more(cells, cells.x_C**2, "curvature")]


def growth(cells: Cells, lengths: Sequence[int]) -> list[Contrast]:
    """How far each constant is from N times one constant: 0 at every N if tokens were independent."""
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
    """The contrasts that differ from 0 when all are tested at once, by Holm (Scand. J. Statistics 6, 1979, 65).

    Args:
        contrasts: that answer one question together.
        questions: how many questions are asked; each gets an equal part of the chance of a false answer.
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


def _left(cells: Cells, J_CP: Floats) -> Floats:
    """What a regression leaves of each value in each residual: 1 - J (J' W J)^-1 J' W, [C, C]."""
    return np.asarray(np.eye(len(J_CP)) - J_CP @ _sensitivity(cells, J_CP))


def _of_one_more(cells: Cells, column_C: Floats, name: str) -> Contrast:
    """The coefficient of one more column in the regression of the pooled law."""
    J_CP = np.column_stack([cells.pooled_CP, column_C])
    return _contrast(cells, J_CP, _sensitivity(cells, J_CP)[-1], name)


def _contrast(cells: Cells, J_CP: Floats, of_C: Floats, name: str, expected: float = 0.0) -> Contrast:
    """Sum of `of_C` times the values, minus what is expected; the residuals are those of the regression on J."""
    value = float(of_C @ (cells.fitted_C + cells.residual_C)) - expected
    half, dof = _half_width(cells, J_CP, of_C)
    p = 1.0
    if math.isfinite(half) and float(np.abs(cells.residual_C).max()) >= _ROUNDING:
        p = 2 * float(stdtr(dof, -abs(value) / half * student_t(dof))) if half > 0 else float(value == 0)
    return Contrast(name, from_half_width(value, half), p)


def _half_width(cells: Cells, J_CP: Floats, of_C: Floats) -> tuple[float, float]:
    """Half of a 95 % interval over documents and models, and the degrees of freedom; infinite where none are left."""
    left_CC = _left(cells, J_CP)
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


@dataclass(frozen=True, eq=False)
class MeasuredShares:
    """The shares that can be fitted, one for each cell, and what they are made of."""

    S_M: Floats
    p_MN: Floats
    windows_MN: Floats | None
    used: list[int]  # window lengths, by place
    size_C: NDArray[np.intp]
    length_C: NDArray[np.intp]  # place among `used`
    p_C: Floats
    windows_C: Floats | None
    p_BC: Floats | None
    n_documents: int | None

    @property
    def x_C(self) -> Floats:
        """ln(S / S_ref)."""
        ln_S_M = np.log(self.S_M)
        return np.asarray((ln_S_M - ln_S_M.mean())[self.size_C])


def measured_shares(
    S: ArrayLike,
    lengths: Sequence[int],
    p_MN: ArrayLike,
    windows_MN: ArrayLike | None,
    p_BMN: ArrayLike | None,
    n_documents: int | None,
) -> MeasuredShares:
    """The shares that can be fitted; arguments as in `rbpx.questions.emergence.pooled.fit_pooled`.

    Raises:
        ValueError: if shapes disagree, or a value is impossible.
    """
    S_M, _ = checked(S, lengths, p_BMN, p_MN, windows_MN)
    p_MN = np.asarray(p_MN, dtype=np.float64)
    total_MN = None if windows_MN is None else np.asarray(windows_MN, dtype=np.float64)
    if not np.all(np.isnan(p_MN) | ((p_MN >= 0) & (p_MN <= 1))):
        raise ValueError(f"shares lie from 0 to 1, got {p_MN.tolist()}")
    if total_MN is not None and not np.all((total_MN > 0) | np.isnan(p_MN)):
        raise ValueError(f"a share of no window is NaN, got shares {p_MN.tolist()} of {total_MN.tolist()} windows")
    fits_MN = np.isfinite(p_MN)
    if total_MN is None:
        fits_MN &= (p_MN > 0) & (p_MN < 1)
    used_N = (fits_MN & (p_MN > 0)).any(axis=0) & (fits_MN & (p_MN < 1)).any(axis=0)
    used, (size_C, n_C) = np.flatnonzero(used_N).tolist(), np.nonzero(fits_MN & used_N)
    p_BC = None
    if p_BMN is not None:
        p_BC = np.asarray(p_BMN, dtype=np.float64)[:, size_C, n_C]
        p_BC = p_BC[np.isfinite(p_BC).all(axis=1)]
        p_BC = p_BC if len(p_BC) >= MIN_REPLICATES else None
    windows_C = None if total_MN is None else total_MN[size_C, n_C]
    length_C = np.searchsorted(used, n_C)
    p_C = p_MN[size_C, n_C]
    return MeasuredShares(S_M, p_MN, total_MN, used, size_C, length_C, p_C, windows_C, p_BC, n_documents)


def tally_of(cells: MeasuredShares, p_BC: Floats, count_C: Floats) -> Tally:
    """Shares as counts of independent windows, `count_C` in each cell."""
    count_BC = np.broadcast_to(count_C, p_BC.shape)
    return Tally(cells.x_C, np.ones(len(count_C)), p_BC * count_C, count_BC, np.zeros_like(p_BC), cells.length_C)


def search(cells: MeasuredShares) -> tuple[Floats, float, Floats] | None:
    """The parameters, tau^2, and the counts at which both agree; None where the likelihood has no maximum.

    Args:
        cells: the shares; at least 3 sizes must have one.
    """
    of_documents_C = _excess(cells)
    theta_P = np.zeros(len(cells.used) + 1)
    for at in range(len(cells.used)):
        theta_P[at] = math.log(-math.log(float(cells.p_C[cells.length_C == at].mean())))
    tau2 = 1.0 if cells.windows_C is None else 0.0
    for _ in range(_ROUNDS):
        variance_C = _variance(cells, theta_P, tau2, of_documents_C)
        p_C, _ = _law(cells, theta_P)
        count_C = p_C * (1 - p_C) / variance_C
        count_C *= _LARGEST_COUNT / count_C.max()
        theta_P = climb(tally_of(cells, cells.p_C[None], count_C), theta_P[None]).theta_BP[0]
        if not np.isfinite(theta_P).all():
            return None
        before, tau2 = tau2, _models_variance(cells, theta_P, tau2, of_documents_C)
        if tau2 == 0 and cells.windows_C is None and cells.p_BC is None:
            return theta_P, before, count_C  # the points lie on the law, so their weights do not matter
        if abs(tau2 - before) <= _SETTLED * tau2:
            break
    return theta_P, tau2, count_C


def _law(cells: MeasuredShares, theta_P: Floats) -> tuple[Floats, Floats]:
    """Fitted shares, and their change with ln(-ln p)."""
    y_C = np.exp(theta_P[cells.length_C] - theta_P[-1] * cells.x_C)
    p_C = np.exp(-y_C)
    return p_C, -y_C * p_C


def _excess(cells: MeasuredShares) -> Floats:
    """By cell, how many times as much as shares of independent windows those of its length vary over documents.

    Where the number of windows is unknown: the variance of ln(-ln p) over documents, 0 without documents.
    """
    p_C = cells.p_C
    excess_C = np.zeros(len(p_C)) if cells.windows_C is None else np.ones(len(p_C))
    if cells.p_BC is None:
        return excess_C
    variance_C = few_documents(cells.n_documents) * cells.p_BC.var(axis=0, ddof=1)
    if cells.windows_C is None:
        return np.asarray(variance_C / (p_C * np.log(p_C)) ** 2)
    for at in range(len(cells.used)):
        of_C = cells.length_C == at
        independent = float((p_C * (1 - p_C) / cells.windows_C)[of_C].sum())
        if independent > 0:  # shares that are all 0 or 1 vary neither way
            excess_C[of_C] = max(float(variance_C[of_C].sum()) / independent, 1.0)
    return excess_C


def _variance(cells: MeasuredShares, theta_P: Floats, tau2: float, of_documents_C: Floats) -> Floats:
    """Variance that each share is taken to have."""
    p_C, change_C = _law(cells, theta_P)
    if cells.windows_C is None:
        return np.asarray((of_documents_C + tau2) * change_C**2)
    return np.asarray(p_C * (1 - p_C) * of_documents_C / cells.windows_C + tau2 * change_C**2)


def _models_variance(cells: MeasuredShares, theta_P: Floats, tau2: float, of_documents_C: Floats) -> float:
    """tau^2 by moments: how much the squares about the law exceed what the documents explain.

    Source: DerSimonian and Laird, Controlled Clinical Trials 7 (1986), 177.
    """
    points = points_of(cells, theta_P, tau2, of_documents_C)
    w_C, left_CC = points.weight_C, _left(points, points.pooled_CP)
    observed, expected = float(w_C @ points.residual_C**2), float(w_C @ left_CC**2 @ (1 / w_C - tau2))
    return max((observed - expected) / float((w_C @ left_CC**2).sum()), 0.0)


def points_of(cells: MeasuredShares, theta_P: Floats, tau2: float, of_documents_C: Floats | None = None) -> Cells:
    """The values of ln(-ln p) about the law, to first order in p, with their weights."""
    of_documents_C = _excess(cells) if of_documents_C is None else of_documents_C
    p_C, change_C = _law(cells, theta_P)
    weight_C = change_C**2 / _variance(cells, theta_P, tau2, of_documents_C)
    replicate_BC = None if cells.p_BC is None else (cells.p_BC - cells.p_C) / change_C
    fitted_C = theta_P[cells.length_C] - theta_P[-1] * cells.x_C
    residual_C = (cells.p_C - p_C) / change_C
    of_documents = replicate_BC, cells.n_documents
    return Cells(cells.x_C, cells.length_C, cells.size_C, fitted_C, residual_C, weight_C, *of_documents)
