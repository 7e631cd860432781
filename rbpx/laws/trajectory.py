"""The law y = E + B D^-beta along training, after a warm-up.

Shapes: T checkpoints in order, K candidates for the end of the warm-up.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc

from rbpx.laws.names import Method, Objective
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.prediction.verdict import judged
from rbpx.laws.surface.equations import Chinchilla
from rbpx.laws.surface.loss import Loss
from rbpx.laws.surface.runs import Runs

_LEAST_AFTER: Final = 5  # checkpoints of a law with three constants
_MOST_BEFORE: Final = 0.5  # of the checkpoints
_REJECTED: Final = 0.01
_N_CONSTANTS: Final = 3
_ROUNDING: Final = 1e-12  # of ln y
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
        p: of each candidate for `first`, from 0: the probability of so large an F or a larger one if the law holds from
            there on; empty where `first` was given.
    """

    first: int
    D: float
    is_found: bool
    law: PowerLaw
    p: tuple[float, ...]


def fit_after_warm_up(D: ArrayLike, y: ArrayLike, warm_up: float | None = None) -> AfterWarmUp | None:
    """Fit the law to the checkpoints after a warm-up that is given, or found.

    It is found by F tests of nested models. With k checkpoints described by a number of their own, and the law fitted
    to the rest, SS_k is the sum of squares of ln y about it; K is half of the checkpoints. The warm-up ends at the
    first k that is not rejected at 1 %: F = (SS_k - SS_K) / (K - k) over SS_K / (T - K - 3).

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
        first, p_K = int(np.searchsorted(D_T, warm_up)), np.empty(0)
    else:
        p_K = _p(runs)
        first = int(np.argmax(p_K >= _REJECTED)) if len(p_K) else 0
    if T - first < _LEAST_AFTER:
        return None
    law = judged(fit_power_law(D_T[first:], y_T[first:], method=Method.offset))
    return AfterWarmUp(first, float(D_T[first]), warm_up is None, law, tuple(p_K.tolist()))


def _p(runs: Runs) -> Floats:
    """The p of each candidate, [K + 1]; that of the last is 1."""
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
    weight_BT = np.repeat(after_KT, B, axis=0)
    whole = Loss(form, runs.x, Objective.log_huber, _SQUARES, ln_y_T[None], weight_BT, only_D)
    squares_K = 2 * whole.minimise(np.tile(start_BP, (K, 1))).value_B.reshape(K, B).min(axis=1)
    # A law from a later checkpoint is never worse; what a search misses of that, or of rounding, is taken off.
    squares_K = np.maximum(np.maximum.accumulate(squares_K[::-1])[::-1], T * _ROUNDING**2)
    n_more_K, dof = np.maximum(K - 1 - np.arange(K), 1), T - (K - 1) - _N_CONSTANTS
    F_K = (squares_K - squares_K[-1]) / n_more_K / (squares_K[-1] / dof)
    return np.where(np.arange(K) == K - 1, 1.0, fdtrc(n_more_K, dof, F_K))
