"""What an exponent and its interval say for themselves: whether there is a trend, and whether it is determined."""

from collections.abc import Collection
from dataclasses import replace

from rbpx.laws.power import PowerLawFit
from rbpx.status import Status, first_of, in_order


def trend_doubts(alpha: float | None, lo: float | None, hi: float | None) -> list[Status]:
    """no_trend where the interval contains 0, barely_determined where it is as wide as the exponent."""
    if alpha is None or lo is None or hi is None:
        return []
    doubts = [Status.no_trend] if lo <= 0 <= hi else []
    return [*doubts, Status.barely_determined] if hi - lo >= abs(alpha) else doubts


def with_reasons(fit: PowerLawFit, reasons: Collection[Status]) -> PowerLawFit:
    """A fit with the first of the reasons as its status and all of them as its reasons."""
    return replace(fit, status=first_of(reasons), reasons=in_order(reasons))


def judged(fit: PowerLawFit) -> PowerLawFit:
    """A law with the status that its exponent has earned beside its own, and every reason."""
    return with_reasons(fit, [fit.status, *trend_doubts(fit.alpha, fit.alpha_lo, fit.alpha_hi)])
