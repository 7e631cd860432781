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

from rbpx.analyses.emergence.misfit import Contrast, curvature, drift, exponents, growth, significant
from rbpx.analyses.emergence.quasi_likelihood import MeasuredShares, measured_shares, points_of, search, tally_of
from rbpx.laws.exponential import exp_or_none
from rbpx.laws.interval import Estimate, around
from rbpx.laws.model_scatter import Scatter, model_scatter
from rbpx.laws.passing import Slopes, separated, slopes
from rbpx.laws.trend import names_of, trend_doubts
from rbpx.status import Status, first_of

__all__ = ["EQUATION", "SOURCE", "PooledFit", "fit_pooled"]

EQUATION: Final = "-ln p_N = C_N * S^(-alpha), quasi-likelihood of the counts of windows of hits"
SOURCE: Final = "RBP paper, arXiv 2510.20387, eqs. 6-8, with a constant for each N; Wedderburn, Biometrika 1974"

Floats = NDArray[np.float64]


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
    n_documents: int | None = None,
) -> PooledFit:
    """Fit p_N = exp(-C_N S^-alpha) by quasi-likelihood: counts that vary more than independent windows do.

    A share p of n windows is taken to vary by p (1 - p) d_N / n + tau^2 (p ln p)^2: d_N is how many times as much as
    independent windows the documents make it vary, from the resamples, one for each window length, at least 1; tau is
    the standard deviation of the models in ln(-ln p), by moments. Fit and tau are found in turns. The weights need not
    be right for the estimate or its interval, which takes the documents from refits to their resamples (one Newton
    step, as the weights stay) and the models from the scatter of the sizes (`rbpx.laws.model_scatter`).

    Args:
        S: non-embedding parameters, shape [M], positive; equal ones are replicates, models of one size.
        lengths: window lengths N, tokens, all different.
        p_MN: measured shares of windows of hits, shape [M, N]; NaN where there is no window.
        windows_MN: how many windows each share is of, shape [M, N]; None where that is unknown, and then shares of 0
            and 1 say nothing and are left out.
        p_BMN: the shares under B resamples of the documents, shape [B, M, N]. A resample in which a share that was
            fitted is NaN is left out.
        n_documents: that were resampled; None where they are not counted.

    Returns:
        The fit. Its status is too_few_sizes below 3 sizes, not_positive where every window length has only windows of
        hits or only others, or fewer than 3 sizes have a share, separated where any steep law fits, not_converged
        where the search fails; with numbers no_trend, bends, barely_determined or ok, every one that holds in
        params["reasons"].

    Raises:
        ValueError: if shapes disagree, or a value is impossible.
    """
    cells = measured_shares(S, lengths, p_MN, windows_MN, p_BMN, n_documents)
    params: dict[str, Any] = {"equation": EQUATION, "source": SOURCE, "method": "mle", "interval": None}
    params |= {"S": cells.S_M.tolist(), "lengths": list(lengths), "p": _plain(cells.p_MN), "reasons": []}
    params |= {"windows": None if cells.windows_MN is None else _plain(cells.windows_MN)}
    n_sizes = len(np.unique(cells.size_C))
    counts = {"n_points": len(cells.p_C), "n_left_out": cells.p_MN.size - len(cells.p_C), "n_sizes": n_sizes}
    if len(np.unique(cells.S_M)) < 3:
        return _without_numbers(counts, Status.too_few_sizes, params)
    if len(np.unique(cells.x_C)) < 3:
        return _without_numbers(counts, Status.not_positive, params)
    if separated(tally_of(cells, cells.p_C[None], np.ones(len(cells.p_C)))).all():
        return _without_numbers(counts, Status.separated, params)
    found = search(cells)
    if found is None:
        return _without_numbers(counts, Status.not_converged, params)
    theta_P, tau2, count_C = found
    tally = tally_of(cells, cells.p_C[None], count_C)
    at = slopes(theta_P[None], tally)
    fisher_PP = np.linalg.inv(at.information_BPP[0])
    scatter = _scatter(cells, at, theta_P, fisher_PP, count_C)
    points, used = points_of(cells, theta_P, tau2), [lengths[n] for n in cells.used]
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


def _scatter(cells: MeasuredShares, at: Slopes, theta_P: Floats, fisher_PP: Floats, count_C: Floats) -> Scatter:
    """Documents from refits to their resamples, one Newton step each, and models from the scatter of the sizes."""
    if cells.p_BC is None:  # nothing is known but the scatter, so all of it is that of models
        return model_scatter(cells.x_C, at, fisher_PP, (at, np.zeros_like(fisher_PP)))
    again = slopes(np.repeat(theta_P[None], len(cells.p_BC), axis=0), tally_of(cells, cells.p_BC, count_C))
    refits_BP = again.score_BP @ fisher_PP
    resampled = again, np.cov(refits_BP, rowvar=False)
    return model_scatter(cells.x_C, at, fisher_PP, resampled, cells.n_documents)


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


def _table(cells: MeasuredShares, value_C: Floats) -> Floats:
    """One value a cell by size and window length; NaN where there is no cell."""
    table_MN = np.full(cells.p_MN.shape, np.nan)
    table_MN[cells.size_C, np.asarray(cells.used)[cells.length_C]] = value_C
    return table_MN


def _plain(values_MN: Floats) -> list[list[float | None]]:
    return [[float(v) if math.isfinite(v) else None for v in row] for row in values_MN]
