"""What runs say against a surface: errors of those that it was not fitted to, and slopes or curves of what it leaves.

Held out are the largest models, the longest trainings, the most compute.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate
from rbpx.laws.intervals.lack_of_fit import coefficient, curvature
from rbpx.laws.names import Axis
from rbpx.laws.priors import NO_PRIORS, Priors
from rbpx.laws.surface.fixed_parameters import fit_given
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
        at: the place of the point among all.
    """

    axis: Axis
    S: float
    D: float
    predicted: Estimate
    measured: float
    at: int

    @property
    def error(self) -> float | None:
        """(predicted - measured) / measured; None where nothing could be predicted."""
        return None if self.predicted.value is None else (self.predicted.value - self.measured) / self.measured

    @property
    def is_inside(self) -> bool | None:
        """Whether the interval contains the measured value; None without one."""
        ends = self.predicted.ends
        return None if ends is None else ends[0] <= self.measured <= ends[1]

    def record(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        y = self.predicted
        at = {"axis": self.axis, "S": self.S, "D": self.D, "predicted": [y.value, y.lo, y.hi], "at": self.at}
        return at | {"measured": self.measured, "error": self.error, "held": self.is_inside}


def of_points(runs: Runs, axis: Axis, at_T: NDArray[np.intp], predicted: Sequence[Estimate]) -> tuple[HeldOut, ...]:
    """Some points with what is predicted of each."""
    places = zip(at_T.tolist(), predicted, strict=True)
    return tuple(HeldOut(axis, float(runs.S_N[i]), float(runs.D_N[i]), y, float(runs.y_N[i]), i) for i, y in places)


def largest(runs: Runs, axis: Axis) -> NDArray[np.bool_]:
    """The points of the runs that are largest in an axis, [N]; of a run its last checkpoint decides."""
    last_G = np.full(runs.n_groups, -np.inf)
    np.maximum.at(last_G, runs.group_N, np.log(runs.along(axis)))
    return np.asarray((last_G >= last_G.max() - _SAME)[runs.group_N])


def held_out(
    runs: Runs, form: str, n_replicates: int = _REPLICATES, pins: Priors = NO_PRIORS, **options: Any
) -> tuple[HeldOut, ...]:
    """The largest runs of each axis beside what a form says that is fitted to the others, on the same documents.

    None where the others cannot be fitted; along an axis on which they lie at fewer than three values any curve goes
    through them, so nothing beyond them is foretold.

    Args:
        runs: the points.
        form: a name in `FORMS`.
        n_replicates: of the runs that are left, 100 at most.
        pins: constants of the form that are given.
        options: objective and delta of `fit_surface`.
    """
    rows, fits = list[HeldOut](), dict[bytes, SurfaceNumbers | None]()
    for axis in AXES:
        out_N = largest(runs, axis)
        if (key := out_N.tobytes()) not in fits:
            rest, n = replace(runs.only(~out_N), y_BN=None), min(n_replicates, _REPLICATES)
            fits[key] = fit_given(rest, form, pins, n, is_tested=False, **options).surface
        surface = fits[key]
        if surface is None:
            continue
        for values_N in (runs.S_N, runs.D_N):
            ln = np.log(np.sort(values_N[~out_N]))
            if np.sum(np.diff(ln) > _SAME) < _LEVELS - 1:
                out_N = out_N & (np.log(values_N) <= ln[-1] + _SAME)
        at_T = np.flatnonzero(out_N)
        U_T = [None] * len(at_T) if runs.U_N is None else runs.U_N[at_T].tolist()
        points = zip(runs.S_N[at_T].tolist(), runs.D_N[at_T].tolist(), U_T, strict=True)
        rows += of_points(runs, axis, at_T, [surface.predict(S, D, U, new_run=True) for S, D, U in points])
    return tuple(rows)


def mean_error(tests: Sequence[HeldOut]) -> float | None:
    """The mean of |error|; None without any."""
    errors = [abs(test.error) for test in tests if test.error is not None]
    return float(np.mean(errors)) if errors else None


def against_axes(surface: SurfaceNumbers, runs: Runs) -> list[tuple[Axis, Estimate, Estimate]]:
    """The residuals ln y - ln y_fit of the points of a fit against S, D and C = 6 S D, taken to scatter independently.

    Returns:
        By axis their slope per unit of the logarithm, None where the axis does not vary, and their curvature.
    """
    left_N, rows = -surface.residual_N, []
    for axis in AXES:
        x_N = np.log(runs.along(axis))
        about_N = x_N - x_N.mean()
        varies = len(x_N) >= 3 and about_N @ about_N > 1e-12 * (x_N @ x_N)
        line = np.column_stack([np.ones(len(x_N)), about_N])
        rows.append((axis, coefficient(line, left_N, 1) if varies else NO_ESTIMATE, curvature(x_N, left_N)))
    return rows
