"""Predictions where size and tokens vary together: near their line, by a law in one axis, and nowhere else.

Along D = c S^m the surface is a law in S, whatever its constants, so the points say what it is there though they cannot
say which part is due to size. With one or two sizes there is a law in D at each of them, and the other way round.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.arrays import Floats
from rbpx.laws.interval import Estimate
from rbpx.laws.over_forms import average_forms
from rbpx.laws.surface.design import Design
from rbpx.laws.surface.runs import Runs

_NEAR: Final = math.log(1.25)  # a point is near a line that is exact up to this factor
_SAME: Final = 0.01


@dataclass(frozen=True)
class OnLine:
    """A prediction by a law in one axis.

    Attributes:
        y: what a new run would show, with a 95 % interval over forms (`rbpx.laws.over_forms`); None where the point is
            not near enough, or fewer than 3 points are on the line.
        axis: in which the law is, "S" or "D".
        n_points: of the law; points that coincide along the axis count once.
        away: the factor by which the point is off the line.
    """

    y: Estimate
    axis: str
    n_points: int
    away: float


def predict_on_line(runs: Runs, design: Design, S: float, D: float) -> OnLine:
    """Predict y near the line of a collinear design.

    Args:
        runs: the points.
        design: of them, by `rbpx.laws.surface.design.judge`.
        S: size.
        D: tokens.
    """
    if design.is_line:
        along_N, at = (runs.S_N, S) if design.along == "S" else (runs.D_N, D)
        # Points that scatter about the line say where near is, if they scatter more than a factor of 1.25.
        widest = max(design.away(*each) for each in zip(runs.S_N.tolist(), runs.D_N.tolist(), strict=True))
        return _law(along_N, runs.y_N, at, design.along, design.away(S, D), max(widest, _NEAR))
    axis = "D" if design.n_S < design.n_D else "S"
    along_N, across_N, at, given = (runs.D_N, runs.S_N, D, S) if axis == "D" else (runs.S_N, runs.D_N, S, D)
    away_N = np.abs(np.log(across_N / given))
    nearest_N = away_N <= away_N.min() + _SAME
    return _law(along_N[nearest_N], runs.y_N[nearest_N], at, axis, float(away_N.min()), _SAME)


def _law(along_N: Floats, y_N: Floats, at: float, axis: str, away: float, near: float) -> OnLine:
    values, place_N = np.unique(along_N, return_inverse=True)
    y = np.exp(np.bincount(place_N, np.log(y_N)) / np.bincount(place_N))
    averaged = average_forms(values, y, [at]) if away <= near else None
    answer = Estimate(None, None, None) if averaged is None else Estimate(averaged[0].y, averaged[0].lo, averaged[0].hi)
    return OnLine(answer, axis, len(values), math.exp(away))
