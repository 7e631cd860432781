"""What a fitted power law says of another size: the value, with the interval of one model of that size.

Shapes: P parameters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.numeric import Floats, exp_or_none
from rbpx.laws.power.uncertainty import Uncertainty


@dataclass(frozen=True)
class Prediction:
    """The prediction of a law at one size.

    Attributes:
        S: the size.
        y: the value that the law gives.
        lo: lower end of the 95 % interval of what a model of this size would show; None where the fit has none.
        hi: upper end.
        beyond: the factor by which S lies outside the fitted sizes; 1 within them.
    """

    S: float
    y: float
    lo: float | None
    hi: float | None
    beyond: float

    @property
    def estimate(self) -> Estimate:
        """The value with its interval."""
        return Estimate(self.y, self.lo, self.hi)

    def record(self) -> dict[str, float | None]:
        """As JSON takes it."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Predictor:
    """What a law predicts from.

    Attributes:
        theta_P: ln C at S_ref, alpha and, where it has one, E.
        S_ref: a size.
        sign: of the values.
        S: the sizes that were fitted.
        about: the uncertainty of theta_P; None where predictions have no interval.
    """

    theta_P: Floats
    S_ref: float
    sign: int
    S: Sequence[float]
    about: Uncertainty | None

    def at(self, S: float) -> Prediction:
        """The value of the law, with an interval for a single model of that size."""
        x = math.log(S / self.S_ref)
        ln_C_ref, alpha, *offset = self.theta_P.tolist()
        power = math.exp(ln_C_ref - alpha * x)
        y = power + sum(offset)
        lo = hi = None
        if self.about is not None:
            gradient_P = np.array([power / y, -x * power / y, *(1 / y for _ in offset)])
            lo, hi = (exp_or_none(end) for end in self.about.interval(math.log(y), gradient_P, new_model=True))
        ends = sorted(self.sign * end for end in (lo, hi)) if lo is not None and hi is not None else [None, None]
        return Prediction(S, self.sign * y, ends[0], ends[1], outside(S, self.S))


def outside(S: float, sizes: Sequence[float]) -> float:
    """The factor by which S lies outside the sizes; 1 within them."""
    return max(S / max(sizes), min(sizes) / S, 1.0)
