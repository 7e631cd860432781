"""Gap between two texts: how the ratio of the losses of each model changes with size, and where it reaches 1.

L_A / L_B = G (S / S_ref)^delta with delta = alpha_B - alpha_A, for L = cross-entropy or -ln RBP_k. A is the text with
the higher loss at S_ref, so G > 1; delta < 0: the gap closes, until the ratio is 1, and opens the other way beyond.

Source: Relative Scaling Laws for LLMs, arXiv 2510.24626.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.fieller import fieller
from rbpx.laws.power import PowerLawFit, fit_power_law
from rbpx.laws.uncertainty import Uncertainty
from rbpx.status import Status

__all__ = ["EQUATION", "Gap", "fit_gap"]

EQUATION: Final = "L_A / L_B = G * (S / S_ref)^delta"


@dataclass(frozen=True)
class Gap:
    """How the ratio of two losses changes with size; numbers are None where there is no fit.

    Attributes:
        swapped: the second text given is A, the one with the higher loss at S_ref.
        fit: of the ratio as a power law, ratio = C S^(-alpha) with alpha = -delta.
        S_ref: geometric mean of the sizes.
        ratio: G, L_A / L_B at S_ref by the law.
        ratio_lo: lower end of its 95 % interval.
        ratio_hi: upper end.
        delta: exponent of the ratio; below 0 the gap closes.
        delta_lo: lower end of its 95 % interval.
        delta_hi: upper end.
        ln_S_closed: ln of the size at which the ratio is 1; None where the gap does not close.
        ln_S_closed_lo: lower end of its 95 % interval, None where there is none on that side.
        ln_S_closed_hi: upper end.
    """

    swapped: bool
    fit: PowerLawFit
    S_ref: float | None = None
    ratio: float | None = None
    ratio_lo: float | None = None
    ratio_hi: float | None = None
    delta: float | None = None
    delta_lo: float | None = None
    delta_hi: float | None = None
    ln_S_closed: float | None = None
    ln_S_closed_lo: float | None = None
    ln_S_closed_hi: float | None = None

    @property
    def verdict(self) -> str | None:
        """Whether the gap "closes", "opens" or is "constant" as far as the data show; None without a fit."""
        if self.delta_lo is None or self.delta_hi is None:
            return None
        return "closes" if self.delta_hi < 0 else "opens" if self.delta_lo > 0 else "constant"


def fit_gap(
    S: ArrayLike,
    loss_a: ArrayLike,
    loss_b: ArrayLike,
    a_resampled: ArrayLike | None = None,
    b_resampled: ArrayLike | None = None,
) -> Gap:
    """Fit the ratio of two losses by least squares of its logarithm on ln S.

    The ratio is formed at each model, so an effect of the model that is the same on both texts cancels.

    Args:
        S: non-embedding parameters, shape [N].
        loss_a: cross-entropy or -ln RBP_k on the first text, shape [N], positive.
        loss_b: on the second.
        a_resampled: of the first, under resampled documents, shape [B, N].
        b_resampled: of the second; its documents are drawn independently of the first's.

    Raises:
        ValueError: as in `fit_power_law`.
    """
    a_N, b_N = np.asarray(loss_a, dtype=np.float64), np.asarray(loss_b, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):  # a loss of 0 or infinity has no ratio; the fit says so
        ratio_N, ratio_BN = a_N / b_N, None
        if a_resampled is not None and b_resampled is not None:
            ratio_BN = np.asarray(a_resampled, dtype=np.float64) / np.asarray(b_resampled, dtype=np.float64)
        fit = fit_power_law(S, ratio_N, ratio_BN)
        swapped = fit.params.get("ln_C_ref", 0.0) < 0
        if swapped:
            fit = fit_power_law(S, 1 / ratio_N, None if ratio_BN is None else 1 / ratio_BN)
    if fit.alpha is None or fit.status is not Status.ok:
        return Gap(swapped, fit)
    params = fit.params
    ln_G, S_ref = params["ln_C_ref"], params["S_ref"]
    lo = hi = None
    closed: tuple[Any, Any, Any] = (None, None, None)
    if params["uncertainty"] is not None:
        about = Uncertainty.recall(params["uncertainty"])
        lo, hi = (math.exp(end) for end in about.interval(ln_G, np.array([1.0, 0.0])))
        closed = _closed(ln_G, fit.alpha, math.log(S_ref), about)
    return Gap(
        swapped=swapped,
        S_ref=S_ref,
        ratio=math.exp(ln_G),
        ratio_lo=lo,
        ratio_hi=hi,
        delta=-fit.alpha,
        delta_lo=None if fit.alpha_hi is None else -fit.alpha_hi,
        delta_hi=None if fit.alpha_lo is None else -fit.alpha_lo,
        ln_S_closed=closed[0],
        ln_S_closed_lo=closed[1],
        ln_S_closed_hi=closed[2],
        fit=fit,
    )


def _closed(
    ln_G: float, alpha: float, ln_S_ref: float, about: Uncertainty
) -> tuple[float | None, float | None, float | None]:
    """Where ln G - alpha (ln S - ln S_ref) is 0, by inverting the confidence band (Fieller)."""
    if alpha <= 0:
        return None, None, None
    lo, hi = fieller(ln_G, alpha, about.region_PP())
    ends = [None if end is None else ln_S_ref + end for end in (lo, hi)]
    return ln_S_ref + ln_G / alpha, ends[0], ends[1]
