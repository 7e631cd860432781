"""Classifies what each token's loss does along an axis: known from the start, learned, forgotten or neither.

Shapes: M tokens, T points.
"""

import math
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.learning.curves import Curves, fit_sigmoids
from rbpx.laws.numeric import Floats

KNOWN_NATS: Final = math.log(2)  # below it the true token has more than half the probability
TURNS_NATS: Final = 1.0  # least fall and rise of a turn
_TURNS_SHARE: Final = 0.5  # least rise of a turn, relative to its fall
_LEVEL: Final = 0.975  # for each of two directions, so that 5 % of flat tokens seem to change
_FLAT: Final = (4000, 20.0, 20261)  # simulated constant tokens: number, level in units of noise, seed
_N_CONSTANTS: Final = 4


class Kind(IntEnum):
    """What the losses of a token do; the first that holds."""

    known = 0  # always known: below ln 2 nats at every point
    turns = 1  # falls and later rises by a nat or more, beyond noise and by at least half of its fall
    learned = 2  # falls, with its time between the first and the last point
    before = 3  # falls, with its time before the first point
    after = 4  # falls, with its time after the last point
    forgotten = 5  # rises
    never = 6  # no sigmoid is significant: never learned, as far as these points show


def kinds(sigmoids: Curves, x_T: Floats, y_MT: NDArray[np.floating]) -> NDArray[np.int8]:
    """Returns the kind of each token by the values of `Kind`, [M]; `sigmoids` are fitted to all points, losses in nats.

    A fall or rise counts as change where its F statistic exceeds that of 97.5 % of simulated constant tokens at the
    same points (times and widths are searched for, so it has no F distribution). A turn is tested likewise, by its size
    relative to the differences of neighbouring points.
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
    """F of a sigmoid against a constant, [M]."""
    left_M, dof = sigmoids.squares_M, sigmoids.left_MT.shape[1] - _N_CONSTANTS
    gain_M = np.maximum(sigmoids.about_M - left_M, 0.0) / (_N_CONSTANTS - 1)
    return np.asarray(gain_M / np.maximum(left_M / dof, np.finfo(float).tiny))


def _there_and_back(y_MT: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """The largest fall and later rise of a loss, the lesser of both, [M]; and in units of noise.

    The noise is estimated from the differences of neighbouring points.
    """
    before_MT = np.maximum.accumulate(y_MT, axis=1) - y_MT
    after_MT = np.maximum.accumulate(y_MT[:, ::-1], axis=1)[:, ::-1] - y_MT
    back_M = np.minimum(before_MT, after_MT).max(axis=1).astype(np.float64)
    noise_M = np.sqrt((np.diff(y_MT, axis=1) ** 2).mean(axis=1) / 2)
    return back_M, back_M / np.maximum(noise_M, np.finfo(float).tiny)
