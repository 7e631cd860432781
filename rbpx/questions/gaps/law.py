"""Fits how the ratio of the losses on two texts changes with size.

L_A / L_B = G (S / S_ref)^delta, delta = alpha_B - alpha_A. A has the higher loss at S_ref, so G > 1; with delta < 0 the
gap closes. Source: Relative Scaling Laws for LLMs, arXiv 2510.24626. Shapes: N sizes, B replicates.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Replicates, flat
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.power.uncertainty import ALPHA, p_of_zero
from rbpx.laws.prediction.verdict import with_reasons
from rbpx.status import Status

EQUATION: Final = "L_A / L_B = G * (S / S_ref)^delta"


@dataclass(frozen=True)
class Gap:
    """Law of the ratio of two losses; numbers are None without a fit.

    Attributes:
        swapped: whether the second text given is A.
        fit: the ratio as a power law with alpha = -delta.
        p: two-sided, of delta = 0; p_adjusted is for all gaps of the request (Holm).
    """

    swapped: bool
    fit: PowerLaw
    S_ref: float | None = None
    ratio: Estimate = NO_ESTIMATE
    delta: Estimate = NO_ESTIMATE
    p: float | None = None
    p_adjusted: float | None = None

    @property
    def verdict(self) -> str | None:
        """What the gap does: "may close" or "may open" where only its own p is below 0.05, not the adjusted one."""
        if self.p is None or self.p_adjusted is None or self.delta.value is None:
            return None
        if self.p_adjusted < ALPHA:
            return "closes" if self.delta.value < 0 else "opens"
        if self.p < ALPHA:
            return "may close" if self.delta.value < 0 else "may open"
        return "parallel"

    def record(self) -> dict[str, Any]:
        """Plain values for JSON, without the fit."""
        known = {name: value for name, value in vars(self).items() if name != "fit"}
        return flat(known | {"verdict": self.verdict})


def settle(gap: Gap, p_adjusted: float | None, doubts: Collection[Status] = ()) -> Gap:
    """Sets the p of a gap adjusted over all of a request, which decides its verdict and status."""
    gap = replace(gap, p_adjusted=p_adjusted)
    if gap.delta.value is None:
        return gap
    trendless = [Status.no_trend] if gap.verdict in ("parallel", "may close", "may open") else []
    return replace(gap, fit=with_reasons(gap.fit, [*doubts, *trendless]))


def fit_gap(
    S: ArrayLike,
    loss_a: ArrayLike,
    loss_b: ArrayLike,
    a_replicates: ArrayLike | None = None,
    b_replicates: ArrayLike | None = None,
    n_effective: float | None = None,
) -> Gap:
    """Fits the ratio of two losses by least squares of its logarithm on ln S.

    It is formed at each model, so what both texts share cancels. Replicates of the two are independent; `n_effective`
    is that of the text with fewer documents.
    """
    sides, drawn = (np.array(pair, np.float64) for pair in ((loss_a, loss_b), (a_replicates, b_replicates)))
    with np.errstate(divide="ignore", invalid="ignore"):  # a loss of 0 or infinity has no ratio; the fit reports it
        swapped = -math.inf < float(np.log(sides[0] / sides[1]).mean()) < 0
        sides, drawn = (pair[:: -1 if swapped else 1] for pair in (sides, drawn))
        replicates = Replicates.of(drawn[0] / drawn[1], n_effective) if drawn.ndim == 3 else None
        fit = fit_power_law(S, sides[0] / sides[1], replicates)
    if fit.alpha.value is None or fit.r2.value is None or fit.theta_P is None:
        return Gap(swapped, fit)
    ln_G, about = float(fit.theta_P[0]), fit.uncertainty
    gap = Gap(swapped, fit, fit.S_ref, Estimate(math.exp(ln_G)), fit.alpha.times(-1))
    if about is None:
        return gap
    ratio = Estimate(math.exp(ln_G), *map(math.exp, about.interval(ln_G, np.array([1.0, 0.0]))))
    p = p_of_zero(fit.alpha.value, np.array([0.0, 1.0]), about)
    return settle(replace(gap, ratio=ratio, p=p), p)
