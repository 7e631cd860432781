"""What became of each token's loss along an axis: known from the start, learned, forgotten, neither.

Shapes: M tokens, T points.
"""

import math
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from rbpx.laws.learning.curves import Sigmoids

KNOWN_NATS: Final = math.log(2)  # below it the true token has more than half of the probability
TURNS_NATS: Final = 1.0  # a fall and a rise of so much are both seen
_TURNS_SHARE: Final = 0.5  # of the fall, that rises again
_REJECTED: Final = 0.05
_N_CONSTANTS: Final = 4


class Kind(IntEnum):
    """What the losses of a token do; the first that holds."""

    known = 0  # always known: below ln 2 nats at every point
    turns = 1  # not monotone: falls and later rises by a nat or more, the rise at least half of the fall
    learned = 2  # falls, with its time between the first and the last point
    before = 3  # falls, with its time before the first point
    after = 4  # falls, with its time after the last point
    forgotten = 5  # rises
    never = 6  # no sigmoid is told from a constant: never learned, as far as these points show


def kinds(sigmoids: Sigmoids, y_MT: NDArray[np.floating]) -> NDArray[np.int8]:
    """The kind of each token, [M], by the values of `Kind`.

    A fall or a rise is told from a constant by an F test at 5 %, approximate because times and widths are searched for.

    Args:
        sigmoids: fitted to all points.
        y_MT: losses in nats.
    """
    x_T, found = sigmoids.shape.x_T, sigmoids.found
    dof = len(x_T) - _N_CONSTANTS
    gain_M = np.maximum(found.about_M - found.squares_M, 0.0) / (_N_CONSTANTS - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        F_M = np.where(found.squares_M > 0, gain_M / (found.squares_M / dof), np.inf)
    changes_M = (fdtrc(_N_CONSTANTS - 1, dof, F_M) < _REJECTED) & (found.drop_M != 0)
    fall_M = (np.maximum.accumulate(y_MT, axis=1) - y_MT).max(axis=1)
    at_least_MT = _lowest_after_fall(y_MT)
    rise_M = (y_MT - at_least_MT).max(axis=1)
    turns_M = (fall_M >= TURNS_NATS) & (rise_M >= np.maximum(TURNS_NATS, _TURNS_SHARE * fall_M))
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


def _lowest_after_fall(y_MT: NDArray[np.floating]) -> NDArray[np.floating]:
    """The least loss up to each point once a loss has fallen by a nat; infinite before."""
    highest_MT = np.maximum.accumulate(y_MT, axis=1)
    fell_MT = np.maximum.accumulate(highest_MT - y_MT >= TURNS_NATS, axis=1)
    return np.minimum.accumulate(np.where(fell_MT, y_MT, np.inf), axis=1)
