"""Fits a sigmoid or a power law to the loss of each of many tokens along x = ln D (or ln S, ln C).

sigmoid: y = end + (start - end) s, s = 1 / (1 + exp((x - time) / width)); it may rise.
power law: y = E + B s, s = exp(-c (x - x_1)), so y - E = B (D / D_1)^-c.

Levels, all at least 0, are closed-form least squares for a given shape s, so the search is over one or two parameters
per token: damped Gauss-Newton (variable projection) from the best of a grid.

Source: Smooth scaling laws hide stepwise token learning (arXiv 2606.29858), for the sigmoid; Golub and Pereyra, SIAM J.
Numer. Anal. 10 (1973), 413, for the search.

Shapes: M tokens, A tokens still searched, T points, G shapes of the grid, P parameters of a shape.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rbpx.laws.numeric import Floats

FEWEST: Final = 8  # points for the four parameters of a sigmoid, so that six are left with two held out
_MARGIN: Final = 0.25  # of the range of x: how far outside it a time may lie
_SHARPEST: Final = 0.25  # of the smallest gap between points: a sharper width looks the same
_WIDEST: Final = 0.5  # of the range of x
_POWERS: Final = (0.05, 20.0)  # over the range of x: the least and greatest exponent
_TOKENS: Final = 1 << 13  # at a time, which fit in the cache
_STEPS: Final = 25
_CLOSE: Final = 1e-8  # convergence: gain relative to the sum of squares, and step relative to the range of a parameter
_DAMPED: Final = (1e-3, 1e-12, 1e8)  # initial damping, and its bounds
_RIDGE: Final = 1e-12  # added to the products of columns, which may be identical
_ROUNDING: Final = 1e-9  # of ln width

Columns = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Function of x [T] since the first point and shape parameters [M, P], which returns the two columns [M, T]."""


def _of_sigmoid(x_T: Floats, p_MP: Floats) -> tuple[Floats, Floats]:
    s_MT = expit((p_MP[:, :1] - x_T) / np.exp(p_MP[:, 1:]))
    return s_MT, 1 - s_MT


def _of_power(x_T: Floats, p_MP: Floats) -> tuple[Floats, Floats]:
    s_MT = np.exp(-np.exp(p_MP) * x_T)
    return s_MT, np.ones_like(s_MT)


class Curves(NamedTuple):
    """The curve of each token.

    Attributes:
        columns: of its shape.
        first: x of the first point.
        lo_P: lower bounds of the shape parameters.
        p_MP: the shape parameters: of a sigmoid time since the first point and ln width, of a power law ln c.
        high_M: coefficient of the first column: start, or B.
        low_M: of the second: end, or E.
        left_MT: the residuals.
        about_M: the sum of squares about the mean.
    """

    columns: Columns
    first: float
    lo_P: Floats
    p_MP: Floats
    high_M: Floats
    low_M: Floats
    left_MT: Floats
    about_M: Floats

    def at(self, x_X: Floats) -> Floats:
        """Returns the losses at any x, [M, X]."""
        one_MX, other_MX = self.columns(x_X - self.first, self.p_MP)
        return self.high_M[:, None] * one_MX + self.low_M[:, None] * other_MX

    @property
    def squares_M(self) -> Floats:
        """The sum of squared residuals."""
        return np.asarray((self.left_MT**2).sum(axis=1))

    @property
    def time_M(self) -> Floats:
        """The times of sigmoids, in x."""
        return self.first + self.p_MP[:, 0]

    @property
    def width_M(self) -> Floats:
        """The widths of sigmoids, in x."""
        return np.exp(self.p_MP[:, 1])

    @property
    def is_sharpest_M(self) -> NDArray[np.bool_]:
        """Whether the width is at its lower bound, as for a step between two points."""
        return np.asarray(self.p_MP[:, 1] <= self.lo_P[1] + _ROUNDING)


def fit_sigmoids(x_T: Floats, y_MT: NDArray[np.floating]) -> Curves:
    """Fits a sigmoid by least squares to the losses of each token, at six or more ascending points."""
    reach, gap = float(x_T[-1] - x_T[0]), float(np.diff(x_T).min())
    times = np.linspace(-_MARGIN * reach, (1 + _MARGIN) * reach, 33)
    return _fit(_of_sigmoid, (times, np.log(np.geomspace(_SHARPEST * gap, _WIDEST * reach, 6))), x_T, y_MT)


def fit_powers(x_T: Floats, y_MT: NDArray[np.floating]) -> Curves:
    """Fits a power law by least squares to each token, at four points or more; B is 0 where the loss does not fall."""
    return _fit(_of_power, (np.log(np.geomspace(*_POWERS, 40) / (x_T[-1] - x_T[0])),), x_T, y_MT)


def simulate_power_laws(powers: Curves, x_T: Floats, seed: int) -> Floats:
    """Draws losses that follow each token's own power law, with noise of the size of its residuals, [M, T].

    Each token's residuals of the fit to all points are shuffled, with random signs; a loss below 0 is reflected.
    """
    rng, T = np.random.default_rng(seed), len(x_T)
    noise_MT = rng.permuted(powers.left_MT * np.sqrt(T / (T - 3)), axis=1)
    return np.asarray(np.abs(powers.at(x_T) + noise_MT * rng.choice([-1.0, 1.0], size=noise_MT.shape)))


