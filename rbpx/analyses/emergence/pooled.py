"""The pooled law of emergence: one exponent for all window lengths, a constant for each, fitted to counts of windows.

p_{N,k} = exp(-C_N S^(-alpha)). Hits that depend on each other make C_N grow slower than N, which the joint law C N
S^(-alpha) takes for a steeper exponent where the small sizes lack their long windows. Counts rather than logarithms are
fitted, because a size at which no window of N tokens is all hits says much about S, and has no ln(-ln p).

Shapes: M sizes, N window lengths, C cells (each one size and one window length), P parameters (the constants, then
alpha), B resamples of the documents.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.analyses.emergence.misfit import Cells, Contrast, curvature, drift, exponents, growth, significant
from rbpx.laws.bootstrap import MIN_RESAMPLES
from rbpx.laws.exponential import exp_or_none
from rbpx.laws.interval import Estimate, around
from rbpx.laws.model_scatter import Scatter, model_scatter
from rbpx.laws.passing import Slopes, Tally, climb, separated, slopes
from rbpx.laws.trend import names_of, trend_doubts
from rbpx.status import Status, first_of

__all__ = ["EQUATION", "SOURCE", "PooledFit", "fit_pooled"]

EQUATION: Final = "-ln p_N = C_N * S^(-alpha), quasi-likelihood of the counts of windows of hits"
SOURCE: Final = "RBP paper, arXiv 2510.20387, eqs. 6-8, with a constant for each N; Wedderburn, Biometrika 1974"

Floats = NDArray[np.float64]

_ROUNDS: Final = 30  # of fit and variances, each from the other
_SETTLED: Final = 1e-4  # relative change of the variance of the models
_LARGEST_COUNT: Final = 1e6  # counts are scaled to it: only their proportions matter to the estimate


@dataclass(frozen=True, eq=False)
class PooledFit:
    """A law -ln p_N = C_N * S^(-alpha) with one exponent; numbers are None where the status says that there is no fit.

    alpha_lo and alpha_hi are a 95 % interval that includes document sampling (where documents are known) and the
    scatter of the models: the windows of one size count as one observation of its model. It is centred on alpha.

    Attributes:
        constants: C_N at S = 1 by window length, None where it is outside the range of a float. A window length of
            which no window is all hits, or every one, has none.
        alphas: exponent of each window length by itself, from the same counts.
        contrasts: what would be 0 if one exponent served all, and the points lay on lines, by question: does the
            exponent drift with N, is that of one N another, do the points curve. Those that differ from 0 are in
            `bent`.
        growth: ln C_N against ln N plus the same constant; those that differ from 0 are in `dependent`, and say that
            the joint law C N S^-alpha does not hold.
        models_sd: standard deviation in ln(-ln p) of a model about its law.
        n_points: cells that were fitted; n_left_out: those that were not.
        params: equation, source, S, lengths, p, windows (None where they are unknown), counts (what each share counts
            for in the likelihood, in proportion to independent windows), S_ref, ln_C_ref by window length, uncertainty
            (`Scatter`), interval ("documents and models", "models" or None), reasons.
    """

    alpha: float | None
    alpha_stderr: float | None
    alpha_lo: float | None
    alpha_hi: float | None
    constants: dict[int, Estimate]
    alphas: dict[int, Estimate]
    contrasts: tuple[tuple[Contrast, ...], ...]
    growth: tuple[Contrast, ...]
    models_sd: float | None
    n_points: int
    n_left_out: int
    n_sizes: int
    status: Status
    params: dict[str, Any]

    @property
    def bent(self) -> list[Contrast]:
        """What says that one exponent does not serve, or that the points do not lie on lines."""
        return [one for each in self.contrasts for one in significant(each, len(self.contrasts))]

    @property
    def dependent(self) -> list[Contrast]:
        """The constants that do not grow with N."""
        return significant(self.growth)

    @property
    def reasons(self) -> list[Status]:
        """Every status that holds."""
        return [Status(reason) for reason in self.params["reasons"]]


def fit_pooled(
    S: ArrayLike,
    lengths: Sequence[int],
    p_MN: ArrayLike,
    windows_MN: ArrayLike | None = None,
    p_BMN: ArrayLike | None = None,
) -> PooledFit:
    """Fit p_N = exp(-C_N S^-alpha) by quasi-likelihood: counts that vary more than independent windows do.

    A share p of n windows is taken to vary by p (1 - p) d_N / n + tau^2 (p ln p)^2: d_N is how many times as much as
    independent windows the documents make it vary, from the resamples, one for each window length, at least 1; tau is
    the standard deviation of the models in ln(-ln p), by moments. Fit and tau are found in turns. The weights need not
    be right for the estimate or its interval, which takes the documents from refits to their resamples (one Newton
    step, as the weights stay) and the models from the scatter of the sizes (`rbpx.laws.model_scatter`).

    Args:
        S: non-embedding parameters, shape [M], positive and all different.
        lengths: window lengths N, tokens, all different.
        p_MN: measured shares of windows of hits, shape [M, N]; NaN where there is no window.
        windows_MN: how many windows each share is of, shape [M, N]; None where that is unknown, and then shares of 0
            and 1 say nothing and are left out.
        p_BMN: the shares under B resamples of the documents, shape [B, M, N]. A resample in which a share that was
            fitted is NaN is left out.

    Returns:
        The fit. Its status is too_few_sizes below 3 sizes, not_positive where every window length has only windows of
        hits or only others, or fewer than 3 sizes have a share, separated where any steep law fits, not_converged
        where the search fails; with numbers no_trend, bends, barely_determined or ok, every one that holds in
        params["reasons"].

    Raises:
        ValueError: if shapes disagree, or a value is impossible.
    """
    cells = _checked(S, lengths, p_MN, windows_MN, p_BMN)
    params: dict[str, Any] = {"equation": EQUATION, "source": SOURCE, "method": "mle", "interval": None}
    params |= {"S": cells.S_M.tolist(), "lengths": list(lengths), "p": _plain(cells.p_MN), "reasons": []}
    params |= {"windows": None if cells.windows_MN is None else _plain(cells.windows_MN)}
    n_sizes = len(np.unique(cells.size_C))
    counts = {"n_points": len(cells.p_C), "n_left_out": cells.p_MN.size - len(cells.p_C), "n_sizes": n_sizes}
    if len(cells.S_M) < 3:
        return _without_numbers(counts, Status.too_few_sizes, params)
    if n_sizes < 3:
        return _without_numbers(counts, Status.not_positive, params)
    if separated(_tally(cells, cells.p_C[None], np.ones(len(cells.p_C)))).all():
        return _without_numbers(counts, Status.separated, params)
    search = _search(cells)
    if search is None:
        return _without_numbers(counts, Status.not_converged, params)
    theta_P, tau2, count_C = search
    tally = _tally(cells, cells.p_C[None], count_C)
    at = slopes(theta_P[None], tally)
    fisher_PP = np.linalg.inv(at.information_BPP[0])
    scatter = _scatter(cells, at, theta_P, fisher_PP, count_C)
    points, used = _points(cells, theta_P, tau2), [lengths[n] for n in cells.used]
    alphas, apart = exponents(points, used)
    contrasts = [tuple(each) for each in (drift(points, used), apart, curvature(points)) if each]
    bent = [one for each in contrasts for one in significant(each, len(contrasts))]
    has_interval = p_BMN is None or cells.p_BC is not None
    of_alpha_P = np.eye(len(theta_P))[-1]
    half = scatter.half_width(of_alpha_P)
    alpha = float(theta_P[-1])
    lo, hi = around(alpha, half) if has_interval else (None, None)
    ln_S_ref = float(np.log(cells.S_M).mean())
    params |= {
        "S_ref": math.exp(ln_S_ref),
        "counts": _plain(_table(cells, count_C)),
        "ln_C_ref": dict(zip(map(str, used), theta_P[:-1].tolist(), strict=True)),
        "uncertainty": scatter.record(),
        "interval": ("models" if cells.p_BC is None else "documents and models") if has_interval else None,
        "equal": {one.name: {**vars(one.estimate), "p": one.p} for each in contrasts for one in each},
        "bent": [one.name for one in bent],
    }
    independence = growth(points, used)
    params["independent"] = {one.name: {**vars(one.estimate), "p": one.p} for one in independence}
    params["alphas"] = {str(n): vars(one) for n, one in alphas.items()}
    reasons = [*trend_doubts(alpha, lo, hi), *([Status.bends] if bent else [])]
    params["reasons"] = names_of(reasons)
    return PooledFit(
        alpha=alpha,
        alpha_stderr=math.sqrt(scatter.variance_of(of_alpha_P)),
        alpha_lo=lo,
        alpha_hi=hi,
        constants=_constants(theta_P, scatter if has_interval else None, ln_S_ref, used),
        alphas=alphas,
        contrasts=tuple(contrasts),
        growth=tuple(independence),
        models_sd=None if scatter.variance is None else math.sqrt(scatter.variance),
        **counts,
        status=first_of(reasons),
        params=params,
    )


@dataclass(frozen=True, eq=False)
class _Measured:
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

    @property
    def x_C(self) -> Floats:
        """ln(S / S_ref)."""
        ln_S_M = np.log(self.S_M)
        return np.asarray((ln_S_M - ln_S_M.mean())[self.size_C])


def _checked(
    S: ArrayLike, lengths: Sequence[int], p_MN: ArrayLike, windows_MN: ArrayLike | None, p_BMN: ArrayLike | None
) -> _Measured:
    S_M, N_N, p_MN = (np.asarray(each, dtype=np.float64) for each in (S, lengths, p_MN))
    for name, values in (("sizes", S_M), ("window lengths", N_N)):
        if values.ndim != 1 or not np.all((values > 0) & np.isfinite(values)) or len(np.unique(values)) != len(values):
            raise ValueError(f"{name} must be positive and all different, got {values.tolist()}")
    shape = (len(S_M), len(N_N))
    total_MN = None if windows_MN is None else np.asarray(windows_MN, dtype=np.float64)
    p_BMN = None if p_BMN is None else np.asarray(p_BMN, dtype=np.float64)
    shapes = [None if each is None else each.shape[-2:] for each in (p_MN, total_MN, p_BMN)]
    if any(each not in (None, shape) for each in shapes):
        raise ValueError(f"shares, windows and resamples have shapes {shapes}, expected {shape}")
    if not np.all(np.isnan(p_MN) | ((p_MN >= 0) & (p_MN <= 1))):
        raise ValueError(f"shares lie from 0 to 1, got {p_MN.tolist()}")
    if total_MN is not None and not np.all((total_MN > 0) | np.isnan(p_MN)):
        raise ValueError(f"a share of no window is NaN, got shares {p_MN.tolist()} of {total_MN.tolist()} windows")
    fits_MN = np.isfinite(p_MN)
    if total_MN is None:
        fits_MN &= (p_MN > 0) & (p_MN < 1)
    used = [n for n in range(shape[1]) if np.any(p_MN[fits_MN[:, n], n] > 0) and np.any(p_MN[fits_MN[:, n], n] < 1)]
    chosen_MN = np.zeros(shape, dtype=bool)
    chosen_MN[:, used] = fits_MN[:, used]
    size_C, n_C = np.nonzero(chosen_MN)
    p_BC = None
    if p_BMN is not None:
        p_BC = p_BMN[:, size_C, n_C]
        p_BC = p_BC[np.isfinite(p_BC).all(axis=1)]
        p_BC = p_BC if len(p_BC) >= MIN_RESAMPLES else None
    windows_C = None if total_MN is None else total_MN[size_C, n_C]
    length_C = np.searchsorted(used, n_C)
    return _Measured(S_M, p_MN, total_MN, used, size_C, length_C, p_MN[size_C, n_C], windows_C, p_BC)


def _tally(cells: _Measured, p_BC: Floats, count_C: Floats) -> Tally:
    """Shares as counts of so many windows that are independent."""
    count_BC = np.broadcast_to(count_C, p_BC.shape)
    return Tally(cells.x_C, np.ones(len(count_C)), p_BC * count_C, count_BC, np.zeros_like(p_BC), cells.length_C)


def _search(cells: _Measured) -> tuple[Floats, float, Floats] | None:
    """The parameters, tau^2, and the counts at which both agree; None where the likelihood has no maximum."""
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
        theta_P = climb(_tally(cells, cells.p_C[None], count_C), theta_P[None]).theta_BP[0]
        if not np.isfinite(theta_P).all():
            return None
        before, tau2 = tau2, _models_variance(cells, theta_P, tau2, of_documents_C)
        if tau2 == 0 and cells.windows_C is None and cells.p_BC is None:
            return theta_P, before, count_C  # the points lie on the law, so that their weights do not matter
        if abs(tau2 - before) <= _SETTLED * tau2:
            break
    return theta_P, tau2, count_C


def _law(cells: _Measured, theta_P: Floats) -> tuple[Floats, Floats]:
    """Fitted shares, and their change with ln(-ln p)."""
    y_C = np.exp(theta_P[cells.length_C] - theta_P[-1] * cells.x_C)
    p_C = np.exp(-y_C)
    return p_C, -y_C * p_C


def _excess(cells: _Measured) -> Floats:
    """How many times as much as independent windows the shares of each window length vary over documents, each cell.

    Where the number of windows is unknown, the variance over documents of ln(-ln p) instead, 0 without documents.
    """
    p_C = cells.p_C
    excess_C = np.zeros(len(p_C)) if cells.windows_C is None else np.ones(len(p_C))
    if cells.p_BC is None:
        return excess_C
    variance_C = cells.p_BC.var(axis=0, ddof=1)
    if cells.windows_C is None:
        return np.asarray(variance_C / (p_C * np.log(p_C)) ** 2)
    for at in range(len(cells.used)):
        of_C = cells.length_C == at
        independent = float((p_C * (1 - p_C) / cells.windows_C)[of_C].sum())
        excess_C[of_C] = max(float(variance_C[of_C].sum()) / independent, 1.0)
    return excess_C


def _variance(cells: _Measured, theta_P: Floats, tau2: float, of_documents_C: Floats) -> Floats:
    """Variance that each share is taken to have."""
    p_C, change_C = _law(cells, theta_P)
    if cells.windows_C is None:
        return np.asarray((of_documents_C + tau2) * change_C**2)
    return np.asarray(p_C * (1 - p_C) * of_documents_C / cells.windows_C + tau2 * change_C**2)


def _models_variance(cells: _Measured, theta_P: Floats, tau2: float, of_documents_C: Floats) -> float:
    """tau^2 by moments: what the squares about the law have beyond those that the documents explain.

    Source: DerSimonian and Laird, Controlled Clinical Trials 7 (1986), 177.
    """
    points = _points(cells, theta_P, tau2, of_documents_C)
    J, w_C = points.pooled_CP, points.weight_C
    left_CC = np.eye(len(w_C)) - J @ np.linalg.solve((J.T * w_C) @ J, J.T * w_C)
    known_C = 1 / w_C - tau2
    observed, expected = float(w_C @ points.residual_C**2), float(w_C @ left_CC**2 @ known_C)
    return max((observed - expected) / float((w_C @ left_CC**2).sum()), 0.0)


def _points(cells: _Measured, theta_P: Floats, tau2: float, of_documents_C: Floats | None = None) -> Cells:
    """The values of ln(-ln p) about the law, to first order in p."""
    of_documents_C = _excess(cells) if of_documents_C is None else of_documents_C
    p_C, change_C = _law(cells, theta_P)
    weight_C = change_C**2 / _variance(cells, theta_P, tau2, of_documents_C)
    resampled_BC = None if cells.p_BC is None else (cells.p_BC - cells.p_C) / change_C
    fitted_C = theta_P[cells.length_C] - theta_P[-1] * cells.x_C
    residual_C = (cells.p_C - p_C) / change_C
    return Cells(cells.x_C, cells.length_C, cells.size_C, fitted_C, residual_C, weight_C, resampled_BC)


def _scatter(cells: _Measured, at: Slopes, theta_P: Floats, fisher_PP: Floats, count_C: Floats) -> Scatter:
    """Documents from refits to their resamples, one Newton step each, and models from the scatter of the sizes."""
    if cells.p_BC is None:  # nothing is known but the scatter, so all of it is that of models
        return model_scatter(cells.x_C, at, fisher_PP, (at, np.zeros_like(fisher_PP)))
    again = slopes(np.repeat(theta_P[None], len(cells.p_BC), axis=0), _tally(cells, cells.p_BC, count_C))
    refits_BP = again.score_BP @ fisher_PP
    return model_scatter(cells.x_C, at, fisher_PP, (again, np.cov(refits_BP, rowvar=False)))


def _constants(theta_P: Floats, scatter: Scatter | None, ln_S_ref: float, used: Sequence[int]) -> dict[int, Estimate]:
    """C_N at S = 1 with its interval: ln C_ref,N + alpha ln S_ref."""
    constants = {}
    for at, n in enumerate(used):
        of_P = np.eye(len(theta_P))[at] + ln_S_ref * np.eye(len(theta_P))[-1]
        ln_C = float(of_P @ theta_P)
        lo, hi = (None, None) if scatter is None else map(exp_or_none, around(ln_C, scatter.half_width(of_P)))
        constants[n] = Estimate(exp_or_none(ln_C), lo, hi)
    return constants


def _without_numbers(counts: Mapping[str, int], status: Status, params: dict[str, Any]) -> PooledFit:
    params["reasons"] = [status.value]
    return PooledFit(None, None, None, None, {}, {}, (), (), None, **counts, status=status, params=params)


def _table(cells: _Measured, value_C: Floats) -> Floats:
    """One value a cell by size and window length; NaN where there is no cell."""
    table_MN = np.full(cells.p_MN.shape, np.nan)
    table_MN[cells.size_C, np.asarray(cells.used)[cells.length_C]] = value_C
    return table_MN


def _plain(values_MN: Floats) -> list[list[float | None]]:
    return [[float(v) if math.isfinite(v) else None for v in row] for row in values_MN]
