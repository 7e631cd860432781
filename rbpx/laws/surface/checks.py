"""Tests a surface on the largest models, longest trainings and most compute, and for trends of its residuals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate
from rbpx.laws.intervals.lack_of_fit import coefficient, curvature, curvature_of_groups
from rbpx.laws.names import Axis
from rbpx.laws.priors import NO_PRIORS, Priors
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.fixed_parameters import fit_surface_with_priors
from rbpx.laws.surface.runs import Runs
from rbpx.laws.surface.surface import SurfaceParameters
from rbpx.status import Status

_REPLICATES: Final = 100  # of the remaining runs
_SAME: Final = 0.01  # of a logarithm; runs this near to the largest are as large
_LEVELS: Final = 3  # sizes or token counts, as a term and E have three constants

AXES: Final = (Axis.S, Axis.D, Axis.C)


@dataclass(frozen=True)
class HeldOut:
    """Point number `at`, held out as one of the largest in `axis`: its value and the prediction of a new run."""

    axis: Axis
    S: float
    D: float
    predicted: Estimate
    measured: float
    at: int

    @property
    def error(self) -> float | None:
        """(predicted - measured) / measured."""
        return None if self.predicted.value is None else (self.predicted.value - self.measured) / self.measured

    @property
    def is_inside(self) -> bool | None:
        """Whether the interval held."""
        return self.predicted.holds(self.measured)

    def record(self) -> dict[str, Any]:
        """All of it as JSON."""
        y = self.predicted
        at = {"axis": self.axis, "S": self.S, "D": self.D, "predicted": [y.value, y.lo, y.hi], "at": self.at}
        return at | {"measured": self.measured, "error": self.error, "held": self.is_inside}


def held_out_points(
    runs: Runs, axis: Axis, at_T: NDArray[np.intp], predicted: Sequence[Estimate]
) -> tuple[HeldOut, ...]:
    """Some points with their predictions."""
    places = zip(at_T.tolist(), predicted, strict=True)
    return tuple(HeldOut(axis, float(runs.S_N[i]), float(runs.D_N[i]), y, float(runs.y_N[i]), i) for i, y in places)


def is_largest(runs: Runs, axis: Axis) -> NDArray[np.bool_]:
    """Mask of the points of the largest runs in an axis, by their last checkpoints."""
    last_G = np.full(runs.n_groups, -np.inf)
    np.maximum.at(last_G, runs.group_N, np.log(runs.along(axis)))
    return np.asarray((last_G >= last_G.max() - _SAME)[runs.group_N])


def held_out(
    runs: Runs, form: str, n_replicates: int = _REPLICATES, pins: Priors = NO_PRIORS, **options: Any
) -> tuple[HeldOut, ...]:
    """Predicts the largest runs of each axis by a form that is fitted to the others, on the same documents.

    None are predicted where the others have fewer than three values of the axis, as then any curve fits.
    """
    rows, fits = list[HeldOut](), dict[bytes, SurfaceParameters | None]()
    for axis in AXES:
        out_N = is_largest(runs, axis)
        if (key := out_N.tobytes()) not in fits:
            rest, n = replace(runs.only(~out_N), y_BN=None), min(n_replicates, _REPLICATES)
            fits[key] = fit_surface_with_priors(rest, form, pins, n, is_tested=False, **options).surface
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
        rows += held_out_points(runs, axis, at_T, [surface.predict(S, D, U, new_run=True) for S, D, U in points])
    return tuple(rows)


def mean_error(tests: Sequence[HeldOut]) -> float | None:
    """The mean of |error|."""
    errors = [abs(test.error) for test in tests if test.error is not None]
    return float(np.mean(errors)) if errors else None


def against_axes(surface: SurfaceParameters, runs: Runs) -> list[tuple[Axis, Estimate, Estimate]]:
    """For S, D and C = 6 S D, the slope and the curvature of the residuals ln y - ln y_fit in the logarithm.

    Points count as independent.
    """
    left_N, rows = -surface.residual_N, []
    for axis in AXES:
        x_N = np.log(runs.along(axis))
        about_N = x_N - x_N.mean()
        varies = len(x_N) >= 3 and about_N @ about_N > 1e-12 * (x_N @ x_N)
        line = np.column_stack([np.ones(len(x_N)), about_N])
        rows.append((axis, coefficient(line, left_N, 1) if varies else NO_ESTIMATE, curvature(x_N, left_N)))
    return rows


def bends_of(fit: Surface) -> list[Status]:
    """Bends where the residuals of a surface curve along S, D or C, by their 95 % intervals.

    Checkpoints of a run scatter together. The three tests are not corrected: of true surfaces 1 to 6 % bend.
    """
    if fit.surface is None:
        return []
    left_N, runs = -fit.surface.residual_N, fit.runs
    x_AN = [np.log(runs.along(axis)) for axis in AXES]
    if runs.n_groups < len(left_N):
        curvatures = [curvature_of_groups(x_N, left_N, runs.group_N) for x_N in x_AN]
    else:
        curvatures = [curvature(x_N, left_N) for x_N in x_AN]
    return [Status.bends] if any(each.leaves_out_0 for each in curvatures) else []
