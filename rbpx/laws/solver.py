"""Minimises an objective for many data sets at once by damped Newton steps within bounds (Levenberg-Marquardt).

A step solves (H + damping M) step = -g, with H the second derivatives (J'J in least squares) and M their scale, again
with a larger damping where it does not descend. A parameter that meets a bound stops there while the others move on.

Shapes: B searches, P parameters, N points. B is the last axis, so that small matrices are processed as rows.

Source: J. J. Moré, The Levenberg-Marquardt algorithm, Lecture Notes in Mathematics 630 (1978) 105.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.numeric import Floats

Sets = NDArray[np.intp]
_UNIT: Final = 1e-3  # the least magnitude of a parameter, in the relative length of a step
_FREE: Final = 1e-2  # damping that hardly shortens a step
_LEAST_PIVOT: Final = 1e-14  # of a diagonal element: below it a matrix counts as singular
_MOST_DAMPING: Final = 1e12
_ROUNDING: Final = 1e-12  # of an objective: a sum of squares, small compared with the values


@dataclass(frozen=True, eq=False)
class LocalQuadratic:
    """The objective of each search and its derivatives at one point.

    Attributes:
        value_B: not finite where the objective does not exist, and no step leads there.
        curve_PPB: its second derivatives, or their approximation.
        scale_PPB: what damping adds to these: positive definite.
        rounding_B: rounding error of a value; None for 10^-12 of it.
    """

    value_B: Floats
    slope_PB: Floats
    curve_PPB: Floats
    scale_PPB: Floats
    rounding_B: Floats | None = None

    def only(self, sets: Sets) -> "LocalQuadratic":
        """Some of the searches."""
        return LocalQuadratic(**{name: each[..., sets] for name, each in self._known()})

    def where(self, holds_B: NDArray[np.bool_], other: "LocalQuadratic") -> "LocalQuadratic":
        """This one where the condition holds, else the other."""
        return LocalQuadratic(**{name: np.where(holds_B, each, getattr(other, name)) for name, each in self._known()})

    def _known(self) -> list[tuple[str, Floats]]:
        return [(name, each) for name, each in vars(self).items() if each is not None]


@dataclass(frozen=True, eq=False)
class Minima:
    """Results of the searches."""

    theta_PB: Floats
    value_B: Floats
    converged_B: NDArray[np.bool_]

    @property
    def best(self) -> int:
        """Index of the search with the least objective."""
        return int(np.argmin(self.value_B))


@dataclass(frozen=True)
class StoppingRule:
    """When a search ends.

    Attributes:
        step: a free step shorter than this share of each parameter ends it.
        gain: a free step that promises less than this share of the objective ends it.
        idle: a step that gains less than this share of the objective is idle; more than `most_idle` in a row end it.
        most_left: it has converged if no more than this share of the objective is left to gain.
    """

    step: float = 1e-7
    gain: float = 0.0
    idle: float = 0.0
    most_idle: int = 30
    most_left: float = 0.0
    most_steps: int = 300


ObjectiveFunction = Callable[[Floats, Sets], LocalQuadratic]
"""A function of parameters [P, B] of some data sets, and of the indices of these sets."""


def squares(residual_NB: Floats, jacobian_PNB: Floats) -> LocalQuadratic:
    """Half the sum of squares with its gradient and the Gauss-Newton matrix J'J."""
    curve_PPB = np.einsum("pnb,qnb->pqb", jacobian_PNB, jacobian_PNB)
    slope_PB = np.einsum("pnb,nb->pb", jacobian_PNB, residual_NB)
    return LocalQuadratic(np.einsum("nb,nb->b", residual_NB, residual_NB) / 2, slope_PB, curve_PPB, diagonal(curve_PPB))


def diagonal(matrix_PPB: Floats) -> Floats:
    """The diagonals as matrices; zeros become a trifle of the largest element of each."""
    P = len(matrix_PPB)
    on_PB = matrix_PPB[range(P), range(P)]
    scale_PPB = np.zeros_like(matrix_PPB)
    scale_PPB[range(P), range(P)] = np.maximum(on_PB, 1e-10 * on_PB.max(axis=0) + 1e-300)
    return scale_PPB


