"""Which parameters of a power law can be fixed or have a prior, and how well such values agree with the points."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rbpx.laws.intervals.estimate import Estimate, flat
from rbpx.laws.names import Method
from rbpx.laws.priors import Prior

PINNABLE: Final = {Method.ols: ("C", "alpha"), Method.offset: ("C", "alpha", "E")}
"""Parameters that can be fixed or have a prior, by method."""

NOTHING: Final[Mapping[str, float]] = {}
_AGAINST: Final = 0.05  # a value with a smaller p is refused


@dataclass(frozen=True)
class FixedParameter:
    """A fixed parameter, or one with a prior.

    Attributes:
        p: p value of `pin.value`, tested with the other parameters free.
        free: estimate without `pin`.
        now: estimate in the law; for a prior, the posterior.
    """

    name: str
    pin: Prior
    p: float | None
    free: Estimate
    now: Estimate

    @property
    def is_refused(self) -> bool:
        """Whether the points contradict the value."""
        return self.p is not None and self.p < _AGAINST

    def record(self) -> dict[str, Any]:
        """Returns the entry in `params`."""
        of = {"value": self.pin.value, "sd": self.pin.sd, "p": self.p}
        return of | flat({"free": self.free, "now": self.now})
