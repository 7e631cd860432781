"""What runs say against a surface: errors of those that it was not fitted to, and slopes or curves of what it leaves.

Held out are the largest models, the longest trainings, the most compute.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.intervals.lack_of_fit import coefficient, curvature
from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.pins import NO_PINS, Pins
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.given import fit_given
from rbpx.laws.surface.runs import Runs
from rbpx.laws.surface.surface import SurfaceNumbers

_REPLICATES: Final = 100  # of the runs that are left, for the interval of one new run
_SAME: Final = 0.01  # of a logarithm: runs that are within it of the largest are as large
_LEVELS: Final = 3  # sizes, or numbers of tokens: a term of a surface has as many constants

AXES: Final = (Axis.S, Axis.D, Axis.C)


@dataclass(frozen=True)
class HeldOut:
    """A point of a run that was held out.

    Attributes:
        axis: by which it was chosen.
        S: size.
        D: tokens.
        predicted: by the fit to the others, with the 95 % interval of a new run.
        measured: there.
        error: (predicted - measured) / measured; None where nothing could be predicted.
        at: the place of the point among all.
    """

    axis: Axis
    S: float
    D: float
    predicted: Estimate
    measured: float
    error: float | None
    at: int

    @property
    def is_inside(self) -> bool | None:
        """Whether the interval contains the measured value; None without one."""
        ends = self.predicted.ends
        return None if ends is None else ends[0] <= self.measured <= ends[1]


@dataclass(frozen=True, eq=False)
class Compared:
    """A form beside others.

    Attributes:
        fit: of all runs.
        held_out: of each axis; none where the rest cannot be fitted, or lies at fewer than three values of an axis.
        same_documents: the fit without resampled documents, for what is said of a run on the same ones; that of all
            runs unless it was asked for, and documents are resampled.
    """

    fit: Surface
    held_out: tuple[HeldOut, ...]
    same_documents: Surface


def largest(runs: Runs, axis: Axis) -> NDArray[np.bool_]:
    """The points of the runs that are largest in an axis, [N]; of a run its last checkpoint decides."""
    last_G = np.full(runs.n_groups, -np.inf)
    np.maximum.at(last_G, runs.group_N, np.log(runs.along(axis)))
    return np.asarray((last_G >= last_G.max() - _SAME)[runs.group_N])


def compare_each(
    runs: Runs,
    forms: Sequence[str],
    n_replicates: int = 200,
    same_documents: bool = False,
    pins: Pins = NO_PINS,
    **options: Any,
) -> tuple[Compared, ...]:
    """Fit each form to the points, and hold out the largest runs of each axis.

    Args:
        runs: the points.
        forms: names in `FORMS`.
        n_replicates: of the runs, for the intervals of all of it.
        same_documents: whether to fit each form without resampled documents too.
        pins: constants of the forms that are given.
        options: objective and delta of `fit_surface`.
    """
    out = {axis: largest(runs, axis) for axis in AXES}
    # Once for axes with the same largest runs, on the same documents.
    rests = {out_N.tobytes(): replace(runs.only(~out_N), y_BN=None) for out_N in out.values()}
    few, has_same, compared = min(n_replicates, _REPLICATES), same_documents and runs.y_BN is not None, []
    for form in forms:
        fit = same = fit_given(runs, form, pins, n_replicates, **options)
        if has_same:
            same = fit_given(replace(runs, y_BN=None), form, pins, n_replicates, **options)
        fits = {key: fit_given(rest, form, pins, few, is_tested=False, **options) for key, rest in rests.items()}
        compared.append(Compared(fit, _rows(runs, out, fits), same))
    return tuple(compared)


def _rows(runs: Runs, out: Mapping[Axis, NDArray[np.bool_]], fits: Mapping[bytes, Surface]) -> tuple[HeldOut, ...]:
    rows = []
    for axis, out_N in out.items():
        surface = fits[out_N.tobytes()].surface
        if surface is None:
            continue
        known = [np.log(np.sort(values_N[~out_N])) for values_N in (runs.S_N, runs.D_N)]
        reach = [math.inf if np.sum(np.diff(ln) > _SAME) >= _LEVELS - 1 else float(ln[-1]) + _SAME for ln in known]
        for i in np.flatnonzero(out_N).tolist():
            S, D, y = float(runs.S_N[i]), float(runs.D_N[i]), float(runs.y_N[i])
            if math.log(S) > reach[0] or math.log(D) > reach[1]:
                continue  # any curve goes through so few: what is foretold beyond depends on where a search ended
            predicted = surface.predict(S, D, None if runs.U_N is None else float(runs.U_N[i]), new_run=True)
            error = None if predicted.value is None else (predicted.value - y) / y
            rows.append(HeldOut(axis, S, D, predicted, y, error, i))
    return tuple(rows)


def mean_error(tests: Sequence[HeldOut], axis: Axis | None = None) -> float | None:
    """The mean of |error|, of one axis or, where that is None, of all; None without any."""
    errors = [abs(test.error) for test in tests if axis in (None, test.axis) and test.error is not None]
    return float(np.mean(errors)) if errors else None


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


def against_axes(surface: SurfaceNumbers, runs: Runs) -> tuple[AgainstAxis, ...]:
    """The residuals of the points of a fit, against S, D and C = 6 S D."""
    left_N = -surface.residual_N
    rows = []
    for axis in AXES:
        ln_x_N = np.log(runs.along(axis))
        rows.append(AgainstAxis(axis, _slope(ln_x_N, left_N), curvature(ln_x_N, left_N)))
    return tuple(rows)


def _slope(x_N: Floats, left_N: Floats) -> Estimate:
    about_N = x_N - x_N.mean()
    if len(x_N) < 3 or about_N @ about_N <= 1e-12 * (x_N @ x_N):
        return Estimate()
    return coefficient(np.column_stack([np.ones(len(x_N)), about_N]), left_N, 1)
