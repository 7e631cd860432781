"""Influence of single runs: how far a prediction moves without a run, and how far a run lies from the others."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rbpx.laws.prediction.calibration import error_in_sd
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.priors import FixedValues


@dataclass(frozen=True)
class Influence:
    """The largest move of one prediction, (prediction without run `by` - prediction) / |prediction|."""

    by: int
    share: float


def most_influential(
    S: Sequence[float],
    y: Sequence[float],
    targets: Sequence[float],
    now: Sequence[float],
    given: Sequence[FixedValues] = (),
) -> list[Influence | None]:
    """The largest move of the averaged prediction `now` at each target when one run is left out."""
    most: list[Influence | None] = [None] * len(targets)
    for at in range(len(S)):
        left = average_forms([*S[:at], *S[at + 1 :]], [*y[:at], *y[at + 1 :]], targets, given, each_form=False)
        for t, without in enumerate(left or ()):
            moved, last = Influence(at, (without.y - now[t]) / abs(now[t])), most[t]
            if math.isfinite(moved.share) and (last is None or abs(moved.share) > abs(last.share)):
                most[t] = moved
    return most


@dataclass(frozen=True)
class Deviation:
    """Deviation of run `at` from the prediction of the others, relative and in standard deviations of ln |y|."""

    at: int
    share: float
    in_sd: float


def farthest_run(S: Sequence[float], y: Sequence[float]) -> Deviation | None:
    """The run that lies farthest, in standard deviations, from the prediction of the others."""
    farthest: Deviation | None = None
    for at, (size, value) in enumerate(zip(S, y, strict=True)):
        rest = [*S[:at], *S[at + 1 :]], [*y[:at], *y[at + 1 :]]
        for others in average_forms(*rest, [size], each_form=False) or ():
            away = error_in_sd(others.estimate, value)
            if away is not None and (farthest is None or abs(away) > abs(farthest.in_sd)):
                farthest = Deviation(at, (value - others.y) / abs(others.y), away)
    return farthest
