"""Predictions of a fitted law in size at sizes that were not fitted, with their intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rbpx.laws.exponential import exp_or_none
from rbpx.laws.power import PowerLawFit
from rbpx.laws.uncertainty import Uncertainty

__all__ = ["Prediction", "along", "outside", "predict"]


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


def predict(fit: PowerLawFit, S: float) -> Prediction:
    """The value of the law at another size, with an interval for a single model of that size.

    Args:
        fit: a fit that has numbers.
        S: non-embedding parameters.

    Raises:
        ValueError: the fit has no numbers, or S is not positive and finite.
    """
    if fit.alpha is None or not 0 < S < math.inf:
        raise ValueError(f"nothing to predict at S = {S}: status {fit.status}")
    params = fit.params
    E = params["E"]
    x = math.log(S / params["S_ref"])
    theta_P = np.array([params["ln_C_ref"], fit.alpha, *([] if E is None else [E])])
    ln_power = float(theta_P[0] - theta_P[1] * x)
    y = math.exp(ln_power) + (E or 0.0)
    share = math.exp(ln_power) / y
    gradient_P = np.array([share, -x * share, *([] if E is None else [1 / y])])
    record = params["uncertainty"]
    lo = hi = None
    if record is not None:
        about = Uncertainty.recall(record)
        lo, hi = (exp_or_none(end) for end in about.interval(math.log(y), gradient_P, new_model=True))
    ends = sorted(params["sign"] * end for end in (lo, hi)) if lo is not None and hi is not None else [None, None]
    return Prediction(S, params["sign"] * y, ends[0], ends[1], outside(S, params["S"]))


def outside(S: float, sizes: Sequence[float]) -> float:
    """The factor by which S lies outside the sizes; 1 within them."""
    return max(S / max(sizes), min(sizes) / S, 1.0)


def along(fit: PowerLawFit, n: int) -> list[Prediction]:
    """The predictions of the law at n sizes from its smallest to its largest, evenly spaced in ln S.

    Raises:
        ValueError: the fit has no numbers.
    """
    sizes = fit.params["S"]
    return [predict(fit, float(S)) for S in np.geomspace(min(sizes), max(sizes), n)]
