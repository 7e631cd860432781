"""What a token loses along x = ln D (or ln S, ln C): a sigmoid, or a power law; how fast that falls; drawn worlds.

sigmoid: y = end + (start - end) / (1 + exp((x - time) / width)), both levels at least 0; it may rise.
power law: y = E + B exp(-c (x - x_1)), E and B at least 0, so y - E = B (D / D_1)^-c.

Source: Smooth scaling laws hide stepwise token learning (arXiv 2606.29858), for the sigmoid.

Shapes: M tokens, T points.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rbpx.laws.learning.projected import Projected, fit_projected
from rbpx.laws.numeric import Floats

FEWEST: Final = 8  # points for the four numbers of a sigmoid: six are left where two are held out
_ROUNDING: Final = 1e-9  # of ln width
_MARGIN: Final = 0.25  # of the range of x: how far outside of it a time may be
_SHARPEST: Final = 0.25  # of the smallest gap between points: what is sharper looks the same
_WIDEST: Final = 0.5  # of the range of x
_GRID: Final = (33, 6)  # times and widths
_POWERS: Final = (0.05, 20.0, 40)  # over the range of x: the least and greatest exponent, and how many of the grid


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """Shapes 1 / (1 + exp((x - time) / width)); their numbers are the time and ln width.

    Attributes:
        x_T: the points that they are fitted to.
    """

    x_T: Floats
    lo_P: Floats = field(init=False)
    hi_P: Floats = field(init=False)
    may_rise: bool = True

    def __post_init__(self) -> None:
        first, last = float(self.x_T[0]), float(self.x_T[-1])
        margin, sharpest = _MARGIN * (last - first), _SHARPEST * float(np.diff(self.x_T).min())
        object.__setattr__(self, "lo_P", np.array([first - margin, np.log(sharpest)]))
        object.__setattr__(self, "hi_P", np.array([last + margin, np.log(_WIDEST * (last - first))]))

    def grid(self) -> Floats:
        """Times evenly spaced, widths too in their logarithm, [G, 2]."""
        times, widths = (np.linspace(lo, hi, n) for lo, hi, n in zip(self.lo_P, self.hi_P, _GRID, strict=True))
        return np.stack(np.meshgrid(times, widths, indexing="ij"), axis=-1).reshape(-1, 2)

    def at(self, x_T: Floats, p_MP: Floats) -> Floats:
        """The shapes, [M, T]."""
        return np.asarray(expit((p_MP[:, :1] - x_T) / np.exp(p_MP[:, 1:])))

    def slopes(self, x_T: Floats, p_MP: Floats, s_MT: Floats) -> Floats:
        """Their derivatives by time and ln width, [2, M, T]."""
        by_time_MT = s_MT * (1 - s_MT) / np.exp(p_MP[:, 1:])
        return np.stack([by_time_MT, by_time_MT * (x_T - p_MP[:, :1])])


@dataclass(frozen=True, eq=False)
class Power:
    """Shapes exp(-c (x - x_1)); their number is ln c.

    Attributes:
        x_T: the points that they are fitted to.
    """

    x_T: Floats
    lo_P: Floats = field(init=False)
    hi_P: Floats = field(init=False)
    may_rise: bool = False

    def __post_init__(self) -> None:
        reach = float(self.x_T[-1] - self.x_T[0])
        object.__setattr__(self, "lo_P", np.array([np.log(_POWERS[0] / reach)]))
        object.__setattr__(self, "hi_P", np.array([np.log(_POWERS[1] / reach)]))

    def grid(self) -> Floats:
        """Exponents evenly spaced in their logarithm, [G, 1]."""
        return np.linspace(self.lo_P, self.hi_P, _POWERS[2])

    def at(self, x_T: Floats, p_MP: Floats) -> Floats:
        """The shapes, [M, T]."""
        return np.asarray(np.exp(-np.exp(p_MP) * (x_T - self.x_T[0])))

    def slopes(self, x_T: Floats, p_MP: Floats, s_MT: Floats) -> Floats:
        """Their derivatives by ln c, [1, M, T]."""
        return np.asarray((-np.exp(p_MP) * (x_T - self.x_T[0]) * s_MT)[None])


@dataclass(frozen=True, eq=False)
class Sigmoids:
    """The sigmoid of each token.

    Attributes:
        shape: of which points.
        found: the fits.
    """

    shape: Sigmoid
    found: Projected

    @property
    def start_M(self) -> Floats:
        """The level before the time, nats."""
        return self.found.level_M + self.found.drop_M

    @property
    def end_M(self) -> Floats:
        """The level after it, nats."""
        return self.found.level_M

    @property
    def time_M(self) -> Floats:
        """The time, in x."""
        return self.found.p_MP[:, 0]

    @property
    def width_M(self) -> Floats:
        """The width, in x."""
        return np.exp(self.found.p_MP[:, 1])

    @property
    def is_sharpest_M(self) -> NDArray[np.bool_]:
        """Whether the width is the least there can be: a step within a gap between points, which hide its width."""
        return np.asarray(self.found.p_MP[:, 1] <= self.shape.lo_P[1] + _ROUNDING)

    def at(self, x_X: Floats) -> Floats:
        """The losses at any x, [M, X]."""
        return self.found.at(self.shape, x_X)


def fit_sigmoids(x_T: Floats, y_MT: NDArray[np.floating]) -> Sigmoids:
    """The sigmoid of least squares of each token.

    Args:
        x_T: points, ascending, at least six.
        y_MT: losses in nats.

    Raises:
        ValueError: there are fewer points, or a loss is negative.
    """
    if len(x_T) < FEWEST - 2 or np.any(np.diff(x_T) <= 0):
        raise ValueError(f"four numbers need {FEWEST - 2} ascending points, got {len(x_T)}")
    shape = Sigmoid(x_T)
    return Sigmoids(shape, fit_projected(shape, x_T, y_MT))


@dataclass(frozen=True, eq=False)
class Powers:
    """The power law of each token."""

    shape: Power
    found: Projected

    def at(self, x_X: Floats) -> Floats:
        """The losses at any x, [M, X]."""
        return self.found.at(self.shape, x_X)


def fit_powers(x_T: Floats, y_MT: NDArray[np.floating]) -> Powers:
    """The power law of least squares of each token; a token that does not fall has B = 0.

    Args:
        x_T: points, ascending, at least four.
        y_MT: losses in nats.

    Raises:
        ValueError: there are fewer points, or a loss is negative.
    """
    if len(x_T) < 4 or np.any(np.diff(x_T) <= 0):
        raise ValueError(f"three numbers need 4 ascending points, got {len(x_T)}")
    shape = Power(x_T)
    return Powers(shape, fit_projected(shape, x_T, y_MT))


def drawn_smooth(powers: Powers, y_MT: NDArray[np.floating], seed: int) -> Floats:
    """A world in which every token falls as its own power law, with noise of the size that its residuals have, [M, T].

    The signs of the residuals are drawn and they are shuffled among the points of their token, so that whatever shape
    they had is gone; a loss below 0 is reflected.

    Args:
        powers: of the measured tokens, fitted to all points.
        y_MT: what was measured.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    smooth_MT = powers.at(powers.shape.x_T)
    T = smooth_MT.shape[1]
    noise_MT = (y_MT - smooth_MT) * np.sqrt(T / (T - 3))
    noise_MT = rng.permuted(noise_MT, axis=1) * rng.choice([-1.0, 1.0], size=noise_MT.shape)
    return np.asarray(np.abs(smooth_MT + noise_MT))
