"""What a table says of any law beside its exponent: a fit in, its constant, interval and sizes as cells out."""

import math

from rbpx.display.grid import UNKNOWN
from rbpx.laws.power import PowerLawFit


def constant(fit: PowerLawFit) -> list[str]:
    """C of a law, at S = 1, and its interval."""
    return [_even(fit.C, 4), ends_of(fit.params.get("C_lo"), fit.params.get("C_hi"))]


def ends_of(lo: float | None, hi: float | None) -> str:
    """An interval of any magnitude; a dash where an end is unknown, one dash where both are."""
    return UNKNOWN if lo is None and hi is None else f"{_even(lo, 3)}..{_even(hi, 3)}"


def _even(value: float | None, digits: int) -> str:
    """A number of any magnitude in so many digits, its zeros among them."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:#.{digits}g}".rstrip(".")


def sizes_of(fit: PowerLawFit) -> list[str]:
    """How many sizes a law is fitted to, and from which S to which."""
    known = fit.params["S"]
    ends = [f"{end:.1e}".replace("e+0", "e").replace("e+", "e") for end in (min(known), max(known))]
    return [str(fit.n_points), "..".join(ends)]
