"""A law along training, y = E + B D^-beta, from the checkpoint where the warm-up ends.

Shapes: T checkpoints, K candidates for the end of the warm-up.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.names import Method
from rbpx.laws.power import PowerLawFit, fit_power_law
from rbpx.laws.surface.chinchilla import Chinchilla
from rbpx.laws.surface.objective import Objective
from rbpx.laws.surface.runs import Runs
from rbpx.laws.surface.solve import minimise

__all__ = ["AfterWarmUp", "fit_after_warm_up"]

Floats = NDArray[np.float64]

_LEAST_AFTER: Final = 5  # checkpoints of a law with three constants
_MOST_BEFORE: Final = 0.5  # of the checkpoints
_SQUARES: Final = 1e3  # a delta so large that Huber's loss is half of a square


@dataclass(frozen=True)
class AfterWarmUp:
    """A law of the checkpoints from `first` on.

    Attributes:
        first: index of the first checkpoint that follows the law, in the order of D.
        D: its tokens.
        is_found: whether it was found, not given.
        law: of these checkpoints (method `offset`; its S is D, its C is B, its alpha is beta). Its intervals take the
            checkpoints to scatter independently, which those of one training hardly do.
        bic: of each candidate for `first`, from 0; empty where it was given.
    """

    first: int
    D: float
    is_found: bool
    law: PowerLawFit
    bic: tuple[float, ...]


def fit_after_warm_up(D: ArrayLike, y: ArrayLike, warm_up: float | None = None) -> AfterWarmUp | None:
    """Fit the law to the checkpoints after a warm-up that is given, or found.

    It is found by BIC = T ln(SS_k / T) + (3 + k) ln T, where the law is fitted from checkpoint k on with SS_k the sum
    of squares of ln y about it, and each of the k before it is described by a number of its own. At most half of the
    checkpoints are before it.

    Args:
        D: tokens of each checkpoint, shape [T], positive and all different, in any order.
        y: the quantity there, positive, shape [T].
        warm_up: tokens up to which (exclusive) checkpoints are left out; None to find it.

    Returns:
        The law; None where fewer than 5 checkpoints are left.

    Raises:
        ValueError: if shapes disagree, tokens are not positive and different, or a y is not positive and finite.
    """
    order = np.argsort(np.asarray(D, np.float64))
    runs = Runs.of(np.ones(len(order)), np.asarray(D, np.float64)[order], np.asarray(y, np.float64)[order])
    D_T, y_T, T = runs.D_N, runs.y_N, len(order)
    if not np.all((y_T > 0) & np.isfinite(y_T)) or np.any(np.diff(D_T) == 0):
        raise ValueError("a trajectory needs a positive y at different tokens")
    if warm_up is not None:
        first, bic = int(np.searchsorted(D_T, warm_up)), np.empty(0)
    else:
        bic = _bic(runs)
        first = int(np.argmin(bic)) if len(bic) else 0
    if T - first < _LEAST_AFTER:
        return None
    law = fit_power_law(D_T[first:], y_T[first:], method=Method.offset)
    return AfterWarmUp(first, float(D_T[first]), warm_up is None, law, tuple(bic.tolist()))


def _bic(runs: Runs) -> Floats:
    """Of each candidate, [K]."""
    T = len(runs.y_N)
    K = min(int(_MOST_BEFORE * T), T - _LEAST_AFTER) + 1
    if K < 1:
        return np.empty(0)
    form = Chinchilla(float(np.exp(np.log(runs.y_N).mean())))
    ln_y_T = np.log(runs.y_N / form.y_ref)
    after_KT = (np.arange(T) >= np.arange(K)[:, None]).astype(np.float64)
    only_D = np.array([True, False, False, True, False])
    start_BP = form.starts(runs.x, ln_y_T)
    start_BP[:, only_D] = 0.0
    start_BP[:, 1] = np.maximum(start_BP[:, 1], 1e-3)
    start_BP = np.unique(start_BP, axis=0)
    B = len(start_BP)
    found = minimise(
        form,
        runs.x,
        Objective.log_huber,
        _SQUARES,
        ln_y_T[None],
        np.repeat(after_KT, B, axis=0),
        np.tile(start_BP, (K, 1)),
        only_D,
    )
    squares_K = 2 * found.total_B.reshape(K, B).min(axis=1)
    # Where checkpoints lie on the law to rounding, no scatter is left to compare, and the fewest are left out.
    floor = T * (1e-12) ** 2
    return np.asarray(T * np.log(np.maximum(squares_K, floor) / T) + (3 + np.arange(K)) * math.log(T))
