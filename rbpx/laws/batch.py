"""Batch solver for many laws and many sets of points: ln S and the resamples of ln y in, parameters of each out.

A point fit goes through lmfit (`rbpx.laws.regression`), a thousand resamples of it through these, all at once and some
thousand times as fast; tests compare them with lmfit on the same resamples. Shapes: N sizes, P parameters, B sets of
points.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.arrays import Floats
from rbpx.laws.offset_search import search_offsets
from rbpx.laws.side_by_side import Problem

HUBER: Final = 1.345  # in units of the scale: 95 % of the efficiency of least squares on normal residuals


def huber_weight(residual_N: Floats, scale: float | None) -> Floats:
    """What each squared residual counts under Huber's loss."""
    if scale is None or scale == 0.0:  # more than half of the points lie on one line: nothing to bend
        return np.ones_like(residual_N)
    limit = HUBER * scale
    return np.asarray(limit / np.maximum(np.abs(residual_N), limit))


def huber_lines(x_N: Floats, ln_y_BN: Floats, start_P: Floats, scale: float) -> Floats:
    """Lines under Huber's loss of one scale, by iteratively reweighted least squares from one start; shape [B, 2]."""
    theta_BP = np.tile(start_P, (len(ln_y_BN), 1))
    for _ in range(100):
        residual_BN = ln_y_BN - theta_BP[:, :1] + theta_BP[:, 1:] * x_N
        w_BN = huber_weight(residual_BN, scale)
        mean_x, mean_y = ((w_BN * v).sum(1, keepdims=True) / w_BN.sum(1, keepdims=True) for v in (x_N, ln_y_BN))
        about_BN = x_N - mean_x
        slope_B = (w_BN * about_BN * ln_y_BN).sum(1) / (w_BN * about_BN**2).sum(1)
        new_BP = np.column_stack([mean_y[:, 0] - slope_B * mean_x[:, 0], -slope_B])
        moved = float(np.abs(new_BP - theta_BP).max())
        theta_BP = new_BP
        if moved < 1e-10:
            break
    return theta_BP


@dataclass(frozen=True, eq=False)
class Search(Problem):
    """Sets of points to which a law with an offset E >= 0 is to be fitted by least squares: parameters [B, P] of each.

    Attributes:
        x_N: ln(S / S_ref).
        ln_y_BN: logarithms of the values.
        start_BP: where each search starts.
        holds_alpha: keep the exponents of the starts.
    """

    x_N: Floats
    ln_y_BN: Floats
    start_BP: Floats
    holds_alpha: bool = False

    def kind(self) -> Hashable:
        """The sizes, and whether exponents are held."""
        return self.x_N.tobytes(), self.holds_alpha

    @staticmethod
    def solve(alike: Sequence["Search"]) -> list[Floats]:
        """The parameters of each; NaN where a search did not end."""
        ln_y_BN, start_BP = (np.concatenate([getattr(s, name) for s in alike]) for name in ("ln_y_BN", "start_BP"))
        found_BP = search_offsets(alike[0].x_N, ln_y_BN, start_BP, alike[0].holds_alpha)
        return np.split(found_BP, np.cumsum([len(each.start_BP) for each in alike])[:-1])
