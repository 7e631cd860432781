"""The size at which a quantity that falls with size reaches a level, over the forms that its law may have.

A single form says exactly where it reaches a level far outside the sizes, and another form that fits as well says that
it never does. So the size is the one at which a new model is as likely below the level as above it, by the prediction
over forms (`rbpx.laws.over_forms`); and its interval has the sizes at which the level lies inside the 95 % interval of
that prediction.

Shapes: T sizes, L levels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from rbpx.laws.form_fits import FormFits
from rbpx.laws.over_forms import TAILS, fit_over_forms

__all__ = ["SEARCHED", "Reached", "reach_over_forms"]

Floats = NDArray[np.float64]

SEARCHED: Final = 1e6  # times outside the sizes; farther than any ladder says anything
_STEP: Final = math.log(10) / 10  # of the search, in ln S
_CLOSE: Final = 1e-9  # in ln S


@dataclass(frozen=True)
class Reached:
    """Where a level is reached, natural logarithms of S; None where that is not within what was searched.

    Attributes:
        ln_S: the smallest size at which a new model is more likely below the level than above it.
        ln_lo: the smallest size at which the level is inside the 95 % interval of a new model.
        ln_hi: the largest.
    """

    ln_S: float | None
    ln_lo: float | None
    ln_hi: float | None


def reach_over_forms(S: ArrayLike, y: ArrayLike, levels: Sequence[float]) -> list[Reached] | None:
    """Where y falls to each level, from a millionth of the smallest size to a million times the largest.

    Args:
        S: sizes, shape [N], positive; equal ones are replicates.
        y: the quantity at each, shape [N], falling with S on the whole.
        levels: values of y, positive.

    Returns:
        One a level; None where `rbpx.laws.over_forms.average_forms` has no prediction, or y is negative.
    """
    fits = fit_over_forms(S, y)
    if fits is None or np.any(np.asarray(y) < 0):
        return None
    x_N = fits.grid.x_N
    far = math.log(SEARCHED)
    x_T = np.arange(x_N[0] - far, x_N[-1] + far + _STEP, _STEP)
    ln_levels = np.log(levels)
    mixture = fits.at(x_T)
    return [_reached(fits, x_T, mixture.below(ln_level)[0], float(ln_level)) for ln_level in ln_levels]


def _reached(fits: FormFits, x_T: Floats, below_T: Floats, ln_level: float) -> Reached:
    """Where the probability of less than the level passes the tails; it rises with S, but need not do so throughout."""
    middle, lower, upper = TAILS

    def root(tail: float, t: int) -> float | None:
        """Where the probability is `tail`, between the sizes t - 1 and t."""
        if not 0 < t < len(x_T):
            return None
        if below_T[t] == tail:
            return float(x_T[t])
        return float(
            brentq(lambda x: fits.at(np.array([x])).below(ln_level)[0, 0] - tail, x_T[t - 1], x_T[t], xtol=_CLOSE)
        )

    def first(tail: float) -> int:
        return int(np.argmax(below_T >= tail)) if np.any(below_T >= tail) else len(x_T)

    last = len(x_T) - int(np.argmax(below_T[::-1] < upper)) if np.any(below_T < upper) else 0
    return Reached(root(middle, first(middle)), root(lower, first(lower)), root(upper, last))
