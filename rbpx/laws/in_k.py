"""Fits laws of RBP_k in k: for one model, and jointly for all sizes, -ln RBP_k = C k^-kappa S^-alpha.

The hits at k are among those at every larger k, so the values of one model are correlated. The line is least squares,
as in the paper (arXiv 2510.20387, appendix B, table 1); its error comes from documents resampled at all k at once or
from the covariance of nested counts, scaled by the residuals.

The joint law holds where the exponent in k does not change with S and the mean bend in ln k is 0, with the size as the
unit. Its rivals are compared by a likelihood whose residuals are correlated within a size as exp(-|ln k - ln l| /
reach).

Shapes: N sizes, K values of k, P parameters, B bootstrap replicates of the documents.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np

from rbpx.laws.arguments import level_of
from rbpx.laws.intervals.estimate import (
    LEVEL,
    MIN_REPLICATES,
    Estimate,
    Replicates,
    document_t,
    from_half_width,
    from_stderr,
    half_width,
    student_t,
)
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.laws.power.law import Curvature, PowerLaw, at_level, fit_power_law
from rbpx.laws.power.uncertainty import Uncertainty
from rbpx.laws.prediction.verdict import trend_warnings, with_reasons
from rbpx.status import Status

MIN_K: Final = 4  # in a range: fewer cannot show a bend
_REACHES: Final = np.geomspace(0.05, 200.0, 25)  # of the correlation, in ln k
_BOTH: Final = 2  # tests of a range, each at half the level (Bonferroni)


def fit_k_law(
    k_grid: Sequence[int],
    y_K: Floats,
    y_BK: Floats | None,
    method: Method = Method.ols,
    n_effective: float | None = None,
    level: float = LEVEL,
) -> PowerLaw:
    """Fits -ln RBP_k = C k^(-alpha) for one model, as `fit_power_law` with k in the place of S.

    The interval is over documents; without replicates over "nested counts" as variable as the residuals show. The
    status is bends where the curvature is significant, at .95 whatever the level.
    """
    replicates = None if y_BK is None else Replicates.of(y_BK, n_effective)
    fit, p = at_level(fit_power_law(k_grid, y_K, replicates, method), level), level_of(level)
    theta_P, about = fit.theta_P, fit.uncertainty
    if fit.alpha.value is None or theta_P is None or about is None:
        return with_reasons(fit, [fit.status])
    sd_P, kind = _standard_deviations(fit, about, k_grid, replicates is not None and replicates.suffices)

    def reach(p: float = 1 - LEVEL) -> float:
        return document_t(n_effective, p) if kind == "documents" else student_t(len(y_K) - 2, p)

    ln_C, E = float(theta_P[0]) + fit.alpha.value * math.log(fit.S_ref), fit.E
    of_95, alpha = (from_half_width(fit.alpha.value, float(sd_P[1]) * t, float(sd_P[1])) for t in (reach(), reach(p)))
    C = from_half_width(ln_C, float(sd_P[2]) * reach(p)).exp()
    if E.value is not None:
        E = from_half_width(E.value, float(sd_P[3]) * reach(p)).through(lambda end: min(max(end, 0.0), y_K.min()))
    curvature = curvature_of(k_grid, y_K, replicates)
    reasons = [fit.status, *trend_warnings(of_95)]
    if method is not Method.offset and curvature is not None and curvature.leaves_out_0:
        reasons.append(Status.bends)
    shown = curvature if level == LEVEL else curvature_of(k_grid, y_K, replicates, p)
    of_residuals = Curvature(_autocorrelation(np.array(fit.residuals_ln)), shown)
    law = replace(fit, C=C, alpha=alpha, E=E, interval=kind, limited_by=kind and "text", bend=of_residuals)
    return with_reasons(law, reasons)


def curvature_of(
    k_grid: Sequence[int], y_K: Floats, replicates: Replicates | None, p: float = 1 - LEVEL
) -> Estimate | None:
    """The coefficient of (ln k)^2 in ln y, by least squares, with its interval; None below 4 ranks."""
    x_K = np.log(np.asarray(k_grid, dtype=np.float64))
    if len(x_K) < 4:
        return None
    J_KP = np.vander(x_K - x_K.mean(), 3, increasing=True)
    of_K = np.linalg.pinv(J_KP)[2]
    value = float(of_K @ np.log(y_K))
    if replicates is None:
        covariance_KK, dof = _scaled(y_K, J_KP)
        return from_stderr(value, math.sqrt(float(of_K @ covariance_KK @ of_K)), dof, p)
    if not replicates.suffices:
        return Estimate(value)
    shared = float(replicates.covariance_of(of_K[None])[0, 0])
    return from_half_width(value, half_width(shared, n_effective=replicates.n_effective, p=p))


def nested_covariance(y_K: Floats) -> Floats:
    """The covariance of ln(-ln RBP_k) over samples of one token, to first order, [K, K].

    The hits at j are among those at k > j, so cov(RBP_j, RBP_k) = RBP_j (1 - RBP_k), divided by the derivatives RBP ln
    RBP.
    """
    larger_KK = np.exp(-np.minimum(y_K[:, None], y_K))
    return np.asarray((1 - larger_KK) / (larger_KK * y_K[:, None] * y_K))


def _standard_deviations(
    fit: PowerLaw, about: Uncertainty, k_grid: Sequence[int], knows_text: bool
) -> tuple[Floats, str | None]:
    """Standard deviations of ln C at k_ref, alpha, ln C at k = 1 and E (if fitted), and the kind of interval."""
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
    ln_C, alpha, *E = np.eye(n)
    of_rows = [ln_C, alpha, ln_C + ln_ref * alpha, *E]
    return np.sqrt([float(of_P @ covariance_PP @ of_P) for of_P in of_rows]), kind


def _scaled(y_K: Floats, J_KP: Floats) -> tuple[Floats, int]:
    """Covariance of nested counts, scaled by the residuals of generalised least squares, and degrees of freedom."""
    covariance_KK = nested_covariance(y_K)
    *white_PR, white_R = _whitened(y_K, np.column_stack([J_KP, np.log(y_K)]))
    dof = len(white_R) - len(white_PR)
    if dof < 1:
        return covariance_KK, 0
    white_RP = np.column_stack(white_PR)
    left_R = white_R - white_RP @ np.linalg.lstsq(white_RP, white_R)[0]
    return covariance_KK * float(left_R @ left_R) / dof, dof


def _whitened(y_K: Floats, columns_KP: Floats) -> Floats:
    """Columns whose errors are independent with variance 1, [P, R]; the same RBP at several k is one observation.

    By the covariance of nested counts, y times its error is a random walk in 1 / RBP - 1.
    """
    y_R, at_K, count_R = np.unique(y_K, return_inverse=True, return_counts=True)
    walk_PR = np.array([np.bincount(at_K, column_K) for column_K in columns_KP.T]) / count_R * y_R
    return np.asarray(np.diff(walk_PR, prepend=0.0) / np.sqrt(np.diff(np.expm1(y_R), prepend=0.0)))


def _autocorrelation(residual_K: Floats) -> float | None:
    before_K, after_K = residual_K[:-1], residual_K[1:]
    squares = float(before_K @ before_K) * float(after_K @ after_K)
    return float(before_K @ after_K) / math.sqrt(squares) if squares > 0 else None


class KForm(StrEnum):
    """Forms of -ln RBP_k as a function of k and S.

    `joint`: C k^-kappa S^-alpha. `drifting`: alpha changes with ln k. `levels`: one alpha, a constant at each k.
    """

    joint = "joint"
    drifting = "drifting"
    levels = "levels"
    separate = "separate"


@dataclass(frozen=True)
class FormInK:
    """One form, fitted to all sizes and k.

    Attributes:
        aic: of the correlated likelihood.
        reach: of the correlation, in ln k.
        backtest_error: root mean square of ln predicted - ln measured over k at the largest size, from the others.
    """

    form: KForm
    n_parameters: int
    aic: float
    bic: float
    reach: float
    backtest_error: float | None


@dataclass(frozen=True, eq=False)
class JointLaw:
    """The joint law over a range of k.

    Attributes:
        range: the widest range of k over which the law is not rejected, of `n_ranges` tried.
        of_range: the k that the numbers below cover: those of `range`, or all.
        alpha: exponent in S, the mean over k.
        kappa: exponent in k at the mean of ln S.
        drift: change of alpha per ln k, equal to that of kappa per ln S; 0 where one law holds.
        bend: coefficient of (ln k)^2 in ln y, mean over sizes; so 0 as well. None below 4 k.
        C: at k = 1 and S = 1.
    """

    k_grid: tuple[int, ...]
    range: tuple[int, int] | None
    n_ranges: int
    of_range: tuple[int, ...]
    alpha: PowerLaw
    kappa: Estimate
    drift: Estimate
    bend: Estimate | None
    forms: tuple[FormInK, ...]
    C: float | None

    @property
    def holds(self) -> bool:
        """Whether one law holds over all k that were tried."""
        return self.range == (self.k_grid[0], self.k_grid[-1])


def fit_joint_law(
    S: Sequence[float],
    k_grid: Sequence[int],
    y_NK: Floats,
    y_NBK: Floats | None,
    n_effective: float | None = None,
) -> JointLaw | None:
    """Fits one law to all k, finds the widest range over which it is not rejected, and compares the forms there.

    S and `k_grid` increase. None below 3 different sizes or 3 values of k, or where a share is 0 or 1.
    """
    if len(set(S)) < 3 or len(k_grid) < 3 or not np.all((y_NK > 0) & np.isfinite(y_NK)):
        return None
    ln_y_NBK = None
    if y_NBK is not None:
        usable_B = np.all((y_NBK > 0) & np.isfinite(y_NBK), axis=(0, 2))
        ln_y_NBK = (
            np.log(y_NBK[:, usable_B]) if usable_B.sum() >= MIN_REPLICATES else np.zeros((len(S), 0, len(k_grid)))
        )
    ln_y_NK, x_K = np.log(y_NK), np.log(np.asarray(k_grid, dtype=np.float64))
    ranges = [(a, b) for a in range(len(x_K)) for b in range(a + MIN_K, len(x_K) + 1)]
    ranges.sort(key=lambda ends: (x_K[ends[0]] - x_K[ends[1] - 1], ends))  # the widest first
    found: slice | None = None
    for begin, end in ranges:
        fits = _fits(S, x_K, ln_y_NK, ln_y_NBK, n_effective, slice(begin, end))
        if not any(_rejects(each, len(S)) for each in (fits[1].alpha.times(-1), *map(_level_of, fits[2:]))):
            found = slice(begin, end)
            break
    else:  # the law is rejected over every range, and fitted to all k
        fits = _fits(S, x_K, ln_y_NK, ln_y_NBK, n_effective, slice(None))
    at, (level, drift, *bend) = found or slice(None), fits
    of_range, x_K = tuple(k_grid[at]), x_K[at]
    kappa = _level_of(drift)
    ln_C = None
    if level.alpha.value is not None and kappa.value is not None and level.theta_P is not None:
        ln_C = float(level.theta_P[0] + level.alpha.value * np.log(level.S_ref) + kappa.value * x_K.mean())
    return JointLaw(
        tuple(k_grid),
        None if found is None else (of_range[0], of_range[-1]),
        len(ranges),
        of_range,
        level,
        kappa,
        drift.alpha.times(-1),
        _level_of(bend[0]) if bend else None,
        _compare(np.log(np.asarray(S, dtype=np.float64)), x_K, ln_y_NK[:, at]),
        exp_or_none(ln_C),
    )


def _fits(
    S: Sequence[float],
    x_K: Floats,
    ln_y_NK: Floats,
    ln_y_NBK: Floats | None,
    n_effective: float | None,
    at: slice,
) -> list[PowerLaw]:
    """Fits lines in ln S to the level, exponent in k and, from 4 k on, bend of each size (as laws of their exp)."""
    about_K = x_K[at] - x_K[at].mean()
    design_KP = np.vander(about_K, 3, increasing=True)
    line_PK = np.linalg.pinv(design_KP[:, :2])
    rows = [line_PK[0], -line_PK[1]]
    if len(about_K) >= MIN_K:
        rows.append(np.linalg.pinv(design_KP)[2])
    fits = []
    for row_K in rows:
        replicates = None
        if ln_y_NBK is not None:
            replicates = Replicates.of_logarithms((ln_y_NBK[:, :, at] @ row_K).T, n_effective)
        fits.append(fit_power_law(S, np.exp(ln_y_NK[:, at] @ row_K), replicates, backtests=False))
    return fits


def _level_of(fit: PowerLaw) -> Estimate:
    if fit.theta_P is None:
        return Estimate()
    value = float(fit.theta_P[0])
    return Estimate(value, *(fit.uncertainty.interval(value, np.eye(2)[0]) if fit.uncertainty else ()))


def _rejects(estimate: Estimate, n_sizes: int) -> bool:
    """Whether an interval, widened for two tests at once (Bonferroni), excludes 0."""
    if estimate.ends is None:
        return False
    (lo, hi), dof = estimate.ends, n_sizes - 2
    wider = student_t(dof, (1 - LEVEL) / _BOTH) / student_t(dof)
    middle, half = (lo + hi) / 2, (hi - lo) / 2 * wider
    return not middle - half <= 0 <= middle + half


def _compare(ln_S_N: Floats, x_K: Floats, ln_y_NK: Floats) -> tuple[FormInK, ...]:
    smaller = ln_S_N < ln_S_N.max()
    forms = []
    for form in KForm:
        n_parameters = _design(form, ln_S_N[:1], x_K)[0].shape[1]
        if n_parameters >= ln_y_NK.size:
            continue
        loglik, reach, _ = _fit(form, ln_S_N, x_K, ln_y_NK)
        m = n_parameters + 2  # the scatter and its reach
        error = None
        if len(np.unique(ln_S_N[smaller])) >= 3:
            _, _, theta_P = _fit(form, ln_S_N[smaller], x_K, ln_y_NK[smaller])
            left_NK = ln_y_NK[~smaller] - _design(form, ln_S_N[~smaller], x_K) @ theta_P
            error = float(np.sqrt(np.mean(left_NK**2)))
        forms.append(
            FormInK(form, n_parameters, 2 * m - 2 * loglik, m * float(np.log(ln_y_NK.size)) - 2 * loglik, reach, error)
        )
    return tuple(forms)


def _design(form: KForm, ln_S_N: Floats, x_K: Floats) -> Floats:
    """Derivatives of ln y by the parameters of a form, [N, K, P]."""
    x_NK, s_NK = np.broadcast_arrays(x_K - x_K.mean(), ln_S_N[:, None])
    if form in (KForm.joint, KForm.drifting):
        drift = [-x_NK * s_NK] if form is KForm.drifting else []
        return np.stack([np.ones_like(x_NK), -x_NK, -s_NK, *drift], axis=-1)
    own_NKK = np.broadcast_to(np.eye(len(x_K)), (len(ln_S_N), len(x_K), len(x_K)))
    if form is KForm.levels:
        return np.concatenate([own_NKK, -s_NK[..., None]], axis=-1)
    return np.concatenate([own_NKK, -own_NKK * s_NK[..., None]], axis=-1)


def _fit(form: KForm, ln_S_N: Floats, x_K: Floats, ln_y_NK: Floats) -> tuple[float, float, Floats]:
    """The largest log-likelihood over the reach of the correlation, that reach, and the parameters of the mean."""
    design_NKP = _design(form, ln_S_N, x_K)
    best: tuple[float, float, Floats] = (-np.inf, 0.0, np.zeros(design_NKP.shape[-1]))
    for reach in _REACHES:
        root_KK = np.linalg.cholesky(np.exp(-np.abs(x_K[:, None] - x_K) / reach))
        white_KK, ln_det = np.linalg.inv(root_KK), 2 * float(np.log(np.diag(root_KK)).sum())
        white_XP = (white_KK @ design_NKP).reshape(-1, design_NKP.shape[-1])
        white_X = (ln_y_NK @ white_KK.T).ravel()
        theta_P: Floats = np.asarray(np.linalg.lstsq(white_XP, white_X, rcond=None)[0], dtype=np.float64)
        variance = float(np.mean((white_X - white_XP @ theta_P) ** 2))
        if variance <= 0:
            continue
        loglik = -ln_y_NK.size / 2 * (np.log(2 * np.pi * variance) + 1) - len(ln_S_N) / 2 * ln_det
        if loglik > best[0]:
            best = (float(loglik), float(reach), theta_P)
    return best
