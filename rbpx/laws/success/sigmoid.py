"""Success of a task against a feature, y = a / (1 + exp(-h (x - x0))) + b: the least squares fit within bounds.

The feature falls as models get better (bits per byte, nats, -ln RBP_k), so a <= 0 and y rises from a + b, where the
feature is large, to b. Shapes: N points, B sets of points, P = 4 constants a, x0, h, b.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.numeric import Floats
from rbpx.laws.solver import End, Found, Local, Sets, minimise, squares

EQUATION: Final = "y = a / (1 + exp(-h (x - x0))) + b"
SOURCE: Final = "arXiv 2412.04403 (OLMo ladder), step 2"
NAMES: Final = ("a", "x0", "h", "b")
BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "a": (-1.0, 0.0),
    "x0": (0.0, math.inf),
    "h": (0.0, math.inf),
    "b": (0.0, 1.0),
}
_END: Final = End(step=1e-11, most_steps=1000)


@dataclass(frozen=True)
class Sigmoid:
    """One curve; `minimum` is where it begins, `b` where it ends."""

    a: float
    x0: float
    h: float
    b: float

    def __call__(self, x: float) -> float:
        """The success at a value of the feature."""
        return float(_curve(np.array([[self.a, self.x0, self.h, self.b]]), np.array([x]))[0, 0])

    @property
    def minimum(self) -> float:
        """The success of a model that knows nothing."""
        return self.a + self.b


@dataclass(frozen=True, eq=False)
class SigmoidFit:
    """A fitted curve.

    Attributes:
        sigmoid: its constants.
        n_points: points, the anchor included.
        n_free: constants that were fitted.
        at_bound: constants at a bound, by name.
        converged: whether the search ended at a minimum.
    """

    sigmoid: Sigmoid
    n_points: int
    n_free: int
    at_bound: tuple[str, ...]
    converged: bool

    @property
    def theta_P(self) -> Floats:
        """The constants in the order of `NAMES`."""
        return np.array([getattr(self.sigmoid, name) for name in NAMES])


def starts_of(chance: float) -> dict[str, float]:
    """Where the published search starts: from chance up to 1, about a feature of 0.9."""
    return {"a": chance - 1, "x0": 0.9, "h": 3.0, "b": 1.0}


def fit_sigmoid(
    x: ArrayLike,
    y: ArrayLike,
    chance: float,
    anchor: tuple[float, float] | None = (0.0, 1.0),
    starts: Mapping[str, float] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> SigmoidFit | None:
    """Least squares of y on x within bounds, from the published start and from a grid over the points.

    Args:
        x: the feature, shape [N], finite.
        y: success, shape [N], shares.
        chance: success of guessing, at which the curve starts; it is free to end elsewhere.
        anchor: a point that is added, where a perfect feature has perfect success; None for none.
        starts: constants to start at in place of those of `starts_of`, by name.
        bounds: ends of the constants in place of those of `BOUNDS`, by name; equal ends hold one.

    Returns:
        The fit; None with no more points than free constants.

    Raises:
        ValueError: x and y differ in shape, or are not finite.
    """
    x_N, y_N = _with_anchor(x, y, anchor)
    lower_P, upper_P = _ends(bounds)
    free_P = lower_P < upper_P
    if len(x_N) <= free_P.sum():
        return None
    start_P = np.array([(starts_of(chance) | dict(starts or {}))[name] for name in NAMES])
    start_SP = np.clip(np.vstack([start_P, _grid(x_N, chance)]), lower_P, upper_P)
    found = _solve(x_N, np.broadcast_to(y_N, (len(start_SP), len(y_N))), start_SP, lower_P, upper_P)
    theta_P, converged = found.theta_PB[:, found.best], bool(found.converged_B[found.best])
    at_bound = free_P & ((theta_P <= lower_P) | (theta_P >= upper_P))
    names = tuple(name for name, at in zip(NAMES, at_bound, strict=True) if at)
    sigmoid = Sigmoid(*theta_P.tolist())
    return SigmoidFit(sigmoid, len(x_N), int(free_P.sum()), names, converged)


def refit_sigmoid(
    x: ArrayLike,
    y: ArrayLike,
    start: ArrayLike,
    anchor: tuple[float, float] | None = (0.0, 1.0),
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Floats:
    """The same fit to each of many sets of points, all at once, from one start; `fit_sigmoid` is held against it.

    Args:
        x: features, shape [B, N].
        y: success, shape [B, N].
        start: constants, shape [P], or [B, P].
        anchor: as in `fit_sigmoid`.
        bounds: as there.

    Returns:
        Constants, shape [B, P].
    """
    x_BN, y_BN = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if anchor is not None:
        ones_B1 = np.ones((len(x_BN), 1))
        x_BN, y_BN = np.hstack([x_BN, anchor[0] * ones_B1]), np.hstack([y_BN, anchor[1] * ones_B1])
    lower_P, upper_P = _ends(bounds)
    start_BP = np.clip(np.broadcast_to(np.asarray(start, np.float64), (len(x_BN), 4)), lower_P, upper_P)
    return _solve(x_BN, y_BN, start_BP, lower_P, upper_P).theta_PB.T


def curves(theta: ArrayLike, x: ArrayLike) -> Floats:
    """Success of B curves [B, 4] at B values of the feature [B]."""
    x_B = np.asarray(x, np.float64)
    return np.asarray(_curve(np.asarray(theta, np.float64), x_B[:, None])[:, 0])


def _with_anchor(x: ArrayLike, y: ArrayLike, anchor: tuple[float, float] | None) -> tuple[Floats, Floats]:
    x_N, y_N = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x_N.ndim != 1 or x_N.shape != y_N.shape:
        raise ValueError(f"x and y need one shape [N], got {x_N.shape} and {y_N.shape}")
    if not (np.isfinite(x_N).all() and np.isfinite(y_N).all()):
        raise ValueError("features and success must be finite")
    return (x_N, y_N) if anchor is None else (np.append(x_N, anchor[0]), np.append(y_N, anchor[1]))


def _ends(bounds: Mapping[str, tuple[float, float]] | None) -> tuple[Floats, Floats]:
    ends_P2 = np.array([(BOUNDS | dict(bounds or {}))[name] for name in NAMES], np.float64)
    return ends_P2[:, 0], ends_P2[:, 1]


def _grid(x_N: Floats, chance: float) -> Floats:
    """Starts over the range of the feature: where the curve turns, and how steeply."""
    reach = float(np.ptp(x_N)) or 1.0
    middles = np.quantile(x_N, [0.05, 0.25, 0.5, 0.75, 0.95])
    return np.array([[chance - 1, x0, steep / reach, 1.0] for x0 in middles for steep in (3.0, 10.0, 30.0)])


def _curve(theta_BP: Floats, x: Floats) -> Floats:
    """Success [B, N] at features [N] or [B, N]."""
    a_B, x0_B, h_B, b_B = (theta_BP[:, p : p + 1] for p in range(4))
    with np.errstate(over="ignore"):  # exp of infinity is where the curve ends
        return np.asarray(a_B / (1 + np.exp(-h_B * (x - x0_B))) + b_B)


def _residuals(theta_BP: Floats, x: Floats, y_BN: Floats) -> tuple[Floats, Floats]:
    """Residuals [B, N] and derivatives of the curve [B, P, N]."""
    a_B, x0_B, h_B, b_B = (theta_BP[:, p : p + 1] for p in range(4))
    with np.errstate(over="ignore"):
        s_BN = 1 / (1 + np.exp(-h_B * (x - x0_B)))
    slope_BN = a_B * s_BN * (1 - s_BN)
    J_BPN = np.stack([s_BN, -h_B * slope_BN, (x - x0_B) * slope_BN, np.ones_like(s_BN)], axis=1)
    return a_B * s_BN + b_B - y_BN, J_BPN


def _solve(x: Floats, y_BN: Floats, start_BP: Floats, lower_P: Floats, upper_P: Floats) -> Found:
    """The least squares within the bounds of each set, x of shape [N] or [B, N]."""
    x_BN = np.broadcast_to(x, y_BN.shape)

    def objective(theta_PB: Floats, sets: Sets) -> Local:
        residual_BN, J_BPN = _residuals(theta_PB.T, x_BN[sets], y_BN[sets])
        return squares(residual_BN.T, np.moveaxis(J_BPN, 0, -1))

    return minimise(objective, start_BP.T, lower_P, upper_P, _END)
