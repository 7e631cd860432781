"""What an exponent and its interval say for themselves: whether there is a trend, and whether it is determined."""

from collections.abc import Iterable

from rbpx.status import Status

__all__ = ["first_of", "trend_doubts"]


def trend_doubts(alpha: float | None, lo: float | None, hi: float | None) -> list[Status]:
    """no_trend where the interval contains 0, barely_determined where it is as wide as the exponent."""
    if alpha is None or lo is None or hi is None:
        return []
    if lo <= 0 <= hi:
        return [Status.no_trend]
    return [Status.barely_determined] if hi - lo >= abs(alpha) else []


def first_of(reasons: Iterable[Status]) -> Status:
    """The status that goes before the others, in the order of `Status`; ok where there is none."""
    order = list(Status)
    return min(reasons, key=order.index, default=Status.ok)
