"""Constants of a law that are given beforehand: pinned to a value, or with a normal prior.

A prior becomes seven values at which the law is fitted with the constant held; each counts for its prior density times
what the points say of it. They lie where both agree, so a wide prior is no coarse one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Final

_VALUES: Final = 7
_FAR: Final = 3.7  # standard deviations: a prior that lies farther from where the constant may be excludes it
_REACH: Final = 2.8  # standard deviations to either side: values lie .8 apart


@dataclass(frozen=True)
class Pin:
    """A given constant.

    Attributes:
        value: of it.
        sd: standard deviation of its prior; 0 where it is pinned.
    """

    value: float
    sd: float = 0.0

    def __str__(self) -> str:
        """As typed."""
        return f"{self.value:g}" + (f" +- {self.sd:g}" if self.sd else "")

    def values(
        self, lower: float = -math.inf, upper: float = math.inf, told: tuple[float, float] | None = None
    ) -> list[tuple[float, float]]:
        """Values of the constant, each with its prior density; none where it cannot be what is given.

        Args:
            lower: the least that it may be.
            upper: what it must be less than.
            told: what the points say of it without the prior, and the standard deviation of that, where they do.
        """
        if not self.sd:
            return [(self.value, 1.0)] if lower <= self.value < upper else []
        prior, mean, sd = NormalDist(self.value, self.sd), self.value, self.sd
        if max(lower - self.value, self.value - upper) > _FAR * self.sd:
            return []
        if told is not None:
            sd = 1 / math.hypot(1 / self.sd, 1 / told[1])
            mean = sd**2 * (self.value / self.sd**2 + told[0] / told[1] ** 2)
        lo, hi = max(lower, mean - _REACH * sd), min(upper, mean + _REACH * sd)
        step = (hi - lo) / _VALUES
        return [(at, prior.pdf(at)) for at in (lo + (n + 0.5) * step for n in range(_VALUES))] if step > 0 else []


Pins = Mapping[str, Pin]
"""Given constants by name, as sources print them: E, alpha, ..."""

NO_PINS: Final[Pins] = {}


@dataclass(frozen=True)
class Given:
    """Values of all given constants.

    Attributes:
        values: by name.
        prior: their prior density; 1 without priors.
    """

    values: Mapping[str, float]
    prior: float = 1.0


class NotGiven(ValueError):
    """A constant cannot be what is given."""


def given_values(
    pins: Pins, bounds: Mapping[str, tuple[float, float]], told: Mapping[str, tuple[float, float]]
) -> list[Given]:
    """The values that given constants may have together.

    Args:
        pins: given.
        bounds: the least that a constant may be and what it must be less than, where it is bounded.
        told: as in `Pin.values`, by name.

    Raises:
        NotGiven: a constant cannot be what is given.
    """
    each = []
    for name, pin in pins.items():
        lower, upper = bounds.get(name, (-math.inf, math.inf))
        each.append(pin.values(lower, upper, told.get(name)))
        if not each[-1]:
            least = "above 0" if lower > 0 else f"at least {lower:g}"
            most = "" if math.isinf(upper) else f" and below {upper:.4g}" + (", the smallest value" * (name == "E"))
            raise NotGiven(f"{name}={pin} is impossible: {name} is {least}{most}")
    return [
        Given({name: at for name, (at, _) in zip(pins, chosen, strict=True)}, math.prod(prior for _, prior in chosen))
        for chosen in product(*each)
    ]
