"""What an exponent and its interval say for themselves: whether there is a trend, and whether it is determined."""

from collections.abc import Iterable
from dataclasses import replace

from rbpx.laws.power import PowerLawFit
from rbpx.status import Status

__all__ = ["first_of", "judged", "names_of", "trend_doubts"]


def trend_doubts(alpha: float | None, lo: float | None, hi: float | None) -> list[Status]:
    """no_trend where the interval contains 0, barely_determined where it is as wide as the exponent."""
    if alpha is None or lo is None or hi is None:
        return []
    doubts = [Status.no_trend] if lo <= 0 <= hi else []
    return [*doubts, Status.barely_determined] if hi - lo >= abs(alpha) else doubts


def first_of(reasons: Iterable[Status]) -> Status:
    """The status that goes before the others, in the order of `Status`; ok where there is none."""
    order = list(Status)
    return min(reasons, key=order.index, default=Status.ok)


def names_of(reasons: Iterable[Status]) -> list[str]:
    """Statuses other than ok by name, each once, in the order of `Status`: what params["reasons"] has."""
    return [reason.value for reason in sorted(set(reasons) - {Status.ok}, key=list(Status).index)]


def judged(fit: PowerLawFit) -> PowerLawFit:
    """A law with the status that its exponent has earned beside its own, and every reason in its params."""
    reasons = {fit.status, *trend_doubts(fit.alpha, fit.alpha_lo, fit.alpha_hi)} - {Status.ok}
    return replace(fit, status=first_of(reasons), params=fit.params | {"reasons": names_of(reasons)})
