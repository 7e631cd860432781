"""What became of each token's loss along an axis: known from the start, learned, forgotten, neither.

Shapes: M tokens, T points.
"""

import math
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.learning.curves import Sigmoids, fit_sigmoids
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


def kinds(sigmoids: Sigmoids, y_MT: NDArray[np.floating]) -> NDArray[np.int8]:
    """The kind of each token, [M], by the values of `Kind`.

    A fall or a rise is told from a constant where its F statistic is above that of 97.5 % of drawn tokens that do not
    change, at the same points: times and widths are searched for, so it has no F distribution. A turn is told from
    noise in the same way, by its size over that of the differences of neighbouring points.

    Args:
        sigmoids: fitted to all points.
        y_MT: losses in nats.
    """
    x_T, found = sigmoids.shape.x_T, sigmoids.found
    n, level, seed = _FLAT
    flat_MT = level + np.random.default_rng(seed).normal(size=(n, len(x_T)))
    of_flat = _statistic(fit_sigmoids(x_T, flat_MT)), _in_noise(_there_and_back(flat_MT), flat_MT)
    bounds = [float(np.quantile(each_M, _LEVEL)) for each_M in of_flat]
    changes_M = (_statistic(sigmoids) > bounds[0]) & (found.drop_M != 0)
    back_M = _there_and_back(y_MT)
    fall_M = (np.maximum.accumulate(y_MT, axis=1) - y_MT).max(axis=1)
    turns_M = (back_M >= np.maximum(TURNS_NATS, _TURNS_SHARE * fall_M)) & (_in_noise(back_M, y_MT) > bounds[1])
    time_M = sigmoids.time_M
    kind_M = np.full(len(y_MT), Kind.never, np.int8)
    falls_M = changes_M & (found.drop_M > 0)
    kind_M[changes_M & (found.drop_M < 0)] = Kind.forgotten
    kind_M[falls_M & (time_M < x_T[0])] = Kind.before
    kind_M[falls_M & (time_M > x_T[-1])] = Kind.after
    kind_M[falls_M & (time_M >= x_T[0]) & (time_M <= x_T[-1])] = Kind.learned
    kind_M[turns_M] = Kind.turns
    kind_M[(y_MT < KNOWN_NATS).all(axis=1)] = Kind.known
    return kind_M


def _statistic(sigmoids: Sigmoids) -> Floats:
    """What a sigmoid explains beside a constant, over what it leaves, each by its degrees of freedom, [M]."""
    found, dof = sigmoids.found, len(sigmoids.shape.x_T) - _N_CONSTANTS
    gain_M = np.maximum(found.about_M - found.squares_M, 0.0) / (_N_CONSTANTS - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(found.squares_M > 0, gain_M / (found.squares_M / dof), np.where(gain_M > 0, np.inf, 0.0))


def _there_and_back(y_MT: NDArray[np.floating]) -> Floats:
    """How far a loss falls and rises again, the lesser of both at the point where it is greatest, [M]."""
    before_MT = np.maximum.accumulate(y_MT, axis=1) - y_MT
    after_MT = np.maximum.accumulate(y_MT[:, ::-1], axis=1)[:, ::-1] - y_MT
    return np.asarray(np.minimum(before_MT, after_MT).max(axis=1), dtype=np.float64)


def _in_noise(size_M: Floats, y_MT: NDArray[np.floating]) -> Floats:
    """A size over the noise that the differences of neighbouring points would have, were they nothing else, [M]."""
    noise_M = np.sqrt((np.diff(y_MT, axis=1) ** 2).mean(axis=1) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(noise_M > 0, size_M / noise_M, 0.0))
