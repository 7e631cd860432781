"""What became of each token's loss along an axis: known from the start, learned, forgotten, neither.

Shapes: M tokens, T points.
"""

import math
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.learning.curves import Curves, fit_sigmoids
from rbpx.laws.numeric import Floats

KNOWN_NATS: Final = math.log(2)  # below it the true token has more than half of the probability
TURNS_NATS: Final = 1.0  # a fall and a rise of so much are both seen
_TURNS_SHARE: Final = 0.5  # of the fall, that rises again
_LEVEL: Final = 0.975  # of either of two ways to change, so that 5 % of flat tokens seem to
_FLAT: Final = (4000, 20.0, 20261)  # drawn tokens that do not change: how many, their level in units of noise, the seed
_N_CONSTANTS: Final = 4


class Kind(IntEnum):
    """What the losses of a token do; the first that holds."""

    known = 0  # always known: below ln 2 nats at every point
    turns = 1  # not monotone: falls and later rises by a nat or more and beyond noise, by at least half of its fall
    learned = 2  # falls, with its time between the first and the last point
    before = 3  # falls, with its time before the first point
    after = 4  # falls, with its time after the last point
    forgotten = 5  # rises
    never = 6  # no sigmoid is told from a constant: never learned, as far as these points show


def kinds(sigmoids: Curves, x_T: Floats, y_MT: NDArray[np.floating]) -> NDArray[np.int8]:
    """The kind of each token, [M], by the values of `Kind`.

    A fall or a rise is told from a constant where its F statistic is above that of 97.5 % of drawn tokens that do not
    change, at the same points: times and widths are searched for, so it has no F distribution. A turn is told from
    noise in the same way, by its size over that of the differences of neighbouring points.

    Args:
        sigmoids: fitted to all points.
        x_T: the points.
        y_MT: losses in nats.
    """
    n, level, seed = _FLAT
    flat_MT = level + np.random.default_rng(seed).normal(size=(n, len(x_T)))
    F_M, (back_M, of_noise_M) = _statistic(fit_sigmoids(x_T, flat_MT)), _there_and_back(flat_MT)
    least_F, least_of_noise = np.quantile(F_M, _LEVEL), np.quantile(of_noise_M, _LEVEL)
    back_M, of_noise_M = _there_and_back(y_MT)
    fall_M = (np.maximum.accumulate(y_MT, axis=1) - y_MT).max(axis=1)
    turns_M = (back_M >= np.maximum(TURNS_NATS, _TURNS_SHARE * fall_M)) & (of_noise_M > least_of_noise)
    changes_M, rises_M, time_M = _statistic(sigmoids) > least_F, sigmoids.high_M < sigmoids.low_M, sigmoids.time_M
    found = {
        Kind.known: (y_MT < KNOWN_NATS).all(axis=1),
        Kind.turns: turns_M,
        Kind.never: ~changes_M,
        Kind.forgotten: rises_M,
        Kind.before: time_M < x_T[0],
        Kind.after: time_M > x_T[-1],
    }
    return np.select([*found.values()], [*found], Kind.learned).astype(np.int8)


def _statistic(sigmoids: Curves) -> Floats:
    """What a sigmoid explains beside a constant, over what it leaves, each by its degrees of freedom, [M]."""
    left_M, dof = sigmoids.squares_M, sigmoids.left_MT.shape[1] - _N_CONSTANTS
    gain_M = np.maximum(sigmoids.about_M - left_M, 0.0) / (_N_CONSTANTS - 1)
    return np.asarray(gain_M / np.maximum(left_M / dof, np.finfo(float).tiny))


def _there_and_back(y_MT: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """How far a loss falls and rises again, the lesser of both where that is greatest, [M]; and in units of noise.

    The noise is what the differences of neighbouring points would have, were they nothing else.
    """
    before_MT = np.maximum.accumulate(y_MT, axis=1) - y_MT
    after_MT = np.maximum.accumulate(y_MT[:, ::-1], axis=1)[:, ::-1] - y_MT
    back_M = np.minimum(before_MT, after_MT).max(axis=1).astype(np.float64)
    noise_M = np.sqrt((np.diff(y_MT, axis=1) ** 2).mean(axis=1) / 2)
    return back_M, back_M / np.maximum(noise_M, np.finfo(float).tiny)