def _fit(columns: Columns, axes: tuple[Floats, ...], x_T: Floats, y_MT: NDArray[np.floating]) -> Curves:
    """Fits curves with shape parameters within their axes, whose values are the grid."""
    lo_P, hi_P = (np.array([axis[end] for axis in axes]) for end in (0, -1))
    grid_GP = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    begins = range(0, max(len(y_MT), 1), _TOKENS)
    parts = [_search(columns, grid_GP, lo_P, hi_P, x_T - x_T[0], y_MT[at : at + _TOKENS]) for at in begins]
    return Curves(columns, float(x_T[0]), lo_P, *map(np.concatenate, zip(*parts, strict=True)))


def _search(
    columns: Columns, grid_GP: Floats, lo_P: Floats, hi_P: Floats, x_T: Floats, given_MT: NDArray[np.floating]
) -> tuple[Floats, ...]:
    """Shape parameters, levels, residuals, and squares about the mean of some tokens."""
    y_MT = given_MT.astype(np.float64)
    about_M = ((y_MT - y_MT.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    of_GT = columns(x_T, grid_GP)
    products = [y_MT @ each_GT.T for each_GT in of_GT]
    high_MG, low_MG = _levels(*products, *_among(*of_GT))
    explained_MG = high_MG * products[0] + low_MG * products[1]
    # The first of those that equal the best to rounding: every shape fits a token that never changes.
    p_MP = grid_GP[(explained_MG >= (1 - _RIDGE) * explained_MG.max(axis=1, keepdims=True)).argmax(axis=1)]
    found = _left(columns, x_T, p_MP, y_MT)
    damping_M, unit_P = np.full(len(y_MT), _DAMPED[0]), _CLOSE * (hi_P - lo_P)
    at_M = np.flatnonzero(about_M > 0)  # of tokens whose search goes on
    for _ in range(_STEPS):
        if not len(at_M):
            break
        y_AT, p_AP, left_AT = y_MT[at_M], p_MP[at_M], found[2][at_M]
        nudged = [_left(columns, x_T, p_AP + unit_P * one_P, y_AT)[2] for one_P in np.eye(len(unit_P))]
        J_PAT = (np.stack(nudged) - left_AT) / unit_P[:, None, None]
        next_AP = np.clip(p_AP + _step(J_PAT, left_AT, p_AP <= lo_P, p_AP >= hi_P, damping_M[at_M]), lo_P, hi_P)
        after = _left(columns, x_T, next_AP, y_AT)
        gain_A = np.einsum("at,at->a", left_AT, left_AT) - np.einsum("at,at->a", after[2], after[2])
        better_A = gain_A > 0
        ends_A = (better_A & (gain_A <= _CLOSE * about_M[at_M])) | (damping_M[at_M] >= _DAMPED[2])
        ends_A |= (np.abs(next_AP - p_AP) <= unit_P).all(axis=1)
        for mine, new in zip((p_MP, *found), (next_AP, *after), strict=True):
            mine[at_M[better_A]] = new[better_A]
        damping_M[at_M] = np.clip(damping_M[at_M] * np.where(better_A, 0.2, 8.0), *_DAMPED[1:])
        at_M = at_M[~ends_A]
    return p_MP, *found, about_M


def _left(columns: Columns, x_T: Floats, p_MP: Floats, y_MT: Floats) -> tuple[Floats, Floats, Floats]:
    """The best levels of given shapes, and the residuals."""
    one_MT, other_MT = columns(x_T, p_MP)
    of_y = (np.einsum("mt,mt->m", each_MT, y_MT) for each_MT in (one_MT, other_MT))
    high_M, low_M = _levels(*of_y, *_among(one_MT, other_MT))
    return high_M, low_M, y_MT - high_M[:, None] * one_MT - low_M[:, None] * other_MT


def _among(one_MT: Floats, other_MT: Floats) -> list[Floats]:
    pairs = (one_MT, one_MT), (one_MT, other_MT), (other_MT, other_MT)
    return [np.einsum("mt,mt->m", *pair) for pair in pairs]


def _levels(one_y: Floats, other_y: Floats, one_one: Floats, both: Floats, other_other: Floats) -> tuple[Floats, ...]:
    """Coefficients of two columns by least squares, neither below 0, from their products."""
    one_one, other_other = one_one + _RIDGE, other_other + _RIDGE
    volume = one_one * other_other - both**2
    one, other = (other_other * one_y - both * other_y) / volume, (one_one * other_y - both * one_y) / volume
    return (
        np.where(other < 0, one_y / one_one, np.maximum(one, 0.0)),
        np.where(one < 0, other_y / other_other, np.maximum(other, 0.0)),
    )


def _step(
    J_PAT: Floats, left_AT: Floats, is_low_AP: NDArray[np.bool_], is_high_AP: NDArray[np.bool_], damping_A: Floats
) -> Floats:
    """A damped Gauss-Newton step in the shape parameters, [A, P]; parameters at a bound stay there."""
    down_AP = -np.einsum("pat,at->ap", J_PAT, left_AT)
    curve_APP = np.einsum("pat,qat->apq", J_PAT, J_PAT)
    free_AP = ~((is_low_AP & (down_AP < 0)) | (is_high_AP & (down_AP > 0)))
    curve_APP *= free_AP[:, :, None] & free_AP[:, None, :]
    on_AP = np.einsum("app->ap", curve_APP)
    most_A1 = on_AP.max(axis=1, keepdims=True)
    added_AP = damping_A[:, None] * on_AP + np.where(free_AP & (most_A1 > 0), 1e-12 * most_A1, 1.0)
    damped_APP = curve_APP + added_AP[:, :, None] * np.eye(len(J_PAT))
    return np.asarray(np.linalg.solve(damped_APP, (down_AP * free_AP)[..., None])[..., 0])
