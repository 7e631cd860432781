"""Fits the pooled law of emergence to counts of windows: one exponent for all window lengths, a constant for each.

p_{N,k} = exp(-C_N S^(-alpha)). Dependent hits make C_N grow more slowly than N; the joint law C N S^(-alpha) turns that
into a steeper exponent where the small sizes lack their long windows. Counts are fitted, because a size without a
window of N hits is informative but has no ln(-ln p).

Search. The variance of a share p of n windows is p (1 - p) d_N / n + tau^2 (p ln p)^2. d_N, at least 1, is the variance
over documents relative to that of independent windows, one for each window length; tau is the standard deviation of the
models in ln(-ln p), by moments. Parameters and tau are found in turns. The interval takes the documents from one Newton
step for each replicate at fixed weights, and the models from the scatter of the sizes (`rbpx.laws.counts.passing`), so
wrong weights do not bias it.

Tests. Each is a linear function of the values ln(-ln p) of the cells. Errors at one size are correlated to an unknown
degree, as windows of different N are of the same model on the same tokens, so only sums of errors within a size are
taken to be independent. Sums of residuals are smaller than sums of errors; a working covariance within a size gives the
factors and the degrees of freedom. For one window length that is Student's t of least squares.

Source: Bell and McCaffrey, Survey Methodology 28 (2002), 169; Satterthwaite, Biometrics Bulletin 2 (1946), 110.
Shapes: M sizes, N window lengths, C cells (each one size and one window length), P parameters (ln C_N at the middle of
the sizes, then alpha), B bootstrap replicates of the documents.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from rbpx.laws.counts.passing import PassCounts, Scatter, maximise_likelihood, model_scatter, separated, slopes
from rbpx.laws.intervals.estimate import (
    LEVEL,
    MIN_REPLICATES,
    Estimate,
    few_documents,
    from_half_width,
    half_width,
    student_t,
)
from rbpx.laws.names import MLE
from rbpx.laws.numeric import Floats
from rbpx.laws.power.intervals import holm
from rbpx.laws.power.law import LawFit
from rbpx.laws.prediction.verdict import trend_warnings
from rbpx.questions.emergence.laws import WindowsLaw, listed
from rbpx.status import Status, first_of, in_order

EQUATION: Final = "-ln p_N = C_N * S^(-alpha), quasi-likelihood of the counts of windows of hits"
SOURCE: Final = "RBP paper, arXiv 2510.20387, eqs. 6-8, with a constant for each N; Wedderburn, Biometrika 1974"
_ALIKE: Final = 0.5  # working correlation of the errors of a size
_LEAST_SEEN: Final = 0.5  # part of the error variance of one size that residuals must show
_ROUNDING: Final = 1e-8  # of ln(-ln p); smaller residuals are rounding
_LEAST_CELLS: Final = 3  # for an exponent of a window length
_ROUNDS: Final = 30  # of fitting parameters and variances in turn
_SETTLED: Final = 1e-4  # relative change of the variance of the models
_LARGEST_COUNT: Final = 1e6  # counts are scaled to it; only their proportions matter


@dataclass(frozen=True, eq=False)
class WindowCells:
    """The shares to fit.

    Attributes:
        x_C: ln(S / S_ref).
        size_C: index of the size.
        length_C: index of the window length among those that are fitted.
        p_C: the share.
        windows_C: number of windows; None where unknown.
        p_BC: the shares in each replicate; None without replicates, or with too few.
        n_effective: effective sample size of the documents; None where they are not counted.
    """

    x_C: Floats
    size_C: NDArray[np.intp]
    length_C: NDArray[np.intp]
    p_C: Floats
    windows_C: Floats | None
    p_BC: Floats | None
    n_effective: float | None

    @cached_property
    def design_CP(self) -> Floats:
        """Derivatives of ln(-ln p) with respect to the constants and the exponent."""
        return np.column_stack([np.eye(int(self.length_C.max()) + 1)[self.length_C], -self.x_C])

    def law(self, theta_P: Floats) -> tuple[Floats, Floats]:
        """Returns fitted shares, and their derivatives with respect to ln(-ln p)."""
        y_C = np.exp(self.design_CP @ theta_P)
        return np.exp(-y_C), -y_C * np.exp(-y_C)

    def tally(self, p_BC: Floats, count_C: Floats) -> PassCounts:
        """Shares as counts of independent windows, `count_C` in each cell."""
        count_BC = np.broadcast_to(count_C, p_BC.shape)
        return PassCounts(self.x_C, np.ones(len(count_C)), p_BC * count_C, count_BC, np.zeros_like(p_BC), self.length_C)

    @cached_property
    def excess_C(self) -> Floats:
        """Variance of the shares over documents relative to that of independent windows, one value for each length.

        Where the number of windows is unknown: the variance of ln(-ln p) over documents, 0 without documents.
        """
        excess_C = np.zeros(len(self.p_C)) if self.windows_C is None else np.ones(len(self.p_C))
        if self.p_BC is None:
            return excess_C
        variance_C = few_documents(self.n_effective) * self.p_BC.var(axis=0, ddof=1)
        if self.windows_C is None:
            return np.asarray(variance_C / (self.p_C * np.log(self.p_C)) ** 2)
        independent_C = self.p_C * (1 - self.p_C) / self.windows_C
        of_documents_N, independent_N = (np.bincount(self.length_C, of_C) for of_C in (variance_C, independent_C))
        times_N = np.ones(len(independent_N))  # shares that are all 0 or 1 vary neither way
        np.divide(of_documents_N, independent_N, out=times_N, where=independent_N > 0)
        return np.maximum(times_N, 1.0)[self.length_C]

    def values(self, theta_P: Floats, tau2: float) -> "CellValues":
        """Returns ln(-ln p) about the law, to first order in p, so that it exists for a share of 0 too."""
        p_C, change_C = self.law(theta_P)
        if self.windows_C is None:
            variance_C = (self.excess_C + tau2) * change_C**2
        else:
            variance_C = p_C * (1 - p_C) * self.excess_C / self.windows_C + tau2 * change_C**2
        change_BC = None if self.p_BC is None else (self.p_BC - self.p_C) / change_C
        return CellValues(
            self, self.design_CP @ theta_P, (self.p_C - p_C) / change_C, change_C**2 / variance_C, change_BC
        )


Contrasts = dict[str, dict[str, float | None]]  # numbers that are 0 if the law holds, with interval and p, by name


def significant(contrasts: Contrasts, questions: int = 1) -> list[str]:
    """Returns the contrasts that differ from 0 by Holm's test, at the level of one of `questions` tests."""
    adjusted = holm([one["p"] or 0.0 for one in contrasts.values()])
    return [name for name, p in zip(contrasts, adjusted, strict=True) if p <= (1 - LEVEL) / questions]


