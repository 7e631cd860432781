"""Constants of a power law that are given: which ones may be, and what points say of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rbpx.laws.intervals.estimate import Estimate, flat
from rbpx.laws.names import Method
from rbpx.laws.priors import Prior

PINNABLE: Final = {Method.ols: ("C", "alpha"), Method.offset: ("C", "alpha", "E")}
"""The constants of each method that can be given."""

NOTHING: Final[Mapping[str, float]] = {}
_AGAINST: Final = 0.05  # a smaller p speaks against a value


@dataclass(frozen=True)
class FixedParameter:
    """A constant that was given.

    Attributes:
        name: of it.
        pin: what was given.
        p: of the test of the value against the points, the other constants free.
        free: what the points say of it without.
        now: what it is; of a prior with what the points add.
    """

    name: str
    pin: Prior
    p: float | None
    free: Estimate
    now: Estimate

    @property
    def is_refused(self) -> bool:
        """Whether the points speak against the value."""
        return self.p is not None and self.p < _AGAINST

    def record(self) -> dict[str, Any]:
        """In params."""
        of = {"value": self.pin.value, "sd": self.pin.sd, "p": self.p}
        return of | flat({"free": self.free, "now": self.now})
