"""Fits how the ratio of the losses on two texts changes with size, and finds the size where it reaches 1.

L_A / L_B = G (S / S_ref)^delta with delta = alpha_B - alpha_A, for L = cross-entropy or -ln RBP_k. A is the text with
the higher loss at S_ref, so G > 1. With delta < 0 the gap closes at ratio 1, and opens the other way beyond. The law
holds where both losses are power laws. With irreducible losses, L = E + C S^(-alpha), the ratio bends and tends to E_A
/ E_B.

Shapes: N sizes, B bootstrap replicates, G sizes at which the laws are evaluated.
Source: Relative Scaling Laws for LLMs, arXiv 2510.24626.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.estimate import (
    NO_ESTIMATE,
    Estimate,
    Replicates,
    document_t,
    fieller,
    flat,
    moments,
    student_t,
)
from rbpx.laws.intervals.lack_of_fit import is_rounding, line_residuals
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.intervals import ALPHA, p_of_zero
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.power.regression import Regression, jacobian, ln_law
from rbpx.laws.power.uncertainty import uncertainty
from rbpx.laws.prediction.verdict import SupportedForm, form_of, with_reasons
from rbpx.status import Status

EQUATION: Final = "L_A / L_B = G * (S / S_ref)^delta"
REACH: Final = 10.0  # factor outside the measured sizes up to which a closing is searched
_GRID: Final = 400


@dataclass(frozen=True)
class Gap:
    """Law of the ratio of two losses; numbers are None without a fit.

    Attributes:
        swapped: whether the second text given is A, with the higher loss at S_ref.
        fit: the ratio as a power law, ratio = C S^(-alpha) with alpha = -delta.
        S_ref: geometric mean of the sizes.
        ratio: G, the fitted L_A / L_B at S_ref.
        delta: exponent of the ratio; below 0 the gap closes.
        p: two-sided p value of delta = 0.
        p_adjusted: p adjusted for all gaps of the request (Holm); p until `settle`.
        ln_S_closed: ln of the size at which the ratio is 1; None where the gap does not close; an unbounded end is
            None.
        curvature: coefficient of ln(S / S_ref)^2 in a parabola through ln(L_A / L_B); None below 4 sizes.
        curvature_p: two-sided p value of zero curvature.
        curvature_turns: whether the parabola has significant slopes of opposite sign at the smallest and the largest
            size.
        form: form that the losses support: `offset` if the 95 % interval of an E excludes 0, `power` if both contain
            only negligible E, else `either`; None where laws with offsets cannot be fitted.
        E_a: irreducible loss of A, in the unit of the loss; an unbounded end is None.
        E_b: irreducible loss of B.
    """

    swapped: bool
    fit: PowerLaw
    S_ref: float | None = None
    ratio: Estimate = NO_ESTIMATE
    delta: Estimate = NO_ESTIMATE
    p: float | None = None
    p_adjusted: float | None = None
    ln_S_closed: Estimate = NO_ESTIMATE
    curvature: Estimate = NO_ESTIMATE
    curvature_p: float | None = None
    curvature_turns: bool | None = None
    form: SupportedForm | None = None
    E_a: Estimate = NO_ESTIMATE
    E_b: Estimate = NO_ESTIMATE

    @property
    def bends(self) -> bool:
        """Whether the ratio deviates significantly from a power law."""
        return self.curvature_p is not None and self.curvature_p < ALPHA

    @property
    def verdict(self) -> str | None:
        """What the gap does, by all tests of the request; None without a fit.

        "closes" or "opens" where the adjusted p is below 0.05, "may close" or "may open" where only its own p is;
        "turns" where the ratio bends and turns within the sizes, "bends" where it bends without a trend, else
        "parallel": the interval of delta contains 0.
        """
        if self.p is None or self.p_adjusted is None or self.delta.value is None:
            return None
        if self.bends and self.curvature_turns:
            return "turns"
        if self.p_adjusted < ALPHA:
            return "closes" if self.delta.value < 0 else "opens"
        if self.p < ALPHA:
            return "may close" if self.delta.value < 0 else "may open"
        return "bends" if self.bends else "parallel"

    @property
    def closed_beyond(self) -> float | None:
        """Factor by which the size of closing lies outside the measured sizes; 1 within them."""
        if (ln_S := self.ln_S_closed.value) is None:
            return None
        least, most = math.log(min(self.fit.S)), math.log(max(self.fit.S))
        return math.exp(min(max(ln_S - most, least - ln_S, 0.0), 700.0))

    @property
    def is_beyond(self) -> bool:
        """Whether the gap closes, if at all, at more than 10 times outside the measured sizes."""
        return self.verdict == "closes" and (self.closed_beyond or math.inf) > REACH

    def record(self) -> dict[str, Any]:
        """Plain values for JSON, without the fit."""
        known = {name: value for name, value in vars(self).items() if name != "fit"}
        return flat(known | {"closed_beyond": self.closed_beyond, "verdict": self.verdict})


def settle(gap: Gap, p_adjusted: float | None, doubts: Collection[Status] = ()) -> Gap:
    """Sets the adjusted p value of a gap, which decides its verdict, size of closing and status.

    Args:
        gap: as fitted.
        p_adjusted: by `holm`, over all gaps of a request.
        doubts: statuses in addition to those of the fit.
    """
    gap = replace(gap, p_adjusted=p_adjusted)
    if gap.delta.value is None:
        return gap
    verdict = gap.verdict
    if verdict != "closes":
        gap = replace(gap, ln_S_closed=NO_ESTIMATE)
    holds = {
        Status.no_trend: verdict in ("parallel", "may close", "may open"),
        Status.not_monotone: verdict == "turns",
        Status.bends: gap.bends,
        Status.beyond: gap.is_beyond,
    }
    return replace(gap, fit=with_reasons(gap.fit, [*doubts, *(status for status, is_true in holds.items() if is_true)]))


def fit_gap(
    S: ArrayLike,
    loss_a: ArrayLike,
    loss_b: ArrayLike,
    a_replicates: ArrayLike | None = None,
    b_replicates: ArrayLike | None = None,
    n_effective: float | None = None,
) -> Gap:
    """Fits the ratio of two losses by least squares of its logarithm on ln S.

    The ratio is formed at each model, so effects of the model that both texts share cancel.

    Args:
        S: non-embedding parameters, shape [N].
        loss_a: cross-entropy or -ln RBP_k on the first text, shape [N], positive.
        loss_b: on the second.
        a_replicates: bootstrap replicates over documents of the first, shape [B, N]; too few give no interval.
        b_replicates: of the second, drawn independently.
        n_effective: effective number of documents, of the text with fewer; None where unknown.
    """
    sides, drawn = (np.array(pair, np.float64) for pair in ((loss_a, loss_b), (a_replicates, b_replicates)))
    with np.errstate(divide="ignore", invalid="ignore"):  # a loss of 0 or infinity has no ratio; the fit reports it
        swapped = -math.inf < float(np.log(sides[0] / sides[1]).mean()) < 0
        sides, drawn = (pair[:: -1 if swapped else 1] for pair in (sides, drawn))
        replicates = Replicates.of(drawn[0] / drawn[1], n_effective) if drawn.ndim == 3 else None
        fit = fit_power_law(S, sides[0] / sides[1], replicates)
    if fit.alpha.value is None or fit.r2.value is None or fit.theta_P is None:
        return Gap(swapped, fit)
    ln_G, alpha, delta, about = float(fit.theta_P[0]), fit.alpha.value, fit.alpha.times(-1), fit.uncertainty
    gap = Gap(swapped, fit, fit.S_ref, Estimate(math.exp(ln_G)), delta)
    if about is None:
        return gap
    ratio = Estimate(math.exp(ln_G), *map(math.exp, about.interval(ln_G, np.array([1.0, 0.0]))))
    p = p_of_zero(alpha, np.array([0.0, 1.0]), about)
    gap = _with_curvature(replace(gap, ratio=ratio, p=p), replicates)
    straight = NO_ESTIMATE
    if alpha > 0:  # zero of ln G - alpha ln(S / S_ref), with the interval by inverting the confidence band (Fieller)
        ln_S_ref = math.log(fit.S_ref)
        ends = [None if end is None else ln_S_ref + end for end in fieller(ln_G, alpha, about.region_PP())]
        straight = Estimate(ln_S_ref + ln_G / alpha, *ends)
    return settle(_with_closing(gap, straight, sides, drawn, n_effective), p)


def _with_curvature(gap: Gap, replicates: Replicates | None) -> Gap:
    """Adds the test of ln(L_A / L_B) linear in ln S against a parabola, from 4 sizes on."""
    ln_S_N, ln_ratio_N = np.log(gap.fit.S), np.log(gap.fit.y)
    if len(np.unique(ln_S_N)) < 4:
        return gap
    if is_rounding(line_residuals(ln_S_N, ln_ratio_N), ln_ratio_N):
        return replace(gap, curvature=Estimate(0.0, 0.0, 0.0), curvature_p=1.0, curvature_turns=False)
    x_N = ln_S_N - ln_S_N.mean()
    J_NP = np.column_stack([np.ones(len(x_N)), x_N, x_N**2])
    theta_P, ones_N = (L_PN := np.linalg.pinv(J_NP)) @ ln_ratio_N, np.ones(len(x_N))
    parabola = Regression(theta_P, J_NP, ones_N, ln_ratio_N - J_NP @ theta_P)
    documents = None if replicates is None else (moments(theta_P, replicates.ln_y_BN @ L_PN.T), replicates)
    about = uncertainty(parabola, documents)

    def number(*at_P: float) -> tuple[float, float, float]:
        value = float(np.array(at_P) @ theta_P)
        return value, *about.interval(value, np.array(at_P))

    (_, lo_a, hi_a), (_, lo_b, hi_b) = (number(0, 1, 2 * x) for x in (float(x_N.min()), float(x_N.max())))
    turns, p = lo_a > 0 > hi_b or lo_b > 0 > hi_a, p_of_zero(float(theta_P[2]), np.eye(3)[2], about)
    return replace(gap, curvature=Estimate(*number(0, 0, 1)), curvature_p=p, curvature_turns=turns)


def _with_closing(gap: Gap, straight: Estimate, sides: Floats, drawn: Floats, n_effective: float | None) -> Gap:
    """Adds the form that both losses support, and the size of closing.

    Each loss is fitted with an irreducible part. If the power law is rejected, the gap closes where these laws meet; if
    the forms cannot be told apart, the interval covers both.

    Args:
        gap: without these.
        straight: ln of the size of closing by the power law.
        sides: losses on A and B.
        drawn: replicates of both, if any; one with a loss that is not positive and finite is dropped.
        n_effective: effective number of documents, of the text with fewer; None where unknown.
    """
    S, replicates = gap.fit.S, list[Replicates]()
    if drawn.ndim == 3:
        usable_B = np.all((drawn > 0) & np.isfinite(drawn), axis=(0, 2))
        replicates = [Replicates.of(y_BN[usable_B], n_effective) for y_BN in drawn]
    laws = [fit_power_law(S, y, of, Method.offset, backtests=False) for y, of in zip(sides, replicates, strict=False)]
    laws = laws or [_law(tuple(S), tuple(y.tolist())) for y in sides]  # cached, since a text is in many pairs
    if any(law.regression is None for law in laws):
        return replace(gap, ln_S_closed=NO_ESTIMATE if gap.bends else straight)
    gap, closed = replace(gap, form=form_of(laws), E_a=laws[0].E, E_b=laws[1].E), straight
    changes = [of.ln_y_BN - np.log(y) for y, of in zip(sides, replicates, strict=False)]
    curved = _crossing(laws, changes, n_effective)
    if gap.form is SupportedForm.offset or gap.bends:
        closed = curved
    elif gap.form is SupportedForm.either and straight.value is not None:
        lo = None if straight.lo is None or curved.lo is None else min(straight.lo, curved.lo)
        hi = None if straight.hi is None or curved.hi is None else max(straight.hi, curved.hi)
        closed = Estimate(straight.value, lo, hi)
    return replace(gap, ln_S_closed=closed)


@lru_cache(maxsize=1024)
def _law(S: tuple[float, ...], y: tuple[float, ...]) -> PowerLaw:
    return fit_power_law(S, y, None, Method.offset, backtests=False)


def _crossing(laws: Sequence[PowerLaw], changes: Sequence[Floats], n_effective: float | None) -> Estimate:
    """Ln of the size at which two laws with offsets meet, with its interval.

    Effects of a model on both losses cancel in the ratio: the variance comes from the residuals of both with their
    correlation (Student's t of N - 3 degrees of freedom) and from the documents. The interval is where the 95 % band of
    ln(L_A / L_B) contains 0, searched up to 10 times outside the measured sizes.
    """
    ln_S_N, n = np.log(laws[0].S), len(laws[0].S)
    ln_S_G = np.linspace(ln_S_N.min() - math.log(REACH), ln_S_N.max() + math.log(REACH), _GRID)
    ln_y_2G, by_2GN = [], []
    for law in laws:
        assert law.regression is not None, "the fit converged"
        regression, x_G = law.regression, ln_S_G - ln_S_N.mean()
        ln_y_2G.append(ln_law(x_G, regression.theta_P))
        by_2GN.append(jacobian(x_G, regression.theta_P) @ regression.sensitivity_PN)
    gap_G = ln_y_2G[0] - ln_y_2G[1]
    residual_N2 = np.column_stack([law.residuals_ln for law in laws])
    by_GN2 = np.stack([by_2GN[0], -by_2GN[1]], axis=-1)
    variance_G = (
        np.einsum("gni,ij,gnj->g", by_GN2, residual_N2.T @ residual_N2 / (n - 3), by_GN2) * student_t(n - 3) ** 2
    )
    if changes:
        moved_BG = changes[0] @ by_2GN[0].T - changes[1] @ by_2GN[1].T
        gap_G = gap_G - moved_BG.mean(axis=0)
        variance_G = variance_G + document_t(n_effective) ** 2 * moved_BG.var(axis=0, ddof=1)
    crossings = np.flatnonzero(np.diff(np.sign(gap_G)) != 0)
    if len(crossings) == 0:
        return NO_ESTIMATE
    at = int(crossings[np.argmin(np.abs(ln_S_G[crossings] - ln_S_N.mean()))])
    value, outside_G = _root(ln_S_G[at : at + 2], gap_G[at : at + 2]), np.abs(gap_G) - np.sqrt(variance_G)
    below, above = np.flatnonzero(outside_G[: at + 1] > 0)[-1:], np.flatnonzero(outside_G[at + 1 :] > 0)[:1] + at
    lo, hi = ([_root(ln_S_G[G : G + 2], outside_G[G : G + 2]) for G in end] for end in (below, above))
    return Estimate(value, min(*lo, value) if lo else None, max(*hi, value) if hi else None)


def _root(x_2: Floats, y_2: Floats) -> float:
    """Zero of the line through two points; their middle if it does not cross 0 between them."""
    if y_2[0] * y_2[1] > 0:
        return float(x_2.mean())
    return float(x_2[0] - y_2[0] * (x_2[1] - x_2[0]) / (y_2[1] - y_2[0]))
