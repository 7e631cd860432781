"""Fits how the ratio of the losses on two texts changes with size, and finds where it reaches 1.

L_A / L_B = G (S / S_ref)^delta with delta = alpha_B - alpha_A, for L = cross-entropy or -ln RBP_k. A is the text with
the higher loss at S_ref, so G > 1. With delta < 0 the gap closes until the ratio is 1, and opens the other way beyond.
This holds where both losses are power laws, which `rbpx.questions.gaps.shape` tests.

Source: Relative Scaling Laws for LLMs, arXiv 2510.24626.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Replicates, fieller, flat
from rbpx.laws.power.intervals import ALPHA, p_of_zero
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.power.uncertainty import Uncertainty
from rbpx.laws.prediction.verdict import Form, with_reasons
from rbpx.questions.gaps.shape import REACH, Curvature, OffsetRatio, curvature, offset_ratio
from rbpx.status import Status

EQUATION: Final = "L_A / L_B = G * (S / S_ref)^delta"


@dataclass(frozen=True)
class Gap:
    """How the ratio of two losses changes with size; numbers are None where there is no fit.

    Attributes:
        swapped: the second text given is A, the one with the higher loss at S_ref.
        fit: of the ratio as a power law, ratio = C S^(-alpha) with alpha = -delta.
        S_ref: geometric mean of the sizes.
        ratio: G, L_A / L_B at S_ref by the law.
        delta: exponent of the ratio; below 0 the gap closes.
        p: two-sided p value of delta = 0.
        p_adjusted: the same, adjusted for all gaps of the request (Holm); p itself until `settle`.
        ln_S_closed: ln of the size at which the ratio is 1; None where the gap does not close, an end None where the
            interval has none on that side.
        curvature: how ln of the ratio bends against ln S; None below 4 sizes.
        offset: the same ratio where each loss may have an irreducible part; None where that cannot be fitted.
    """

    swapped: bool
    fit: PowerLaw
    S_ref: float | None = None
    ratio: Estimate = NO_ESTIMATE
    delta: Estimate = NO_ESTIMATE
    p: float | None = None
    p_adjusted: float | None = None
    ln_S_closed: Estimate = NO_ESTIMATE
    curvature: Curvature | None = None
    offset: OffsetRatio | None = None

    @property
    def bends(self) -> bool:
        """Whether the ratio is significantly no power law."""
        return self.curvature is not None and self.curvature.p < ALPHA

    @property
    def verdict(self) -> str | None:
        """What the gap does, as far as all tests of the request together show; None without a fit.

        "closes" or "opens" where the adjusted p is below 0.05, "may close" or "may open" where only its own p is;
        "turns" where the ratio bends and turns round within the sizes, "bends" where it bends without a trend, else
        "parallel": the interval of delta contains 0.
        """
        if self.p_adjusted is None or self.delta.value is None:
            return None
        if self.bends and self.curvature is not None and self.curvature.turns:
            return "turns"
        if self.p_adjusted < ALPHA:
            return "closes" if self.delta.value < 0 else "opens"
        if self.p is not None and self.p < ALPHA:
            return "may close" if self.delta.value < 0 else "may open"
        return "bends" if self.bends else "parallel"

    @property
    def closed_beyond(self) -> float | None:
        """The factor by which the size of the closing lies outside the sizes; 1 within them."""
        if (ln_S := self.ln_S_closed.value) is None:
            return None
        least, most = math.log(min(self.fit.S)), math.log(max(self.fit.S))
        return math.exp(min(max(ln_S - most, least - ln_S, 0.0), 700.0))

    @property
    def is_beyond(self) -> bool:
        """Whether it would close at more than 10 times outside the sizes, if at all."""
        return self.verdict == "closes" and (self.closed_beyond or math.inf) > REACH

    def reasons(self) -> list[Status]:
        """All that is doubtful about it as a power law, the one to show first."""
        holds = {
            Status.no_trend: self.verdict in ("parallel", "may close", "may open"),
            Status.not_monotone: self.verdict == "turns",
            Status.bends: self.bends,
            Status.beyond: self.is_beyond,
        }
        return [status for status, is_true in holds.items() if is_true]

    def record(self) -> dict[str, Any]:
        """What it says beside its fit, as plain values for JSON."""
        known: dict[str, Any] = {"swapped": self.swapped, "S_ref": self.S_ref, "ratio": self.ratio}
        known |= {"delta": self.delta, "p": self.p, "p_adjusted": self.p_adjusted, "ln_S_closed": self.ln_S_closed}
        known |= {"closed_beyond": self.closed_beyond, "curvature": self.curvature or NO_ESTIMATE}
        known |= {f"curvature_{name}": getattr(self.curvature, name, None) for name in ("p", "turns")}
        if self.offset is not None:
            known |= {"form": self.offset.form.value, "E_a": self.offset.E_a, "E_b": self.offset.E_b}
        return flat(known)


def settle(gap: Gap, p_adjusted: float | None, doubts: Collection[Status] = ()) -> Gap:
    """Give a gap its adjusted p value, and so its verdict, its size of closing and its status.

    Args:
        gap: as fitted.
        p_adjusted: by `holm`, over all gaps of a request.
        doubts: statuses that are known beside those of the fit.
    """
    gap = replace(gap, p_adjusted=p_adjusted)
    if gap.delta.value is None:
        return gap
    if gap.verdict != "closes":
        gap = replace(gap, ln_S_closed=NO_ESTIMATE)
    return replace(gap, fit=with_reasons(gap.fit, [*doubts, *gap.reasons()]))


def fit_gap(
    S: ArrayLike,
    loss_a: ArrayLike,
    loss_b: ArrayLike,
    a_replicates: ArrayLike | None = None,
    b_replicates: ArrayLike | None = None,
    n_documents: int | None = None,
) -> Gap:
    """Fit the ratio of two losses by least squares of its logarithm on ln S.

    The ratio is formed at each model, so an effect of the model that is the same on both texts cancels.

    Args:
        S: non-embedding parameters, shape [N].
        loss_a: cross-entropy or -ln RBP_k on the first text, shape [N], positive.
        loss_b: on the second.
        a_replicates: of the first, under resampled documents, shape [B, N].
        b_replicates: of the second; its documents are drawn independently of the first's.
        n_documents: that were resampled, of the text with fewer; None where they are not counted.

    Raises:
        ValueError: as in `fit_power_law`.
    """
    sides = [np.asarray(each, dtype=np.float64) for each in (loss_a, loss_b)]
    drawn = None if a_replicates is None or b_replicates is None else np.stack([a_replicates, b_replicates])
    with np.errstate(divide="ignore", invalid="ignore"):  # a loss of 0 or infinity has no ratio; the fit says so
        ratio_N = sides[0] / sides[1]
        swapped = -math.inf < float(np.log(ratio_N).mean()) < 0
        turn = -1 if swapped else 1
        replicates = None if drawn is None else Replicates.of((drawn[0] / drawn[1]) ** turn, n_documents)
        fit = fit_power_law(S, ratio_N**turn, replicates)
    if fit.alpha.value is None or fit.r2.value is None or fit.theta_P is None:
        return Gap(swapped, fit)
    ln_G, S_N, delta = float(fit.theta_P[0]), np.asarray(fit.S), fit.alpha.times(-1)
    a_N, b_N = sides[::turn]
    offset = offset_ratio(S_N, a_N, b_N, None if drawn is None else drawn[::turn], n_documents)
    bent = curvature(S_N, np.log(fit.y), replicates)
    if (about := fit.uncertainty) is None:
        gap = Gap(swapped, fit, fit.S_ref, Estimate(math.exp(ln_G)), delta, curvature=bent, offset=offset)
        return settle(gap, None)
    ratio = Estimate(math.exp(ln_G), *map(math.exp, about.interval(ln_G, np.array([1.0, 0.0]))))
    p = p_of_zero(fit.alpha.value, np.array([0.0, 1.0]), about)
    closed = _over_forms(_closed(ln_G, fit.alpha.value, fit.S_ref, about), offset, bent is not None and bent.p < ALPHA)
    return settle(Gap(swapped, fit, fit.S_ref, ratio, delta, p, None, closed, bent, offset), p)


def _over_forms(straight: Estimate, offset: OffsetRatio | None, bends: bool) -> Estimate:
    """Where the gap closes by the form that holds: the power law, the laws with offsets, or both together."""
    if offset is None:
        return NO_ESTIMATE if bends else straight
    curved = offset.ln_S_closed
    if offset.form is Form.offset or bends:
        return curved
    if offset.form is Form.power or straight.value is None:
        return straight
    lo = None if straight.lo is None or curved.lo is None else min(straight.lo, curved.lo)
    hi = None if straight.hi is None or curved.hi is None else max(straight.hi, curved.hi)
    return Estimate(straight.value, lo, hi)


def _closed(ln_G: float, alpha: float, S_ref: float, about: Uncertainty) -> Estimate:
    """Where ln G - alpha ln(S / S_ref) is 0, by inverting the confidence band (Fieller)."""
    if alpha <= 0:
        return NO_ESTIMATE
    ln_S_ref = math.log(S_ref)
    ends = (None if end is None else ln_S_ref + end for end in fieller(ln_G, alpha, about.region_PP()))
    return Estimate(ln_S_ref + ln_G / alpha, *ends)