@dataclass(frozen=True, eq=False)
class CellValues:
    """Values of ln(-ln p) of the cells, and tests of the law fitted to them.

    Attributes:
        cells: the shares.
        fitted_C: by the law.
        residual_C: measured minus fitted.
        weight_C: inverse variance of each value.
        change_BC: the residuals of each replicate; None without replicates.
    """

    cells: WindowCells
    fitted_C: Floats
    residual_C: Floats
    weight_C: Floats
    change_BC: Floats | None

    def sensitivity(self, J_CP: Floats) -> Floats:
        """Returns the derivative of each parameter with respect to each value: (J' W J)^-1 J' W."""
        return np.asarray(np.linalg.solve((J_CP.T * self.weight_C) @ J_CP, J_CP.T * self.weight_C))

    def left(self, J_CP: Floats) -> Floats:
        """Returns the matrix that maps values to residuals, [C, C]."""
        return np.asarray(np.eye(len(J_CP)) - J_CP @ self.sensitivity(J_CP))

    def models_variance(self, tau2: float) -> float:
        """Returns tau^2 by moments: the excess of squared residuals over what the documents explain.

        Source: DerSimonian and Laird, Controlled Clinical Trials 7 (1986), 177.
        """
        w_C, left_CC = self.weight_C, self.left(self.cells.design_CP)
        observed, expected = float(w_C @ self.residual_C**2), float(w_C @ left_CC**2 @ (1 / w_C - tau2))
        return max((observed - expected) / float((w_C @ left_CC**2).sum()), 0.0)

    def exponents(self, lengths: Sequence[int]) -> Contrasts:
        """Returns the exponent of each window length with 3 sizes or more, minus the pooled exponent."""
        J_CP, x_C = self.cells.design_CP, self.cells.x_C
        at_CN = J_CP[:, :-1]
        compared = np.flatnonzero(at_CN.sum(axis=0) >= _LEAST_CELLS).tolist()
        own_CP = np.column_stack([at_CN, -x_C[:, None] * at_CN[:, compared]])
        if len(compared) < len(lengths):
            own_CP = np.column_stack([own_CP, -x_C * (1 - at_CN[:, compared].sum(axis=1))])
        apart_PC = self.sensitivity(own_CP)[len(lengths) :] - self.sensitivity(J_CP)[-1]
        names = [f"alpha at N = {lengths[at]}" for at in compared] if len(compared) > 1 else []
        return {name: self.contrast(own_CP, of_C) for name, of_C in zip(names, apart_PC, strict=False)}

    def bends(self, lengths: Sequence[int]) -> list[Contrasts]:
        """Returns changes of the exponent per unit of ln N, and half of those per unit of ln S, where there are enough.

        Each is the coefficient of one more column in the regression.
        """
        x_C, ln_N_C = self.cells.x_C, np.log(lengths)[self.cells.length_C]
        columns = {"drift": -x_C * (ln_N_C - ln_N_C.mean())} if len(lengths) > 1 else {}
        columns |= {"curvature": x_C**2} if len(np.unique(self.cells.size_C)) > 3 else {}
        designs = {name: np.column_stack([self.cells.design_CP, column_C]) for name, column_C in columns.items()}
        return [{name: self.contrast(J_CP, self.sensitivity(J_CP)[-1])} for name, J_CP in designs.items()]

    def growth(self, lengths: Sequence[int]) -> Contrasts:
        """Returns the distance of each constant from N times one constant; 0 at every N if tokens were independent."""
        J_CP = self.cells.design_CP
        of_constant_NC, total_N = self.sensitivity(J_CP)[:-1], self.weight_C @ J_CP[:, :-1]
        share_N, ln_N_N = total_N / total_N.sum(), np.log(lengths)
        each = zip(of_constant_NC - share_N @ of_constant_NC, ln_N_N - share_N @ ln_N_N, strict=True)
        names = [f"constant at N = {N}" for N in lengths] if len(lengths) > 1 else []
        return {name: self.contrast(J_CP, *of) for name, of in zip(names, each, strict=False)}

    def contrast(self, J_CP: Floats, of_C: Floats, expected: float = 0.0) -> dict[str, float | None]:
        """Returns the sum of `of_C` times the values, minus what is expected, with its 95 % interval and p-value.

        The interval is over documents and models; the residuals are those of the regression on J.
        """
        size_C, n_effective, shared, own = self.cells.size_C, self.cells.n_effective, 0.0, 0.0
        alike_CC = np.where(size_C[:, None] == size_C, _ALIKE, 0.0) + (1 - _ALIKE) * np.eye(len(J_CP))
        guess_CC = alike_CC / np.sqrt(np.outer(self.weight_C, self.weight_C))
        sums_MC = np.eye(int(size_C.max()) + 1)[size_C].T * of_C
        variance_M = np.einsum("mc,cd,md->m", sums_MC, guess_CC, sums_MC)
        known_M = variance_M > 0  # the contrast does not depend on the other sizes
        left_MC = sums_MC[known_M] / np.sqrt(variance_M[known_M, None]) @ self.left(J_CP)
        seen_MM = left_MC @ guess_CC @ left_MC.T
        seen, value = float(np.trace(seen_MM)), float(of_C @ (self.fitted_C + self.residual_C)) - expected
        if seen < _LEAST_SEEN:  # the regression passes through the sums
            return {**Estimate(value).record(), "p": 1.0}
        scale, dof = float(variance_M.sum()) / seen, seen**2 / float(np.sum(seen_MM**2))
        scatter = math.sqrt(scale * float(np.sum((left_MC @ self.residual_C) ** 2)))
        if self.change_BC is not None:
            centred_BC = math.sqrt(few_documents(n_effective)) * (self.change_BC - self.change_BC.mean(axis=0))
            own = scale * float(np.mean(np.sum((centred_BC @ left_MC.T) ** 2, axis=1)))
            shared = max(float(np.var(centred_BC @ of_C, ddof=1)) - own, 0.0)
        half, p = half_width(shared, scatter, dof, math.sqrt(own), n_effective=n_effective), 1.0
        if float(np.abs(self.residual_C).max()) >= _ROUNDING:
            p = 2 * float(stdtr(dof, -abs(value) / half * student_t(dof))) if half > 0 else float(value == 0)
        return {**from_half_width(value, half).record(), "p": p}


