"""Predicted values of new models, by one law or over forms, and how far out they lie."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.numeric import Floats
from rbpx.status import Status, first_of

ROUNDED: Final = 1.05  # times a limit, because sizes are typed and printed rounded
FAR: Final = 10 * ROUNDED  # extrapolation factor that no backtest covers


@dataclass(frozen=True)
class Prediction:
    """Predicted value of a new model of size S, by one law or by model averaging.

    Attributes:
        y: the median under model averaging.
        lo: lower end of the 95 % interval of one model; None where there is none, or it exceeds any float.
        beyond: extrapolation factor.
        correlated: weight of scatter that is correlated between neighbouring sizes.
        within: prediction of each form.
        widened: factor of backtests, in ln |y|.
        reasons: None before the prediction is judged.
        remarks: statuses that explain a wide interval and are no warning.
        D: tokens of the new model, where size and tokens predict it.
    """

    S: float
    y: float
    lo: float | None
    hi: float | None
    beyond: float
    weights: Mapping[str, float] = field(default_factory=dict)
    correlated: float | None = None
    within: Mapping[str, "Prediction"] = field(default_factory=dict, repr=False)
    widened: float = 1.0
    reasons: tuple[Status, ...] | None = None
    remarks: tuple[Status, ...] = ()
    D: float | None = None

    def __repr__(self) -> str:
        between = "no interval" if self.lo is None or self.hi is None else f"{self.lo:.4g} to {self.hi:.4g}"
        return f"{self.y:.4g} ({between}) at S = {self.S:.4g}{'' if self.status is None else f': {self.status.label}'}"

    @property
    def status(self) -> Status | None:
        """The first of the reasons."""
        return None if self.reasons is None else first_of(self.reasons)

    @property
    def estimate(self) -> Estimate:
        """The value with its interval."""
        return Estimate(self.y, self.lo, self.hi)

    def record(self) -> dict[str, Any]:
        """The prediction, with that of each averaged form."""
        of: dict[str, Any] = {"S": self.S, "y": self.y, "lo": self.lo, "hi": self.hi, "beyond": self.beyond}
        of |= {} if self.D is None else {"D": self.D}
        if self.weights:
            within = {form: {"y": at.y, "lo": at.lo, "hi": at.hi} for form, at in self.within.items()}
            of |= {"weights": dict(self.weights), "correlated": self.correlated, "within": within}
        return of


def extrapolation_factor(S: float, sizes: Sequence[float]) -> float:
    """The factor by which S lies outside the sizes; 1 within them."""
    return max(S / max(sizes), min(sizes) / S, 1.0)


class Predictions(NamedTuple):
    """Predicted values of several new models, as arrays; NaN where there is none."""

    S: Floats
    y: Floats
    lo: Floats
    hi: Floats
    beyond: Floats
    status: NDArray[Any]

    @classmethod
    def of(cls, each: Sequence[Prediction], shape: tuple[int, ...]) -> "Predictions":
        """Predictions as arrays of a shape."""
        *names, _ = cls._fields
        columns = {name: np.array([getattr(of, name) for of in each], np.float64).reshape(shape) for name in names}
        return cls(**columns, status=np.array([of.status for of in each]).reshape(shape))
