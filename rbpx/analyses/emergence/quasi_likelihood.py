"""Shares of windows of hits, and the search for the law p = exp(-C_N S^-alpha) that they follow, by quasi-likelihood.

A share p of n windows is taken to vary by p (1 - p) d_N / n + tau^2 (p ln p)^2: d_N is how many times as much as
independent windows the documents make it vary, tau the standard deviation of the models in ln(-ln p). Parameters and
tau are found in turns.

Shapes: M sizes, N window lengths, C cells (each one size and one window length), P parameters (ln C_N at the middle of
the sizes, then alpha), B resamples of the documents.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.analyses.emergence.law import checked
from rbpx.analyses.emergence.misfit import Cells
from rbpx.laws.counts.passing import Tally, climb
from rbpx.laws.intervals.bootstrap import MIN_RESAMPLES
from rbpx.laws.intervals.estimate import few_documents
from rbpx.laws.numeric.arrays import Floats

_ROUNDS: Final = 30  # of fit and variances, each from the other
_SETTLED: Final = 1e-4  # relative change of the variance of the models
_LARGEST_COUNT: Final = 1e6  # counts are scaled to it: only their proportions matter to the estimate


@dataclass(frozen=True, eq=False)
class MeasuredShares:
    """The shares that can be fitted, a cell each, and what they came from."""

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
    """The shares that can be fitted; arguments as in `rbpx.analyses.emergence.pooled.fit_pooled`.

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
        p_BC = p_BC if len(p_BC) >= MIN_RESAMPLES else None
    windows_C = None if total_MN is None else total_MN[size_C, n_C]
    length_C = np.searchsorted(used, n_C)
    p_C = p_MN[size_C, n_C]
    return MeasuredShares(S_M, p_MN, total_MN, used, size_C, length_C, p_C, windows_C, p_BC, n_documents)


def tally_of(cells: MeasuredShares, p_BC: Floats, count_C: Floats) -> Tally:
    """Shares as counts of so many windows that are independent."""
    count_BC = np.broadcast_to(count_C, p_BC.shape)
    return Tally(cells.x_C, np.ones(len(count_C)), p_BC * count_C, count_BC, np.zeros_like(p_BC), cells.length_C)


def search(cells: MeasuredShares) -> tuple[Floats, float, Floats] | None:
    """The parameters, tau^2, and the counts at which both agree; None where the likelihood has no maximum.

    Args:
        cells: of which at least 3 sizes have a share.
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
            return theta_P, before, count_C  # the points lie on the law, so that their weights do not matter
        if abs(tau2 - before) <= _SETTLED * tau2:
            break
    return theta_P, tau2, count_C


def _law(cells: MeasuredShares, theta_P: Floats) -> tuple[Floats, Floats]:
    """Fitted shares, and their change with ln(-ln p)."""
    y_C = np.exp(theta_P[cells.length_C] - theta_P[-1] * cells.x_C)
    p_C = np.exp(-y_C)
    return p_C, -y_C * p_C


def _excess(cells: MeasuredShares) -> Floats:
    """How many times as much as independent windows the shares of each window length vary over documents, each cell.

    Where the number of windows is unknown, the variance over documents of ln(-ln p) instead, 0 without documents.
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
    """tau^2 by moments: what the squares about the law have beyond those that the documents explain.

    Source: DerSimonian and Laird, Controlled Clinical Trials 7 (1986), 177.
    """
    points = points_of(cells, theta_P, tau2, of_documents_C)
    J, w_C = points.pooled_CP, points.weight_C
    left_CC = np.eye(len(w_C)) - J @ np.linalg.solve((J.T * w_C) @ J, J.T * w_C)
    known_C = 1 / w_C - tau2
    observed, expected = float(w_C @ points.residual_C**2), float(w_C @ left_CC**2 @ known_C)
    return max((observed - expected) / float((w_C @ left_CC**2).sum()), 0.0)


def points_of(cells: MeasuredShares, theta_P: Floats, tau2: float, of_documents_C: Floats | None = None) -> Cells:
    """The values of ln(-ln p) about the law, to first order in p."""
    of_documents_C = _excess(cells) if of_documents_C is None else of_documents_C
    p_C, change_C = _law(cells, theta_P)
    weight_C = change_C**2 / _variance(cells, theta_P, tau2, of_documents_C)
    resampled_BC = None if cells.p_BC is None else (cells.p_BC - cells.p_C) / change_C
    fitted_C = theta_P[cells.length_C] - theta_P[-1] * cells.x_C
    residual_C = (cells.p_C - p_C) / change_C
    of_documents = resampled_BC, cells.n_documents
    return Cells(cells.x_C, cells.length_C, cells.size_C, fitted_C, residual_C, weight_C, *of_documents)