def _cells(
    S: Floats, p_MN: Floats, windows_MN: Floats | None, p_BMN: Floats | None, n_effective: float | None
) -> tuple[WindowCells, NDArray[np.intp]]:
    fits_MN = np.isfinite(p_MN) if windows_MN is not None else (p_MN > 0) & (p_MN < 1)
    used_N = (fits_MN & (p_MN > 0)).any(axis=0) & (fits_MN & (p_MN < 1)).any(axis=0)
    used, (size_C, n_C) = np.flatnonzero(used_N), np.nonzero(fits_MN & used_N)
    p_BC = None
    if p_BMN is not None:
        p_BC = p_BMN[:, size_C, n_C]
        p_BC = p_BC[np.isfinite(p_BC).all(axis=1)]
        p_BC = p_BC if len(p_BC) >= MIN_REPLICATES else None
    windows_C = None if windows_MN is None else windows_MN[size_C, n_C]
    x_C, length_C = (np.log(S) - np.log(S).mean())[size_C], np.searchsorted(used, n_C)
    return WindowCells(x_C, size_C, length_C, p_MN[size_C, n_C], windows_C, p_BC, n_effective), used


def _search(S: Floats, cells: WindowCells) -> tuple[Floats, float, Floats] | Status:
    """Finds the parameters, tau^2, and the counts at which both agree; returns a status where there are none."""
    if len(np.unique(S)) < 3:
        return Status.too_few_sizes
    if len(np.unique(cells.x_C)) < 3:
        return Status.not_positive
    if separated(cells.tally(cells.p_C[None], np.ones(len(cells.p_C)))).all():
        return Status.separated
    mean_N = np.bincount(cells.length_C, cells.p_C) / np.bincount(cells.length_C)
    theta_P, tau2 = np.append(np.log(-np.log(mean_N)), 0.0), 1.0 if cells.windows_C is None else 0.0
    for _ in range(_ROUNDS):
        p_C, change_C = cells.law(theta_P)
        count_C = p_C * (1 - p_C) * cells.values(theta_P, tau2).weight_C / change_C**2
        count_C *= _LARGEST_COUNT / count_C.max()
        theta_P = maximise_likelihood(cells.tally(cells.p_C[None], count_C), theta_P[None]).theta_BP[0]
        if not np.isfinite(theta_P).all():
            return Status.not_converged
        before, tau2 = tau2, cells.values(theta_P, tau2).models_variance(tau2)
        if tau2 == 0 and cells.windows_C is None and cells.p_BC is None:
            return theta_P, before, count_C  # the points lie on the law, so their weights do not matter
        if abs(tau2 - before) <= _SETTLED * tau2:
            break
    return theta_P, tau2, count_C


