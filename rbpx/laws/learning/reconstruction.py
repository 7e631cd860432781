"""The loss at points that were left out of the fits, and the slope of the mean loss rebuilt there.

Interior points are left out a third at a time, so that no two neighbours are, and each once. Between a left-out point
and each of its neighbours the slope (L_j - L_i) / (x_j - x_i) is compared with the same difference of the curves that
were fitted without that point; a difference between both neighbours would not contain the left-out point at all.

Shapes: M tokens, T points, J = T - 2 points that are left out, G = 2 J gaps beside them, C curves, X of any number.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.learning.curves import fit_powers, fit_sigmoids
from rbpx.laws.numeric import Floats

CURVES: Final = ("sigmoid", "power", "line")  # the line joins both neighbours, which needs no token
_FOLDS: Final = 3


def left_out(x_T: Floats, y_MT: NDArray[np.floating]) -> NDArray[np.float32]:
    """The losses before, at and after each interior point by the curves that were fitted without it, [C, M, J, 3].

    Args:
        x_T: points, ascending, at least eight.
        y_MT: losses in nats.
    """
    T = len(x_T)
    around = np.empty((len(CURVES), len(y_MT), T - 2, 3), np.float32)
    for fold in range(_FOLDS):
        out = np.arange(1 + fold, T - 1, _FOLDS)
        kept = np.setdiff1d(np.arange(T), out)
        sigmoids, powers = fit_sigmoids(x_T[kept], y_MT[:, kept]), fit_powers(x_T[kept], y_MT[:, kept])
        for at in out:
            three, (before, _, after) = x_T[at - 1 : at + 2], y_MT[:, at - 1 : at + 2].T
            middle = before + (three[1] - three[0]) / (three[2] - three[0]) * (after - before)
            of_line = np.stack([before, middle, after], axis=1)
            around[:, :, at - 1] = sigmoids.at(three), powers.at(three), of_line
    return around


def slopes_beside(x_T: Floats, level_XJ3: Floats) -> Floats:
    """The slopes before and after each left-out point, [X, G], from levels before, at and after it."""
    gap_J2 = np.stack([x_T[1:-1] - x_T[:-2], x_T[2:] - x_T[1:-1]], axis=1)
    return (np.diff(level_XJ3, axis=-1) / gap_J2).reshape(len(level_XJ3), -1)


def explained(measured_BG: Floats, rebuilt_BG: Floats) -> Floats:
    """R2 of slopes: 1 - sum (rebuilt - measured)^2 / sum (measured - mean)^2, [B]; NaN where all are equal."""
    about_B = ((measured_BG - measured_BG.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(about_B > 0, 1 - ((rebuilt_BG - measured_BG) ** 2).sum(axis=1) / about_B, np.nan)
