"""What happened to each token along training, or along sizes: learned, forgotten, never, always or unstable.

Shapes: T checkpoints in order, M tokens.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class History(IntEnum):
    """The hit states of a token in the order of the checkpoints."""

    never = 0  # a miss at all
    always = 1  # a hit at all
    learned = 2  # a miss that became a hit and stayed one
    forgotten = 3  # a hit that became a miss and stayed one
    unstable = 4  # changed more than once


def histories(hit_TM: NDArray[np.bool_]) -> NDArray[np.int8]:
    """The history of each token, [M], by the values of `History`.

    Args:
        hit_TM: whether each token was a hit at each checkpoint; at least one checkpoint.
    """
    n_changes_M = (hit_TM[1:] != hit_TM[:-1]).sum(axis=0)
    last_M = hit_TM[-1]
    steady_M = np.where(last_M, History.always, History.never)
    changed_M = np.where(last_M, History.learned, History.forgotten)
    once_M = np.where(n_changes_M == 0, steady_M, changed_M)
    return np.where(n_changes_M > 1, History.unstable, once_M).astype(np.int8)


def settled(hit_TM: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The first checkpoint from which on the hit state of each token never changes, [M]; 0 if it never did.

    Args:
        hit_TM: as in `histories`.
    """
    T = len(hit_TM)
    change_TM = hit_TM[1:] != hit_TM[:-1]  # row t: between t and t + 1
    last_M = T - 1 - np.argmax(change_TM[::-1], axis=0) if T > 1 else np.zeros(hit_TM.shape[1], np.int64)
    return np.where(change_TM.any(axis=0), last_M, 0).astype(np.int64)
