"""Turns fixed parameters and normal priors of a law into values at which the law is fitted with them held.

A prior becomes seven values that cover the overlap of prior and likelihood, so that a wide prior is not sampled
coarsely.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Final

_VALUES: Final = 7
_FAR: Final = 3.7  # standard deviations: a prior whose mean is farther outside the bounds is rejected
_REACH: Final = 2.8  # standard deviations to either side: values lie .8 apart


@dataclass(frozen=True)
class Prior:
    """A normal prior on a parameter, or its fixed value where sd is 0."""

    value: float
    sd: float = 0.0

    def __str__(self) -> str:
        return f"{self.value:g}" + (f" +- {self.sd:g}" if self.sd else "")

    def values(
        self, lower: float = -math.inf, upper: float = math.inf, estimate: tuple[float, float] | None = None
    ) -> list[tuple[float, float]]:
        """Values from `lower` to below `upper`, each with its prior density; none where the prior lies outside.

        `estimate` is that of the points alone, with its standard deviation.
        """
        if not self.sd:
            return [(self.value, 1.0)] if lower <= self.value < upper else []
        prior, mean, sd = NormalDist(self.value, self.sd), self.value, self.sd
        if max(lower - self.value, self.value - upper) > _FAR * self.sd:
            return []
        if estimate is not None:
            sd = 1 / math.hypot(1 / self.sd, 1 / estimate[1])
            mean = sd**2 * (self.value / self.sd**2 + estimate[0] / estimate[1] ** 2)
        lo, hi = max(lower, mean - _REACH * sd), min(upper, mean + _REACH * sd)
        step = (hi - lo) / _VALUES
        return [(at, prior.pdf(at)) for at in (lo + (n + 0.5) * step for n in range(_VALUES))] if step > 0 else []


Priors = Mapping[str, Prior]
"""Fixed parameters and priors by name, as papers print them: E, alpha, ..."""

NO_PRIORS: Final[Priors] = {}


@dataclass(frozen=True)
class FixedValues:
    """A value for each parameter that is fixed or has a prior, and their joint prior density."""

    values: Mapping[str, float]
    prior: float = 1.0


class ImpossiblePrior(ValueError):
    """A fixed parameter or prior lies outside the bounds of its parameter."""


def fixed_values(
    pins: Priors, bounds: Mapping[str, tuple[float, float]], estimates: Mapping[str, tuple[float, float]]
) -> list[FixedValues]:
    """Every combination of the values of the fixed parameters and priors, within the bounds by name.

    Raises:
        ImpossiblePrior: one is outside its bounds.
    """
    each = []
    for name, pin in pins.items():
        lower, upper = bounds.get(name, (-math.inf, math.inf))
        each.append(pin.values(lower, upper, estimates.get(name)))
        if not each[-1]:
            least = "above 0" if lower > 0 else f"at least {lower:g}"
            most = "" if math.isinf(upper) else f" and below {upper:.4g}" + (", the smallest value" * (name == "E"))
            raise ImpossiblePrior(f"{name}={pin} is impossible: {name} is {least}{most}")
    return [
        FixedValues(
            {name: at for name, (at, _) in zip(pins, chosen, strict=True)}, math.prod(prior for _, prior in chosen)
        )
        for chosen in product(*each)
    ]
