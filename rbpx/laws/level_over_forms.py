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
from numpy.typing import ArrayLike

from rbpx.laws.arrays import Floats
from rbpx.laws.over_forms import TAILS, fit_over_forms
from rbpx.laws.roots import roots

SEARCHED: Final = 1e6  # times outside the sizes; farther than any ladder says anything
_STEP: Final = math.log(10) / 10  # of the search, in ln S
_CLOSE: Final = 1e-12  # in ln S


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
    ln_level_L = np.log(levels)
    mixture = fits.at(x_T)
    passed = [_passed(mixture.below(ln_level)[0]) for ln_level in ln_level_L]
    # All that lie between two sizes are searched at once.
    ends = [(at, t, tail) for at, of_level in enumerate(passed) for t, tail in zip(of_level, TAILS, strict=True)]
    inner = [(at, t, tail) for at, t, tail in ends if 0 < t < len(x_T)]
    level_R, t_R = (np.array(column, dtype=np.intp) for column in ([i[0] for i in inner], [i[1] for i in inner]))
    tail_R = np.array([tail for *_, tail in inner])
    ln_S_R = roots(lambda x_R: fits.at(x_R).below(ln_level_L[level_R])[0] - tail_R, x_T[t_R - 1], x_T[t_R], _CLOSE)
    found = {(at, tail): float(ln_S) for (at, _, tail), ln_S in zip(inner, ln_S_R, strict=True)}
    return [Reached(*(found.get((at, tail)) for tail in TAILS)) for at in range(len(levels))]


def _passed(below_T: Floats) -> list[int]:
    """The size before which the probability of less than a level passes each of the tails; 0 or T where none is.

    It rises with S, but need not do so throughout: the first size that is as likely below as above the level, the first
    at which the level is inside the interval, and the one behind the last.
    """
    middle, lower, upper = TAILS

    def first(tail: float) -> int:
        return int(np.argmax(below_T >= tail)) if np.any(below_T >= tail) else len(below_T)

    last = len(below_T) - int(np.argmax(below_T[::-1] < upper)) if np.any(below_T < upper) else 0
    return [first(middle), first(lower), last]
