"""Fits success at a task against a feature, y = a / (1 + exp(-h (x - x0))) + b, by least squares within bounds.

The feature falls as models get better (bits per byte, nats, -ln RBP_k), so a <= 0 and y rises from a + b to b.
Source: arXiv 2412.04403 (OLMo ladder), step 2.

Shapes: N points, B sets of points, P = 4 constants a, x0, h, b.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.numeric import Floats
from rbpx.laws.solver import LocalQuadratic, Minima, Sets, StoppingRule, minimise, squares

NAMES: Final = ("a", "x0", "h", "b")
BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "a": (-1.0, 0.0),
    "x0": (0.0, math.inf),
    "h": (0.0, math.inf),
    "b": (0.0, 1.0),
}
_END: Final = StoppingRule(step=1e-11, most_steps=1000)

Point = tuple[float, float]
Bounds = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """One fitted curve: constants in the order of `NAMES`; the number of points includes the anchor."""

    theta_P: Floats
    n_points: int = 0
    n_free: int = 0
    converged: bool = True

    def __call__(self, x: float) -> float:
        """Returns the success at a value of the feature."""
        return float(curves(self.theta_P, np.array(x)))


def curves(theta: Floats, x: Floats) -> Floats:
    """Returns the success of curves, with P the last axis of `theta`, at values of the feature."""
    a, x0, h, b = np.moveaxis(theta, -1, 0)
    with np.errstate(over="ignore"):  # an infinite exponential is the end of the curve
        return np.asarray(a / (1 + np.exp(-h * (x - x0))) + b)


def fit_sigmoid(
    x_N: Floats,
    y_N: Floats,
    chance: float,
    anchor: Point | None = (0.0, 1.0),
    starts: Mapping[str, float] | None = None,
    bounds: Bounds | None = None,
) -> Sigmoid | None:
    """Fits y to x by least squares within bounds, from the published start and from a grid; None without spare points.

    `chance` starts the search; `anchor` is an added point; `starts` and `bounds` replace the published ones by name.
    """
    n_points = len(x_N) + (anchor is not None)
    n_free = sum(lo < hi for lo, hi in {**BOUNDS, **(bounds or {})}.values())
    if n_points <= n_free:
        return None
    first = {"a": chance - 1, "x0": 0.9, "h": 3.0, "b": 1.0} | dict(starts or {})
    at_N = _joined(x_N, anchor and anchor[0])
    reach = float(np.ptp(at_N)) or 1.0
    grid = [[chance - 1, x0, steep / reach, 1.0]
            for x0 in np.quantile(at_N, [0.05, 0.25, 0.5, 0.75, 0.95]) for steep in (3.0, 10.0, 30.0)]  # fmt: skip
    start_SP = np.array([[first[name] for name in NAMES], *grid])
    x_SN, y_SN = (np.tile(each, (len(start_SP), 1)) for each in (x_N, y_N))
    found = refit_sigmoid(x_SN, y_SN, start_SP, anchor, bounds)
    return Sigmoid(found.theta_PB[:, found.best], n_points, n_free, bool(found.converged_B[found.best]))


def refit_sigmoid(
    x_BN: Floats, y_BN: Floats, start: Floats, anchor: Point | None = (0.0, 1.0), bounds: Bounds | None = None
) -> Minima:
    """Fits many sets of points, from one start each, [P] or [B, P]; keys as in `fit_sigmoid`."""
    x_BN, y_BN = (_joined(each, anchor and anchor[at]) for at, each in enumerate((x_BN, y_BN)))
    lower_P, upper_P = np.array([(BOUNDS | dict(bounds or {}))[name] for name in NAMES], np.float64).T

    def objective(theta_PB: Floats, sets: Sets) -> LocalQuadratic:
        a_B, x0_B, h_B, b_B = theta_PB
        about_NB = x_BN[sets].T - x0_B
        with np.errstate(over="ignore"):
            s_NB = 1 / (1 + np.exp(-h_B * about_NB))
        slope_NB = a_B * s_NB * (1 - s_NB)
        jacobian_PNB = np.stack([s_NB, -h_B * slope_NB, about_NB * slope_NB, np.ones_like(s_NB)])
        return squares(a_B * s_NB + b_B - y_BN[sets].T, jacobian_PNB)

    return minimise(objective, np.broadcast_to(start, (len(x_BN), 4)).T, lower_P, upper_P, _END)


def _joined(values: Floats, more: float | None) -> Floats:
    return values if more is None else np.concatenate([values, np.full((*values.shape[:-1], 1), more)], axis=-1)
