"""Predicts the loss at points left out of the fits, and the slope of the mean loss there.

Each interior point is left out once, no two neighbours at a time. Slopes (L_j - L_i) / (x_j - x_i) between it and each
neighbour are compared with those of the curves fitted without it.

Shapes: M tokens, T points, J = T - 2 left-out points, G = 2 J gaps next to them, C curves, X of any number.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.learning.curves import fit_powers, fit_sigmoids
from rbpx.laws.numeric import Floats

CURVES: Final = ("sigmoid", "power", "line")  # the line joins both neighbours
_FOLDS: Final = 3


def cross_validated_losses(x_T: Floats, y_MT: NDArray[np.floating]) -> NDArray[np.float32]:
    """Returns losses before, at and after each interior point, by curves fitted without it, [C, M, J, 3].

    The points ascend, at least eight; losses are in nats.
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


def neighbour_slopes(x_T: Floats, level_XJ3: Floats) -> Floats:
    """Returns the slopes before and after each left-out point, [X, G], from levels before, at and after it."""
    gap_J2 = np.stack([x_T[1:-1] - x_T[:-2], x_T[2:] - x_T[1:-1]], axis=1)
    return (np.diff(level_XJ3, axis=-1) / gap_J2).reshape(len(level_XJ3), -1)


def r_squared(measured_BG: Floats, rebuilt_BG: Floats) -> Floats:
    """Returns R2 of slopes: 1 - sum (rebuilt - measured)^2 / sum (measured - mean)^2, [B]; NaN where all are equal."""
    about_B = ((measured_BG - measured_BG.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(about_B > 0, 1 - ((rebuilt_BG - measured_BG) ** 2).sum(axis=1) / about_B, np.nan)
