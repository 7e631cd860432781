"""Numbers as people read them: decimals, magnitudes, intervals, percentages and times; a dash where unknown."""

import math
from collections.abc import Callable
from typing import Final

UNKNOWN: Final = "–"


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many decimals."""
    return _written(value, f".{digits}f")


def _written(value: float | None, form: str) -> str:
    return UNKNOWN if value is None or not math.isfinite(value) else format(value, form)


def decimals(digits: int) -> Callable[[float | None], str]:
    """How numbers with so many decimals are written."""
    return lambda value: number(value, digits)


def signed(value: float | None, digits: int = 4) -> str:
    """A difference with so many decimals and its sign."""
    return _written(value, f"+.{digits}f")


def short(value: float | None) -> str:
    """A number of any magnitude in three digits."""
    return _rounded(value, 3)


def rough(value: float | None) -> str:
    """A number of any magnitude in two digits."""
    return _rounded(value, 2)


def _rounded(value: float | None, digits: int) -> str:
    """Written out up to a million, with zeros after the last significant digit; beyond that with an exponent."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    rounded = f"{value:.{digits}g}"
    return f"{float(rounded):,.0f}" if 10 ** (digits - 1) <= abs(float(rounded)) < 1e6 else rounded


def significant(value: float | None, digits: int) -> str:
    """A number of any magnitude in so many digits, trailing zeros included."""
    return _written(value, f"#.{digits}g").rstrip(".")


def span(lo: float | None, hi: float | None, digits: int = 4) -> str:
    """An interval; a dash where an end is unknown, one dash where both are."""
    return UNKNOWN if lo is None and hi is None else f"{number(lo, digits)}..{number(hi, digits)}"


def percent(value: float | None) -> str:
    """A relative error with its sign."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:+.1%}" if abs(value) < 10 else f"{value:+,.0%}" if abs(value) < 1e4 else f"{100 * value:+.0e}%"


def part(share: float) -> str:
    """A share between none and all in percent: two digits, or as many as tell it from all; neither 0 nor 100."""
    few, left = 100 * share, 100 * (1 - share)
    decimals = 1 - math.floor(math.log10(few)) if few < left else -math.floor(math.log10(left))
    return f"{few:.{max(0, decimals)}f}"


def time(seconds: float | None) -> str:
    """A time in its two largest units; from a hundred days on in days."""
    if seconds is None:
        return UNKNOWN
    if seconds < 60:
        return f"{seconds:.0f}s" if seconds >= 1 else f"{seconds:.1f}s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}m"
    hours = round(seconds / 3600)
    if hours < 48:
        return f"{minutes // 60}h{minutes % 60:02}m"
    return f"{hours // 24}d{hours % 24:02}h" if hours < 2400 else f"{hours // 24:,}d"


def in_bytes(n: float | None) -> str:
    """An amount of bytes in three digits, in the decimal units that the hub and disks are told in."""
    if n is None:
        return UNKNOWN
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= 0.9995 * size:
            return f"{n / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{n:.0f} B"
