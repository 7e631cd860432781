"""The loss at points that were left out of the fits, and the slope of the mean loss rebuilt there.

Interior points are left out a third at a time, so that no two neighbours are, and each once. Between a left-out point
and each of its neighbours the slope (L_j - L_i) / (x_j - x_i) is compared with the same difference of the curves that
were fitted without that point; a difference between both neighbours would not contain the left-out point at all.

Shapes: M tokens, T points, J = T - 2 points that are left out, G = 2 J gaps beside them, D documents, B replicates.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.learning.curves import fit_powers, fit_sigmoids
from rbpx.laws.numeric import Floats

CURVES: Final = ("sigmoid", "power", "line")  # the line joins both neighbours, which needs no token
_FOLDS: Final = 3


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The losses of tokens at points that their curves were fitted without.

    Attributes:
        at_J: the points that were left out, by their index.
        around_CMJ3: by curve (`CURVES`) the losses before, at and after each of them, by the fit without it.
    """

    at_J: NDArray[np.int64]
    around_CMJ3: NDArray[np.float32]


def left_out(x_T: Floats, y_MT: NDArray[np.floating]) -> LeftOut:
    """Fit each token without a third of the interior points at a time, and say what its curves are around them.

    Args:
        x_T: points, ascending, at least eight.
        y_MT: losses in nats.
    """
    T, M = len(x_T), len(y_MT)
    around = np.empty((len(CURVES), M, T - 2, 3), np.float32)
    for fold in range(_FOLDS):
        out = np.arange(1 + fold, T - 1, _FOLDS)
        kept = np.setdiff1d(np.arange(T), out)
        sigmoids, powers = fit_sigmoids(x_T[kept], y_MT[:, kept]), fit_powers(x_T[kept], y_MT[:, kept])
        for at in out:
            three = x_T[at - 1 : at + 2]
            around[0, :, at - 1] = sigmoids.at(three)
            around[1, :, at - 1] = powers.at(three)
            before, _, after = y_MT[:, at - 1 : at + 2].T
            share = (three[1] - three[0]) / (three[2] - three[0])
            around[2, :, at - 1] = np.stack([before, before + share * (after - before), after], axis=1)
    return LeftOut(np.arange(1, T - 1), around)


def slopes_beside(x_T: Floats, level_XJ3: Floats) -> Floats:
    """The slopes before and after each left-out point, [X, G], from levels before, at and after it."""
    gap_J2 = np.stack([x_T[1:-1] - x_T[:-2], x_T[2:] - x_T[1:-1]], axis=1)
    return (np.diff(level_XJ3, axis=-1) / gap_J2).reshape(len(level_XJ3), -1)


def explained(measured_BG: Floats, rebuilt_BG: Floats) -> Floats:
    """R2 of slopes: 1 - sum (rebuilt - measured)^2 / sum (measured - mean)^2, [B]; NaN where all are equal."""
    about_B = ((measured_BG - measured_BG.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(about_B > 0, 1 - ((rebuilt_BG - measured_BG) ** 2).sum(axis=1) / about_B, np.nan)
