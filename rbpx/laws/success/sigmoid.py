"""Fits success at a task against a feature, y = a / (1 + exp(-h (x - x0))) + b, by least squares within bounds.

The feature falls as models get better (bits per byte, nats, -ln RBP_k), so a <= 0 and y rises from a + b to b.
Source: arXiv 2412.04403 (OLMo ladder), step 2.

Shapes: N points, B starts, P = 4 constants a, x0, h, b.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.numeric import Floats
from rbpx.laws.solver import LocalQuadratic, Sets, StoppingRule, minimise, squares

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
        """The success at a value of the feature."""
        return float(curves(self.theta_P, np.array(x)))


def curves(theta: Floats, x: Floats) -> Floats:
    """The success of curves, with P the last axis of `theta`, at values of the feature."""
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

    `anchor` is an added point; `starts` and `bounds` replace the published ones by name.
    """
    limits = BOUNDS | dict(bounds or {})
    if anchor is not None:
        x_N, y_N = np.append(x_N, anchor[0]), np.append(y_N, anchor[1])
    n_free = sum(lo < hi for lo, hi in limits.values())
    if len(x_N) <= n_free:
        return None
    first = {"a": chance - 1, "x0": 0.9, "h": 3.0, "b": 1.0} | dict(starts or {})
    reach = float(np.ptp(x_N)) or 1.0
    grid = [[chance - 1, x0, steep / reach, 1.0]
            for x0 in np.quantile(x_N, [0.05, 0.25, 0.5, 0.75, 0.95]) for steep in (3.0, 10.0, 30.0)]  # fmt: skip
    start_PB = np.array([[first[name] for name in NAMES], *grid]).T

    def objective(theta_PB: Floats, _: Sets) -> LocalQuadratic:
        a_B, x0_B, h_B, b_B = theta_PB
        about_NB = x_N[:, None] - x0_B
        with np.errstate(over="ignore"):
            s_NB = 1 / (1 + np.exp(-h_B * about_NB))
        slope_NB = a_B * s_NB * (1 - s_NB)
        jacobian_PNB = np.stack([s_NB, -h_B * slope_NB, about_NB * slope_NB, np.ones_like(s_NB)])
        return squares(a_B * s_NB + b_B - y_N[:, None], jacobian_PNB)

    lower_P, upper_P = np.array([limits[name] for name in NAMES], np.float64).T
    found = minimise(objective, start_PB, lower_P, upper_P, _END)
    return Sigmoid(found.theta_PB[:, found.best], len(x_N), n_free, bool(found.converged_B[found.best]))
