"""Fits the law y = E + B D^-beta to the checkpoints of a training after its warm-up.

Shapes: T checkpoints in order, K candidates for the end of the warm-up.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import fdtrc

from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.power.offset import regress
from rbpx.laws.prediction.verdict import with_exponent_statuses

_LEAST_AFTER: Final = 5  # checkpoints of a law with three constants
_MOST_BEFORE: Final = 0.5  # of the checkpoints
_REJECTED: Final = 0.01
_N_CONSTANTS: Final = 3
_ROUNDING: Final = 1e-12  # of ln y


@dataclass(frozen=True)
class AfterWarmUp:
    """A law of the checkpoints from index `first` on, in the order of D.

    Attributes:
        law: method `offset`; its S is D, its C is B, its alpha is beta. Its intervals assume independent scatter, which
            the checkpoints of one training hardly have.
        p: of the F test of each candidate `first`, from 0; empty where the warm-up was given.
    """

    first: int
    law: PowerLaw
    p: tuple[float, ...]


def fit_after_warm_up(D_T: Floats, y_T: Floats, warm_up: float | None = None) -> AfterWarmUp | None:
    """Fits the law to the checkpoints after a given or detected warm-up; None where fewer than 5 are left.

    Checkpoints with D below `warm_up` are left out. Without it, F tests of nested models detect the warm-up: with k
    checkpoints described by a number each and the law fitted to the rest, SS_k is the sum of squares of ln y about it;
    K is half of the checkpoints. The warm-up ends at the first k that is not rejected at 1 %: F = (SS_k - SS_K) / (K -
    k) over SS_K / (T - K - 3).
    """
    p_K = _p(np.log(D_T), np.log(y_T)) if warm_up is None else np.empty(0)
    first = int(np.argmax(p_K >= _REJECTED)) if len(p_K) else int(np.searchsorted(D_T, warm_up or 0.0))
    if len(D_T) - first < _LEAST_AFTER:
        return None
    law = with_exponent_statuses(fit_power_law(D_T[first:], y_T[first:], method=Method.offset))
    return AfterWarmUp(first, law, tuple(p_K.tolist()))


def _p(x_T: Floats, ln_y_T: Floats) -> Floats:
    """The p of each candidate, [K + 1]; that of the last is 1."""
    T = len(x_T)
    K = min(int(_MOST_BEFORE * T), T - _LEAST_AFTER) + 1
    if K < 1:
        return np.empty(0)
    laws = [regress(x_T[k:] - x_T[k:].mean(), ln_y_T[k:], Method.offset) for k in range(K)]
    # A law from a later checkpoint never fits worse; this removes violations by rounding.
    squares_K = np.maximum.accumulate([law.residual_N @ law.residual_N for law in laws][::-1])[::-1]
    squares_K = np.maximum(squares_K, T * _ROUNDING**2)
    n_more_K, dof = np.maximum(K - 1 - np.arange(K), 1), T - (K - 1) - _N_CONSTANTS
    F_K = (squares_K - squares_K[-1]) / n_more_K / (squares_K[-1] / dof)
    return np.where(np.arange(K) == K - 1, 1.0, fdtrc(n_more_K, dof, F_K))
