"""How far a prediction moves with one run left out, and how far that run lies from what the others say.

An answer that hangs on one run is worth what that run is worth.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rbpx.laws.prediction.calibration import in_sd
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.priors import FixedValues


@dataclass(frozen=True)
class Moved:
    """The largest move of one prediction.

    Attributes:
        by: position of the run that is left out.
        share: (prediction without it - prediction) / |prediction|.
    """

    by: int
    share: float


def moved_most(
    S: Sequence[float],
    y: Sequence[float],
    targets: Sequence[float],
    now: Sequence[float],
    given: Sequence[FixedValues] = (),
) -> list[Moved | None]:
    """Of the prediction over forms at each target the largest move with one run left out; None where none is left.

    Args:
        S: sizes, at least three different ones; equal ones are replicates.
        y: the quantity at each, all of one sign.
        targets: sizes to predict.
        now: the prediction at each, of all runs.
        given: constants, as in `rbpx.laws.prediction.prediction.average_forms`.
    """
    most: list[Moved | None] = [None] * len(targets)
    for at in range(len(S)):
        left = average_forms([*S[:at], *S[at + 1 :]], [*y[:at], *y[at + 1 :]], targets, given, each_form=False)
        for t, without in enumerate(left or ()):
            moved, last = Moved(at, (without.y - now[t]) / abs(now[t])), most[t]
            if math.isfinite(moved.share) and (last is None or abs(moved.share) > abs(last.share)):
                most[t] = moved
    return most


@dataclass(frozen=True)
class Off:
    """How far a run lies from what the others say of its size.

    Attributes:
        at: position of the run.
        share: (y - prediction over forms by the others) / |prediction|.
        in_sd: the same in ln |y|, over the standard deviation of a new run.
    """

    at: int
    share: float
    in_sd: float


def farthest_off(S: Sequence[float], y: Sequence[float]) -> Off | None:
    """The run that lies farthest, in standard deviations, from what the others say; None where these say nothing.

    Args:
        S: sizes, as in `moved_most`.
        y: the quantity at each.
    """
    farthest: Off | None = None
    for at, (size, value) in enumerate(zip(S, y, strict=True)):
        rest = [*S[:at], *S[at + 1 :]], [*y[:at], *y[at + 1 :]]
        for others in average_forms(*rest, [size], each_form=False) or ():
            away = in_sd(others.estimate, value)
            if away is not None and (farthest is None or abs(away) > abs(farthest.in_sd)):
                farthest = Off(at, (value - others.y) / abs(others.y), away)
    return farthest
