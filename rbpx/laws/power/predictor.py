"""A prediction at a size without a model, with the 95 % interval of one new model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rbpx.laws.intervals.estimate import Estimate


@dataclass(frozen=True)
class Prediction:
    """Predicted value of a new model of size S, by one law or by model averaging.

    Attributes:
        y: value of the law; the median under model averaging.
        lo: lower end of the 95 % interval of one model; None where there is none, or it exceeds any float.
        beyond: extrapolation factor.
        weights: of the averaged forms; they sum to 1.
        correlated: weight of scatter that is correlated between neighbouring sizes.
        within: prediction of each fitted form.
    """

    S: float
    y: float
    lo: float | None
    hi: float | None
    beyond: float
    weights: Mapping[str, float] = field(default_factory=dict)
    correlated: float | None = None
    within: Mapping[str, "Prediction"] = field(default_factory=dict)

    @property
    def estimate(self) -> Estimate:
        """The value with its interval."""
        return Estimate(self.y, self.lo, self.hi)

    def record(self) -> dict[str, Any]:
        """Returns the prediction as JSON; under model averaging with the prediction of each form."""
        of: dict[str, Any] = {"S": self.S, "y": self.y, "lo": self.lo, "hi": self.hi, "beyond": self.beyond}
        if self.weights:
            within = {form: {"y": at.y, "lo": at.lo, "hi": at.hi} for form, at in self.within.items()}
            of |= {"weights": dict(self.weights), "correlated": self.correlated, "within": within}
        return of


def extrapolation_factor(S: float, sizes: Sequence[float]) -> float:
    """Returns the factor by which S lies outside the sizes; 1 within them."""
    return max(S / max(sizes), min(sizes) / S, 1.0)
