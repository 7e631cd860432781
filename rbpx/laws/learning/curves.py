"""What each token loses along x = ln D (or ln S, ln C): a sigmoid, or a power law, of many tokens at once.

sigmoid: y = end + (start - end) s, s = 1 / (1 + exp((x - time) / width)); it may rise.
power law: y = E + B s, s = exp(-c (x - x_1)), so y - E = B (D / D_1)^-c.

No level is below 0, as no loss is. For a given shape s the levels are least squares of two columns in closed form
(s and 1 - s of a sigmoid, s and 1 of a power law), so that a search has one or two numbers a token instead of four: it
begins at the best shape of a grid, and goes on by Gauss's and Newton's damped steps of what the levels leave.

Source: Smooth scaling laws hide stepwise token learning (arXiv 2606.29858), for the sigmoid; Golub and Pereyra, SIAM J.
Numer. Anal. 10 (1973), 413, for the search (variable projection).

Shapes: M tokens, A tokens whose search goes on, T points, G shapes of the grid, P numbers of a shape.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rbpx.laws.numeric import Floats

FEWEST: Final = 8  # points for the four numbers of a sigmoid: six are left where two are held out
_MARGIN: Final = 0.25  # of the range of x: how far outside of it a time may be
_SHARPEST: Final = 0.25  # of the smallest gap between points: what is sharper looks the same
_WIDEST: Final = 0.5  # of the range of x
_POWERS: Final = (0.05, 20.0)  # over the range of x: the least and greatest exponent
_TOKENS: Final = 1 << 13  # at a time: what fits into a cache
_STEPS: Final = 25
_CLOSE: Final = 1e-8  # of the sum of squares, what another step would gain; of the range of a number, a step
_DAMPED: Final = (1e-3, 1e-12, 1e8)  # how strongly a search begins, and the bounds of that
_RIDGE: Final = 1e-12  # of the products of columns, where they are one and the same
_ROUNDING: Final = 1e-9  # of ln width

Columns = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""The two columns [M, T] of shapes with the numbers [M, P] at some x [T], from the first point on."""


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
        lo_P: the least value of each number of a shape.
        p_MP: the numbers: of a sigmoid time from the first point on and ln width, of a power law ln c.
        high_M: what the first column counts: start, or B.
        low_M: what the second counts: end, or E.
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
        """The losses at any x, [M, X]."""
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
        """Their widths, in x."""
        return np.exp(self.p_MP[:, 1])

    @property
    def is_sharpest_M(self) -> NDArray[np.bool_]:
        """Whether the width is the least there can be: a step within a gap between points, which hide its width."""
        return np.asarray(self.p_MP[:, 1] <= self.lo_P[1] + _ROUNDING)


def fit_sigmoids(x_T: Floats, y_MT: NDArray[np.floating]) -> Curves:
    """The sigmoid of least squares of the losses of each token, at six points or more that ascend."""
    reach, gap = float(x_T[-1] - x_T[0]), float(np.diff(x_T).min())
    times = np.linspace(-_MARGIN * reach, (1 + _MARGIN) * reach, 33)
    return _fit(_of_sigmoid, (times, np.log(np.geomspace(_SHARPEST * gap, _WIDEST * reach, 6))), x_T, y_MT)


def fit_powers(x_T: Floats, y_MT: NDArray[np.floating]) -> Curves:
    """The power law of least squares of each token, at four points or more; B is 0 of one that does not fall."""
    return _fit(_of_power, (np.log(np.geomspace(*_POWERS, 40) / (x_T[-1] - x_T[0])),), x_T, y_MT)


def drawn_smooth(powers: Curves, x_T: Floats, seed: int) -> Floats:
    """A world in which every token falls as its own power law, with noise of the size that its residuals have, [M, T].

    The signs of the residuals are drawn and they are shuffled among the points of their token, so that whatever shape
    they had is gone; a loss below 0 is reflected.

    Args:
        powers: of the measured tokens, fitted to all points.
        x_T: the points.
        seed: of the draws.
    """
    rng, T = np.random.default_rng(seed), len(x_T)
    noise_MT = rng.permuted(powers.left_MT * np.sqrt(T / (T - 3)), axis=1)
    return np.asarray(np.abs(powers.at(x_T) + noise_MT * rng.choice([-1.0, 1.0], size=noise_MT.shape)))


def _fit(columns: Columns, axes: tuple[Floats, ...], x_T: Floats, y_MT: NDArray[np.floating]) -> Curves:
    """The best curves of a shape whose numbers lie within their axes, along which the grid has its values."""
    lo_P, hi_P = (np.array([axis[end] for axis in axes]) for end in (0, -1))
    grid_GP = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    begins = range(0, max(len(y_MT), 1), _TOKENS)
    parts = [_search(columns, grid_GP, lo_P, hi_P, x_T - x_T[0], y_MT[at : at + _TOKENS]) for at in begins]
    return Curves(columns, float(x_T[0]), lo_P, *map(np.concatenate, zip(*parts, strict=True)))


def _search(
    columns: Columns, grid_GP: Floats, lo_P: Floats, hi_P: Floats, x_T: Floats, given_MT: NDArray[np.floating]
) -> tuple[Floats, ...]:
    """The numbers of some tokens, their levels, residuals, and squares about the mean."""
    y_MT = given_MT.astype(np.float64)
    about_M = ((y_MT - y_MT.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    of_GT = columns(x_T, grid_GP)
    products = [y_MT @ each_GT.T for each_GT in of_GT]
    high_MG, low_MG = _levels(*products, *_among(*of_GT))
    explained_MG = high_MG * products[0] + low_MG * products[1]
    # The first that is as good as the best but for rounding: every shape is of a token that never changes.
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
    """The products of two columns with themselves and each other."""
    pairs = (one_MT, one_MT), (one_MT, other_MT), (other_MT, other_MT)
    return [np.einsum("mt,mt->m", *pair) for pair in pairs]


def _levels(one_y: Floats, other_y: Floats, one_one: Floats, both: Floats, other_other: Floats) -> tuple[Floats, ...]:
    """What two columns count in the least squares of y, neither below 0, from their products."""
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
    """A damped step of Gauss and Newton in the numbers of the shape, [A, P]; numbers at a bound stay there."""
    down_AP = -np.einsum("pat,at->ap", J_PAT, left_AT)
    curve_APP = np.einsum("pat,qat->apq", J_PAT, J_PAT)
    free_AP = ~((is_low_AP & (down_AP < 0)) | (is_high_AP & (down_AP > 0)))
    curve_APP *= free_AP[:, :, None] & free_AP[:, None, :]
    on_AP = np.einsum("app->ap", curve_APP)
    most_A1 = on_AP.max(axis=1, keepdims=True)
    added_AP = damping_A[:, None] * on_AP + np.where(free_AP & (most_A1 > 0), 1e-12 * most_A1, 1.0)
    damped_APP = curve_APP + added_AP[:, :, None] * np.eye(len(J_PAT))
    return np.asarray(np.linalg.solve(damped_APP, (down_AP * free_AP)[..., None])[..., 0])
