"""How far a prediction moves with one run left out: an answer that hangs on one run is worth what that run is worth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rbpx.laws.pins import Given
from rbpx.laws.predict.prediction import predict_over_forms


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
    S: Sequence[float], y: Sequence[float], targets: Sequence[float], now: Sequence[float], given: Sequence[Given] = ()
) -> list[Moved | None]:
    """Of the prediction over forms at each target the largest move with one run left out; None where none is left.

    Args:
        S: sizes, at least three different ones; equal ones are replicates.
        y: the quantity at each, all of one sign.
        targets: sizes to predict.
        now: the prediction at each, of all runs.
        given: constants, as in `rbpx.laws.predict.prediction.average_forms`.
    """
    most: list[Moved | None] = [None] * len(targets)
    for at in range(len(S)):
        left = predict_over_forms([*S[:at], *S[at + 1 :]], [*y[:at], *y[at + 1 :]], targets, given)
        for t, without in enumerate(left or ()):
            moved, last = Moved(at, (without.y - now[t]) / abs(now[t])), most[t]
            if math.isfinite(moved.share) and (last is None or abs(moved.share) > abs(last.share)):
                most[t] = moved
    return most
