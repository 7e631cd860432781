"""What a surface leaves of ln y, against each axis: a slope or a curve there is misfit, not scatter."""

from dataclasses import dataclass

import numpy as np

from rbpx.laws.arrays import Floats
from rbpx.laws.interval import Estimate, from_stderr
from rbpx.laws.lack_of_fit import curvature
from rbpx.laws.surface.held_out import Axis
from rbpx.laws.surface.runs import Runs, six_S
from rbpx.laws.surface.surface import Surface


@dataclass(frozen=True)
class AgainstAxis:
    """The residuals ln y - ln y_fit along one axis, points taken to scatter independently.

    Attributes:
        axis: S, D or C.
        slope: of the residuals per unit of the logarithm, with a 95 % interval; None where the axis does not vary.
        curvature: of a parabola through them.
    """

    axis: Axis
    slope: Estimate
    curvature: Estimate


def against_axes(surface: Surface, runs: Runs) -> tuple[AgainstAxis, ...]:
    """The residuals of the points of a fit, against S, D and C = 6 S D."""
    left_N = -surface.residual_N
    along = {Axis.S: runs.S_N, Axis.D: runs.D_N, Axis.C: runs.D_N * six_S(runs.S_N)}
    rows = []
    for axis, x_N in along.items():
        ln_x_N = np.log(x_N)
        rows.append(AgainstAxis(axis, _slope(ln_x_N, left_N), curvature(ln_x_N, left_N)))
    return tuple(rows)


def _slope(x_N: Floats, left_N: Floats) -> Estimate:
    about_N = x_N - x_N.mean()
    square, dof = float(about_N @ about_N), len(x_N) - 2
    if square <= 1e-12 * float(x_N @ x_N) or dof < 1:
        return Estimate(None, None, None)
    slope = float(about_N @ left_N) / square
    rest_N = left_N - left_N.mean() - slope * about_N
    return from_stderr(slope, float(np.sqrt(rest_N @ rest_N / dof / square)), dof)