def minimise(
    objective: ObjectiveFunction,
    start_PB: Floats,
    lower_P: ArrayLike = -np.inf,
    upper_P: ArrayLike = np.inf,
    end: StoppingRule = StoppingRule(),
    damping: float = 0.0,
    at_once: int = 8192,
) -> Minima:
    """Minimises the objective of each search, descending at every step.

    Bounds are [P] or [P, B]; a parameter with equal bounds is held fixed. `at_once` searches are in memory at once.
    """
    n = start_PB.shape[1]
    lower_PB, upper_PB = (np.broadcast_to(np.asarray(each, float).T, start_PB.T.shape).T for each in (lower_P, upper_P))
    theta_PB = np.clip(start_PB, lower_PB, upper_PB)
    found = Minima(theta_PB, np.full(n, np.inf), np.zeros(n, dtype=bool))
    with np.errstate(all="ignore"):  # a step too far has no objective, and is not taken
        for first in range(0, n, at_once):
            of_B = np.arange(first, min(first + at_once, n))
            _descend(objective, of_B, found, lower_PB, upper_PB, end, damping)
    return found


def maximise(
    likelihood: Callable[[Floats], tuple[float, Floats, Floats]],
    start_P: Floats,
    allowed: Callable[[Floats], bool],
    held: int | None = None,
) -> tuple[Floats, bool]:
    """The parameters at which a likelihood is largest, and whether the search converged.

    `likelihood` returns its value, gradient and Hessian, and exists where `allowed`; parameter `held` is fixed.
    """
    P = len(start_P)
    held_P = np.arange(P) == (-1 if held is None else held)
    nowhere = np.array([np.inf]), np.zeros((P, 1)), np.zeros((P, P, 1)), np.zeros((P, P, 1)), np.zeros(1)

    def local(theta_PB: Floats, _: Sets) -> LocalQuadratic:
        theta_P = theta_PB[:, 0]
        if not allowed(theta_P):
            return LocalQuadratic(*nowhere)
        value, slope_P, hessian_PP = likelihood(theta_P)
        hessian_PP[held_P] = hessian_PP[:, held_P] = 0.0
        bends_P, axes_PP = np.linalg.eigh(hessian_PP) if np.isfinite(hessian_PP).all() else (np.zeros(P), np.eye(P))
        # Also ascends where the curvature is positive.
        bends_P = np.maximum(np.abs(bends_P), 1e-13 * np.abs(bends_P).max())
        curve_PPB = ((axes_PP * bends_P) @ axes_PP.T)[..., None]
        rounding_B = np.array([_ROUNDING / 10 * abs(value)])
        return LocalQuadratic(np.array([-value]), -slope_P[:, None], curve_PPB, curve_PPB, rounding_B)

    lower_P, upper_P = np.where(held_P, start_P, -np.inf), np.where(held_P, start_P, np.inf)
    found = minimise(local, start_P[:, None], lower_P, upper_P, StoppingRule(most_left=1e-9))
    return found.theta_PB[:, 0], bool(found.converged_B[0])


def _descend(
    objective: ObjectiveFunction,
    of_B: Sets,
    found: Minima,
    lower_PB: Floats,
    upper_PB: Floats,
    end: StoppingRule,
    damping: float,
) -> None:
    theta_PB, lower_PB, upper_PB = found.theta_PB[:, of_B], lower_PB[:, of_B], upper_PB[:, of_B]
    at = objective(theta_PB, of_B)
    damping_B, idle_B = np.full(len(of_B), damping), np.zeros(len(of_B), dtype=np.intp)
    for _ in range(end.most_steps):
        step_PB, gain_B = _step(at, theta_PB, lower_PB, upper_PB, damping_B)
        length_B = (np.abs(step_PB) / (_UNIT + np.abs(theta_PB))).max(axis=0)
        is_free_B = damping_B <= _FREE
        new_PB = np.clip(theta_PB + step_PB, lower_PB, upper_PB)
        new = objective(new_PB, of_B)
        rounding_B = _ROUNDING * np.abs(at.value_B) if at.rounding_B is None else at.rounding_B
        gained_B = at.value_B - new.value_B
        better_B = gained_B >= -rounding_B
        idle_B = np.where(gained_B > end.idle * np.abs(at.value_B), 0, idle_B + 1)
        # A damped step falls short of the minimum; one that does not descend bounds nothing.
        left_B = np.where(gain_B >= 0, gain_B * (1 + damping_B / _FREE), np.inf)
        near_B = is_free_B & ((length_B <= end.step) | (better_B & (gained_B <= rounding_B)))
        near_B |= left_B <= end.gain * np.abs(at.value_B)
        done_B = near_B | (idle_B > end.most_idle) | (damping_B > _MOST_DAMPING)
        near_B |= left_B <= end.most_left * np.abs(at.value_B)
        theta_PB, at = (
            (new_PB, new) if better_B.all() else (np.where(better_B, new_PB, theta_PB), new.where(better_B, at))
        )
        less_B = np.where(damping_B < _FREE / 1000, 0.0, damping_B / 8)
        damping_B = np.where(better_B, less_B, np.maximum(damping_B * 8, _FREE))
        if done_B.any():
            _put(found, of_B[done_B], theta_PB[:, done_B], at.value_B[done_B], near_B[done_B])
            rest = np.flatnonzero(~done_B)
            of_B, damping_B, idle_B = of_B[rest], damping_B[rest], idle_B[rest]
            theta_PB, lower_PB, upper_PB = theta_PB[:, rest], lower_PB[:, rest], upper_PB[:, rest]
            at = at.only(rest)
            if not len(rest):
                return
    _put(found, of_B, theta_PB, at.value_B, np.zeros(len(of_B), dtype=bool))


