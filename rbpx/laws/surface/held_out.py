"""What forms say of runs that they were not fitted to: the largest models, the longest trainings, the most compute."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.interval import Estimate
from rbpx.laws.surface.fit import SurfaceFit, fit_surface
from rbpx.laws.surface.names import DELTA, Objective
from rbpx.laws.surface.runs import Runs, six_S

__all__ = ["Axis", "Compared", "HeldOut", "compare", "held_out", "largest", "mean_error"]

Floats = NDArray[np.float64]

_SAME: Final = 0.01  # of a logarithm: runs that are within it of the largest are as large


class Axis(StrEnum):
    """By which runs are ordered before the largest are held out."""

    S = "S"
    D = "D"
    C = "C"


@dataclass(frozen=True)
class HeldOut:
    """A point of a run that was held out.

    Attributes:
        axis: by which it was chosen.
        S: size.
        D: tokens.
        predicted: by the fit to the others, with the 95 % interval of a new run.
        measured: there.
        error: (predicted - measured) / measured.
    """

    axis: Axis
    S: float
    D: float
    predicted: Estimate
    measured: float
    error: float

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
        held_out: of each axis; empty where the rest cannot be fitted.
    """

    fit: SurfaceFit
    held_out: tuple[HeldOut, ...]


def largest(runs: Runs, axis: Axis, flops_per_token: Callable[[Floats], Floats] = six_S) -> NDArray[np.bool_]:
    """The points of the runs that are largest in an axis, [N]; of a run its last checkpoint decides."""
    by_axis = {Axis.S: runs.S_N, Axis.D: runs.D_N, Axis.C: runs.D_N * flops_per_token(runs.S_N)}
    ln_N = np.log(by_axis[Axis(axis)])
    last_G = np.full(runs.n_groups, -np.inf)
    np.maximum.at(last_G, runs.group_N, ln_N)
    return np.asarray((last_G >= last_G.max() - _SAME)[runs.group_N])


def held_out(
    runs: Runs,
    axis: Axis,
    form: str = "chinchilla",
    objective: Objective = Objective.log_huber,
    delta: float = DELTA,
    n_resamples: int = 200,
    flops_per_token: Callable[[Floats], Floats] = six_S,
) -> tuple[HeldOut, ...]:
    """Fit without the runs that are largest in an axis, and predict their points, on the same documents.

    Args:
        runs: the points.
        axis: S, D or C.
        form: as in `fit_surface`.
        objective: as there.
        delta: as there.
        n_resamples: as there.
        flops_per_token: of a size.

    Returns:
        A row for each point held out, in the order of the points; none where the rest cannot be fitted.
    """
    out_N = largest(runs, axis, flops_per_token)
    fit = fit_surface(replace(runs.only(~out_N), y_BN=None), form, objective, delta, n_resamples)
    return _predicted(runs, axis, out_N, fit)


def _predicted(runs: Runs, axis: Axis, out_N: NDArray[np.bool_], fit: SurfaceFit) -> tuple[HeldOut, ...]:
    """What a fit to the other points says of those that were held out."""
    if fit.surface is None:
        return ()
    rows = []
    for i in np.flatnonzero(out_N).tolist():
        S, D, y = float(runs.S_N[i]), float(runs.D_N[i]), float(runs.y_N[i])
        predicted = fit.surface.predict(S, D, None if runs.U_N is None else float(runs.U_N[i]), new_run=True)
        error = math.nan if predicted.value is None else (predicted.value - y) / y
        rows.append(HeldOut(Axis(axis), S, D, predicted, y, error))
    return tuple(rows)


def compare(runs: Runs, forms: Sequence[str], n_resamples: int = 200, **options: Any) -> tuple[Compared, ...]:
    """Fit several forms to the same points and hold out the largest runs of each axis from each.

    Args:
        runs: the points.
        forms: names in `FORMS`.
        n_resamples: of the runs, for the intervals of all of it.
        options: objective and delta of `fit_surface`.
    """
    rows = []
    for form in forms:
        fit = fit_surface(runs, form, n_resamples=n_resamples, **options)
        fits: dict[bytes, SurfaceFit] = {}  # the largest in S and in C are often the same
        tests: list[HeldOut] = []
        for axis in Axis:
            out_N = largest(runs, axis)
            if out_N.tobytes() not in fits:
                rest = replace(runs.only(~out_N), y_BN=None)
                fits[out_N.tobytes()] = fit_surface(rest, form, n_resamples=n_resamples, **options)
            tests += _predicted(runs, axis, out_N, fits[out_N.tobytes()])
        rows.append(Compared(fit, tuple(tests)))
    return tuple(rows)


def mean_error(tests: Sequence[HeldOut], axis: Axis | None = None) -> float | None:
    """The mean of |error|, of one axis or, where that is None, of all; None without any."""
    errors = [abs(test.error) for test in tests if axis is None or test.axis is axis]
    return float(np.mean(errors)) if errors else None
