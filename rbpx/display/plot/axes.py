"""The axes of a plot: the values to be shown in; the place of each and the ticks out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MARGIN: Final = 0.03  # of the axis, beside the outermost values
_STEPS: Final = (1, 2, 5)


@dataclass(frozen=True)
class Axis:
    """What an axis shows, and whether it is logarithmic."""

    label: str
    log: bool = True

    def holds(self, value: float) -> bool:
        """Whether a value has a place on the axis."""
        return math.isfinite(value) and (value > 0 or not self.log)


@dataclass(frozen=True)
class Scale:
    """An axis with its ends; `lo` and `hi` are logarithms where it is logarithmic."""

    axis: Axis
    lo: float
    hi: float

    def place(self, value: float) -> float:
        """Where on the axis a value lies: 0 at its lower end, 1 at its upper end."""
        return ((math.log10(value) if self.axis.log else value) - self.lo) / (self.hi - self.lo)

    def ticks(self, most: int) -> list[float]:
        """Round values on the axis, in order: decades, else 1, 2 and 5 of each decade, else even steps."""
        if not self.axis.log:
            return _even(self.lo, self.hi, most)
        decades = range(math.ceil(self.lo), math.floor(self.hi) + 1)
        if len(decades) >= 3:
            every = -(-len(decades) // most)
            return [10.0**n for n in decades if n % every == 0]
        span = range(math.floor(self.lo), math.floor(self.hi) + 1)
        finer = [step * 10.0**n for n in span for step in _STEPS]
        inside = [tick for tick in finer if self.lo <= math.log10(tick) <= self.hi]
        return inside if len(inside) >= 3 else _even(10**self.lo, 10**self.hi, most)


def scale_of(axis: Axis, values: Sequence[float]) -> Scale:
    """The scale on which these values fit with a margin; values without a place on the axis are ignored.

    Raises:
        ValueError: none of them has a place on it.
    """
    places = [math.log10(value) if axis.log else value for value in values if axis.holds(value)]
    if not places:
        raise ValueError(f"no value has a place on the axis of {axis.label}")
    lo, hi = min(places), max(places)
    margin = MARGIN * (hi - lo) or max(abs(lo), 1.0) / 10  # a single value is placed in the middle
    return Scale(axis, lo - margin, hi + margin)


def tick_names(ticks: Sequence[float]) -> list[str]:
    """The labels of the ticks of one axis, in one notation, with as many digits as they need."""
    if all(tick == 0 or 1e-3 <= abs(tick) < 1e5 for tick in ticks):
        return [f"{tick:.10g}" for tick in ticks]
    digits = next(n for n in range(17) if all(math.isclose(float(f"{tick:.{n}e}"), tick) for tick in ticks))
    return [f"{tick:.{digits}e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e") for tick in ticks]


def _even(lo: float, hi: float, most: int) -> list[float]:
    rough = (hi - lo) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (*_STEPS, 10) if step * power >= rough * (1 - 1e-9))
    return [
        round(n * step, 12 - math.floor(math.log10(step)))
        for n in range(math.ceil(lo / step), math.floor(hi / step) + 1)
    ]