def _step(
    at: LocalQuadratic, theta_PB: Floats, lower_PB: Floats, upper_PB: Floats, damping_B: Floats
) -> tuple[Floats, Floats]:
    """The step to the least of each damped quadratic within the bounds (NaN if it has none) and its expected gain."""
    matrix_PPB = at.curve_PPB + damping_B * at.scale_PPB
    down_PB, up_PB = lower_PB - theta_PB, upper_PB - theta_PB
    stopped_PB = ((down_PB >= 0) & (at.slope_PB >= 0)) | ((up_PB <= 0) & (at.slope_PB <= 0)) | (lower_PB == upper_PB)
    step_PB = np.zeros_like(theta_PB)
    for _ in range(len(theta_PB)):
        step_PB = _solve(matrix_PPB, -at.slope_PB, stopped_PB, step_PB)
        out_PB = (step_PB < down_PB) | (step_PB > up_PB)
        if not out_PB.any():
            break
        # Only the first bound on the way stops its parameter: stopping all could lead uphill along a valley.
        bound_PB = np.clip(step_PB, down_PB, up_PB)
        share_PB = np.where(out_PB, bound_PB / np.where(out_PB, step_PB, 1.0), np.inf)
        first_PB = out_PB & (share_PB <= share_PB.min(axis=0))
        step_PB, stopped_PB = np.where(first_PB, bound_PB, step_PB), stopped_PB | first_PB
    step_PB = np.clip(step_PB, down_PB, up_PB)
    gain_B = -(at.slope_PB * step_PB).sum(axis=0) / 2
    return step_PB, gain_B


def _solve(matrix_PPB: Floats, right_PB: Floats, stopped_PB: NDArray[np.bool_], step_PB: Floats) -> Floats:
    """The steps of the free parameters, by L D L'; NaN where a matrix is not positive definite."""
    P = len(right_PB)
    if stopped_PB.any():
        free_PB = ~stopped_PB
        right_PB = np.where(stopped_PB, step_PB, right_PB - np.einsum("pqb,qb->pb", matrix_PPB, step_PB * stopped_PB))
        matrix_PPB = np.where(free_PB[:, None] & free_PB[None], matrix_PPB, 0.0)
        matrix_PPB[range(P), range(P)] += stopped_PB
    lower: list[list[Floats]] = [[] for _ in range(P)]
    pivot: list[Floats] = []
    solved: list[Floats] = []
    for i in range(P):
        for j in range(i):
            left = matrix_PPB[i, j]
            for m in range(j):
                left = left - lower[i][m] * lower[j][m] * pivot[m]
            lower[i].append(left / pivot[j])
        left = matrix_PPB[i, i]
        for m in range(i):
            left = left - lower[i][m] ** 2 * pivot[m]
        pivot.append(np.where(left > _LEAST_PIVOT * matrix_PPB[i, i], left, np.nan))
        z = right_PB[i]
        for m in range(i):
            z = z - lower[i][m] * solved[m]
        solved.append(z)
    for i in reversed(range(P)):
        z = solved[i] / pivot[i]
        for m in range(i + 1, P):
            z = z - lower[m][i] * solved[m]
        solved[i] = z
    return np.stack(solved)


def _put(found: Minima, of_B: Sets, theta_PB: Floats, value_B: Floats, converged_B: NDArray[np.bool_]) -> None:
    found.theta_PB[:, of_B], found.value_B[of_B], found.converged_B[of_B] = theta_PB, value_B, converged_B
