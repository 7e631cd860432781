"""Fits the pooled law of emergence to counts of windows: one exponent for all window lengths, a constant for each.

p_{N,k} = exp(-C_N S^(-alpha)). Hits that depend on each other make C_N grow slower than N, which the joint law C N
S^(-alpha) takes for a steeper exponent where the small sizes lack their long windows. Counts are fitted rather than
logarithms: a size at which no window of N tokens is all hits says much about the law, but has no ln(-ln p).

Shapes: M sizes, N window lengths, C cells (each one size and one window length), P parameters (the constants, then
alpha), B resamples of the documents.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.counts.passing import Scatter, Slopes, model_scatter, separated, slopes
from rbpx.laws.intervals.estimate import Estimate, around, from_half_width
from rbpx.laws.names import MLE
from rbpx.laws.numeric import Floats
from rbpx.laws.power.uncertainty import as_plain
from rbpx.laws.prediction.verdict import trend_doubts
from rbpx.questions.emergence.law import WindowsFit, doubt_of_sizes, listed
from rbpx.questions.emergence.quasi_likelihood import (
    Contrast,
    MeasuredShares,
    curvature,
    drift,
    exponents,
    growth,
    measured_shares,
    points_of,
    search,
    significant,
    tally_of,
)
from rbpx.status import Status, first_of, in_order

EQUATION: Final = "-ln p_N = C_N * S^(-alpha), quasi-likelihood of the counts of windows of hits"
SOURCE: Final = "RBP paper, arXiv 2510.20387, eqs. 6-8, with a constant for each N; Wedderburn, Biometrika 1974"


@dataclass(frozen=True, eq=False)
class PooledConstants:
    """The constants of a pooled law at the middle of the sizes.

    Attributes:
        S_ref: the geometric mean of the sizes.
        counts_MN: weight of each share in the likelihood, in proportion to independent windows; NaN where left out.
        ln_C_ref: ln C_N at S_ref, by window length.
        scatter: of these constants, then alpha.
    """

    S_ref: float
    counts_MN: Floats
    ln_C_ref: dict[int, float]
    scatter: Scatter


@dataclass(frozen=True, eq=False, kw_only=True)
class PooledFit(WindowsFit):
    """A law -ln p_N = C_N * S^(-alpha) with one exponent; numbers are None where the status says that there is no fit.

    The interval of alpha includes document sampling (where documents are known) and the
    scatter of the models: the windows of one size count as one observation of its model. It is centred on alpha.

    Attributes:
        constants: C_N at S = 1 by window length, None where it is outside the range of a float. A window length of
            which no window is all hits, or every one, has none.
        alphas: exponent of each window length by itself, from the same counts.
        contrasts: numbers that would be 0 if one exponent served all and the points lay on lines, by question: does
            the exponent drift with N, does that of one N differ, do the points curve. Those that differ from 0 are in
            `bent`.
        growth: ln C_N against ln N plus one constant; those that differ from 0 are in `dependent`, and say that the
            joint law C N S^-alpha does not hold.
        windows_MN: how many windows each share is of; None where they are unknown.
        found: None without a fit.
    """

    constants: dict[int, Estimate] = field(default_factory=dict)
    alphas: dict[int, Estimate] = field(default_factory=dict)
    contrasts: tuple[tuple[Contrast, ...], ...] = ()
    growth: tuple[Contrast, ...] = ()
    windows_MN: Floats | None
    found: PooledConstants | None = None

    @property
    def models_sd(self) -> float | None:
        """Standard deviation in ln(-ln p) of a model about its law."""
        variance = None if self.found is None else self.found.scatter.variance
        return None if variance is None else math.sqrt(variance)

    @property
    def bent(self) -> list[Contrast]:
        """The contrasts that differ from 0: one exponent does not serve all, or the points do not lie on lines."""
        return [one for each in self.contrasts for one in significant(each, len(self.contrasts))]

    @property
    def dependent(self) -> list[Contrast]:
        """The constants that do not grow as N."""
        return significant(self.growth)

    def record(self) -> dict[str, Any]:
        """What reproduces the fit, and its constants, as JSON takes it."""
        record: dict[str, Any] = {"equation": EQUATION, "source": SOURCE, "method": MLE, "interval": self.interval}
        record |= {"S": list(self.S), "lengths": list(self.lengths), "p": listed(self.p_MN)}
        record |= {"reasons": [reason.value for reason in self.reasons]}
        record |= {"windows": None if self.windows_MN is None else listed(self.windows_MN)}
        record |= {name: getattr(self, name) for name in ("models_sd", "n_left_out", "n_sizes")}
        record |= {"C": {str(n): constant.record() for n, constant in self.constants.items()}}
        if (found := self.found) is None:
            return record
        return record | {
            "S_ref": found.S_ref,
            "counts": listed(found.counts_MN),
            "ln_C_ref": {str(n): ln_C for n, ln_C in found.ln_C_ref.items()},
            "uncertainty": as_plain(found.scatter),
            "equal": {one.name: {**one.estimate.record(), "p": one.p} for each in self.contrasts for one in each},
            "bent": [one.name for one in self.bent],
            "independent": {one.name: {**one.estimate.record(), "p": one.p} for one in self.growth},
            "alphas": {str(n): one.record() for n, one in self.alphas.items()},
        }


def fit_pooled(
    S: ArrayLike,
    lengths: Sequence[int],
    p_MN: ArrayLike,
    windows_MN: ArrayLike | None = None,
    p_BMN: ArrayLike | None = None,
    n_documents: int | None = None,
) -> PooledFit:
    """Fit p_N = exp(-C_N S^-alpha) by quasi-likelihood to counts that vary more than those of independent windows.

    A share p of n windows is taken to vary by p (1 - p) d_N / n + tau^2 (p ln p)^2: d_N is how many times as much as
    independent windows the documents make it vary, from the resamples, one for each window length, at least 1; tau is
    the standard deviation of the models in ln(-ln p), by moments. Fit and tau are found in turns. The weights need not
    be right for the estimate or its interval, which takes the documents from refits to their resamples (one Newton
    step, as the weights stay) and the models from the scatter of the sizes (`rbpx.laws.counts.passing`).

    Args:
        S: non-embedding parameters, shape [M], positive; equal ones are replicates, models of one size.
        lengths: window lengths N, tokens, all different.
        p_MN: measured shares of windows of hits, shape [M, N]; NaN where there is no window.
        windows_MN: how many windows each share is of, shape [M, N]; None where that is unknown, and then shares of 0
            and 1 say nothing and are left out.
        p_BMN: the shares under B resamples of the documents, shape [B, M, N]. A resample in which a share that was
            fitted is NaN is left out.
        n_documents: how many were resampled; None where they are not counted.

    Returns:
        The fit. Its status is too_few_sizes below 3 sizes, not_positive where every window length has only windows of
        hits or only others, or fewer than 3 sizes have a share, separated where any steep law fits, not_converged
        where the search fails; with numbers no_trend, bends, barely_determined or ok. Its reasons are all that hold.

    Raises:
        ValueError: if shapes disagree, or a value is impossible.
    """
    cells = measured_shares(S, lengths, p_MN, windows_MN, p_BMN, n_documents)
    without = PooledFit(
        n_points=len(cells.p_C),
        n_left_out=cells.p_MN.size - len(cells.p_C),
        n_sizes=len(np.unique(cells.size_C)),
        S=cells.S_M.tolist(),
        lengths=lengths,
        p_MN=cells.p_MN,
        windows_MN=cells.windows_MN,
        status=Status.not_converged,
        reasons=(Status.not_converged,),
    )
    doubt = doubt_of_sizes(cells.S_M, cells.x_C)
    if doubt is None and separated(tally_of(cells, cells.p_C[None], np.ones(len(cells.p_C)))).all():
        doubt = Status.separated
    if doubt is not None:
        return replace(without, status=doubt, reasons=(doubt,))
    found = search(cells)
    if found is None:
        return without
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
    reasons = [*trend_doubts(alpha, lo, hi), *([Status.bends] if bent else [])]
    ln_C_ref = dict(zip(used, theta_P[:-1].tolist(), strict=True))
    return replace(
        without,
        alpha=Estimate(alpha, lo, hi, math.sqrt(scatter.variance_of(of_alpha_P))),
        constants=_constants(theta_P, scatter if has_interval else None, ln_S_ref, used),
        alphas=alphas,
        contrasts=tuple(contrasts),
        growth=tuple(growth(points, used)),
        found=PooledConstants(math.exp(ln_S_ref), _table(cells, count_C), ln_C_ref, scatter),
        interval=("models" if cells.p_BC is None else "documents and models") if has_interval else None,
        status=first_of(reasons),
        reasons=in_order(reasons),
    )


def _scatter(cells: MeasuredShares, at: Slopes, theta_P: Floats, fisher_PP: Floats, count_C: Floats) -> Scatter:
    """How the parameters scatter: over documents by refits to resamples (one Newton step), over models by the sizes."""
    if cells.p_BC is None:  # nothing is known but the scatter, so all of it is that of models
        return model_scatter(cells.x_C, at, fisher_PP, (at, np.zeros_like(fisher_PP)))
    again = slopes(np.repeat(theta_P[None], len(cells.p_BC), axis=0), tally_of(cells, cells.p_BC, count_C))
    replicates_BP = again.score_BP @ fisher_PP
    replicates = again, np.cov(replicates_BP, rowvar=False)
    return model_scatter(cells.x_C, at, fisher_PP, replicates, cells.n_documents)


def _constants(theta_P: Floats, scatter: Scatter | None, ln_S_ref: float, used: Sequence[int]) -> dict[int, Estimate]:
    """C_N at S = 1 with its interval: ln C_ref,N + alpha ln S_ref."""
    constants = {}
    for at, n in enumerate(used):
        of_P = np.eye(len(theta_P))[at] + ln_S_ref * np.eye(len(theta_P))[-1]
        half = math.inf if scatter is None else scatter.half_width(of_P)
        constants[n] = from_half_width(float(of_P @ theta_P), half).exp()
    return constants


def _table(cells: MeasuredShares, value_C: Floats) -> Floats:
    """One value a cell by size and window length; NaN where there is no cell."""
    table_MN = np.full(cells.p_MN.shape, np.nan)
    table_MN[cells.size_C, np.asarray(cells.used)[cells.length_C]] = value_C
    return table_MN