def _scatter(cells: WindowCells, theta_P: Floats, count_C: Floats) -> Scatter:
    """Returns the scatter of the parameters, over documents (one Newton step for each replicate) and over models."""
    at = slopes(theta_P[None], cells.tally(cells.p_C[None], count_C))
    fisher_PP = np.linalg.inv(at.information_BPP[0])
    if cells.p_BC is None:  # then all scatter is that of models
        return model_scatter(cells.x_C, at, fisher_PP, (at, np.zeros_like(fisher_PP)))
    at_B = slopes(np.repeat(theta_P[None], len(cells.p_BC), axis=0), cells.tally(cells.p_BC, count_C))
    replicates = at_B, np.cov(at_B.score_BP @ fisher_PP, rowvar=False)
    return model_scatter(cells.x_C, at, fisher_PP, replicates, cells.n_effective)


def fit_pooled(
    S: Floats,
    lengths: Sequence[int],
    p_MN: Floats,
    windows_MN: Floats | None = None,
    p_BMN: Floats | None = None,
    n_effective: float | None = None,
) -> WindowsLaw:
    """Fits p_N = exp(-C_N S^-alpha) by quasi-likelihood to overdispersed counts of windows.

    The interval of alpha includes the documents (where known) and the scatter of the models: the windows of one size
    count as one observation of its model.

    Args:
        S: sizes, shape [M]; equal ones are replicates, models of one size.
        lengths: window lengths N.
        p_MN: measured shares of windows of hits; NaN where there is no window.
        windows_MN: number of windows of each share; None where unknown, and then shares of 0 and 1 are left out.
        p_BMN: the shares in each replicate; one in which a fitted share is NaN is left out.
        n_effective: effective sample size of the documents; None where they are not counted.

    Returns:
        The fit. Its status is too_few_sizes below 3 sizes; not_positive where no window length has both windows of hits
        and others, or fewer than 3 sizes have a share; separated where any steep law fits; not_converged; and with
        numbers no_trend, bends, barely_determined or ok. A window length with only windows of hits, or none, has no
        constant. Its
        params: `C`, the constants at S = 1; `equal`, the tests for one exponent and straight lines, `bent` those that
            reject; `independent`, the tests for constants that grow as N, `dependent` those that reject.
    """
    cells, at = _cells(S, p_MN, windows_MN, p_BMN, n_effective)
    interval = ("models" if p_BMN is None else None) if cells.p_BC is None else "documents and models"
    params: dict[str, Any] = {"equation": EQUATION, "source": SOURCE, "method": MLE, "interval": interval}
    params |= {"S": S.tolist(), "lengths": list(lengths), "p": listed(p_MN)}
    params |= {"windows": None if windows_MN is None else listed(windows_MN)}
    params |= {"n_left_out": p_MN.size - len(cells.x_C), "n_sizes": len(np.unique(cells.size_C))}
    found = _search(S, cells)
    if isinstance(found, Status):
        fit = LawFit(n_points=len(cells.x_C), status=found, S=S.tolist())
        return WindowsLaw(fit, params | {"interval": None}, [found])
    theta_P, tau2, count_C = found
    scatter, of_PP, used = _scatter(cells, theta_P, count_C), np.eye(len(theta_P)), [lengths[n] for n in at]

    def estimate(of_P: Floats) -> Estimate:
        found = from_half_width(float(of_P @ theta_P), math.inf if interval is None else scatter.half_width(of_P))
        return replace(found, stderr=math.sqrt(scatter.variance_of(of_P)))

    values, alpha = cells.values(theta_P, tau2), estimate(of_PP[-1])
    contrasts, growth = [each for each in (*values.bends(used), values.exponents(used)) if each], values.growth(used)
    bent = [name for each in contrasts for name in significant(each, len(contrasts))]
    reasons = in_order([*trend_warnings(alpha.value, alpha.lo, alpha.hi), *([Status.bends] if bent else [])])
    S_ref, counts_MN = math.exp(float(np.log(S).mean())), np.full(p_MN.shape, np.nan)
    counts_MN[cells.size_C, at[cells.length_C]] = count_C
    ln_C_N = dict(zip(used, theta_P[:-1].tolist(), strict=True))
    constants = [estimate(of_P + math.log(S_ref) * of_PP[-1]).exp() for of_P in of_PP[:-1]]
    params |= {"models_sd": None if scatter.variance is None else math.sqrt(scatter.variance), "S_ref": S_ref}
    params |= {"counts": listed(counts_MN), "ln_C_ref": {str(N): ln_C for N, ln_C in ln_C_N.items()}}
    params |= {"C": {str(N): C.record() for N, C in zip(used, constants, strict=True)}}
    params |= {"equal": {name: one for each in contrasts for name, one in each.items()}, "bent": bent}
    params |= {"independent": growth, "dependent": significant(growth)}
    fit = LawFit(alpha=alpha, n_points=len(cells.x_C), status=first_of(reasons), S=S.tolist())
    regions, region_PP = {}, scatter.region_PP()
    if interval is not None:
        regions = {N: region_PP[np.ix_([n, -1], [n, -1])] for n, N in enumerate(used)}
    return WindowsLaw(fit, params, reasons, S_ref, ln_C_N, regions, float(scatter.sequences_PP[-1, -1]))
