"""Estimates when tokens are learned from their hits alone, as interval-censored times.

A time lies in one of T + 1 cells: cell 0 up to the first point of observation, cell T after the last. It is the cell
between the last miss and the first hit that stays, or any cell from before the first hit to that one. From some point
on the share that is not yet learned falls as

    S(x) / S(x_0) = never + (1 - never) exp(-c (x - x_0)),     so as D^-c where never = 0.

Source: B. W. Turnbull, JRSS B 38 (1976), 290, for the shares of cells.

Shapes: T points, M tokens, C = T + 1 cells, B bootstrap replicates.
"""

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize.elementwise import find_minimum

from rbpx.laws.numeric import Floats

_ROUNDS: Final = 20_000
_CLOSE: Final = 1e-10
_REACH: Final = (1e-3, 50.0, 100)  # grid of c times the range of x: least, greatest, number
_TINY: Final = float(np.finfo(float).tiny)


class History(IntEnum):
    """The hit states of a token in the order of the points."""

    never = 0  # a miss at every point
    always = 1  # a hit at every point
    learned = 2  # a miss that became a hit and stayed one
    forgotten = 3  # a hit that became a miss and stayed one
    unstable = 4  # changed more than once


class HitTimes(NamedTuple):
    """When each token is a hit.

    Attributes:
        first_M: the cell that ends at the first hit; T where there is none.
        lasting_M: the cell between the last miss and the first hit that stays; T where the last point is a miss.
        settled_M: the point from which on the state never changes.
    """

    first_M: NDArray[np.int64]
    lasting_M: NDArray[np.int64]
    settled_M: NDArray[np.int64]
    history_M: NDArray[np.int8]


def times_of(hit_TM: NDArray[np.bool_]) -> HitTimes:
    """The times of tokens from their hit states at the points."""
    T, last_M = len(hit_TM), hit_TM[-1]
    first_M = np.where(hit_TM.any(axis=0), hit_TM.argmax(axis=0), T)
    lasting_M = np.where(hit_TM.all(axis=0), 0, T - np.argmin(hit_TM[::-1], axis=0))
    lost_M = np.where(hit_TM.any(axis=0), T - np.argmax(hit_TM[::-1], axis=0), 0)
    settled_M = np.where(last_M, lasting_M, lost_M)
    n_changes_M = (hit_TM[1:] != hit_TM[:-1]).sum(axis=0)
    # never and always, forgotten and learned, unstable both
    of_changes = np.array(
        [[History.never, History.always], [History.forgotten, History.learned], [History.unstable] * 2]
    )
    return HitTimes(first_M, lasting_M, settled_M, of_changes[np.minimum(n_changes_M, 2), last_M.astype(int)])


def turnbull(n_CC: Floats) -> Floats:
    """The shares of the cells by non-parametric maximum likelihood, [C].

    `n_CC[i, j]` counts times that lie in cells i to j, both included.
    """
    i, j = np.nonzero(n_CC)
    n_I, cell = n_CC[i, j], np.arange(len(n_CC))
    in_IC = (cell >= i[:, None]) & (cell <= j[:, None])
    share_C = np.full(len(n_CC), 1 / len(n_CC))
    for _ in range(_ROUNDS):
        weight_IC = in_IC * share_C
        next_C = (n_I / weight_IC.sum(axis=1)) @ weight_IC / n_I.sum()
        moved, share_C = np.abs(next_C - share_C).max(), next_C
        if moved < _CLOSE:
            break
    return share_C


class Tails(NamedTuple):
    """The tail of the times under each bootstrap replicate.

    Attributes:
        c_B: exponent per unit of x; NaN where no time lies in the tail.
        never_B: share of those left at the first point that are never learned.
    """

    c_B: Floats
    never_B: Floats
    ln_likelihood_B: Floats

    def left(self, x_X: Floats) -> Floats:
        """The share of those left at the first point that is still left x further, [B, X]."""
        return self.never_B[:, None] + (1 - self.never_B[:, None]) * np.exp(-self.c_B[:, None] * x_X)


def fit_tails(x_T: Floats, n_BC: Floats, with_never: bool) -> Tails:
    """Fits the tail to interval-censored times by maximum likelihood over c; `never` is 0 or follows from c.

    x_T has at least three points; n_BC counts times between points, and after the last, [B, T].
    """
    about_T = x_T - x_T[0]

    learned_B, left_B = n_BC[:, :-1].sum(axis=1), n_BC[:, -1]
    share_B = left_B / np.maximum(learned_B + left_B, _TINY)

    def shapes(ln_c_X: Floats) -> tuple[Floats, Floats]:
        still_XT = np.exp(-np.exp(ln_c_X)[:, None] * about_T)
        return np.log(np.maximum(-np.diff(still_XT), _TINY)), still_XT[:, -1]

    def parts(of_cells: Floats, q: Floats, learned: Floats, left: Floats, share: Floats) -> tuple[Floats, Floats]:
        never = np.where(with_never & (share > q), (share - q) / (1 - q), 0.0)
        of_left = left * np.log(np.maximum(never + (1 - never) * q, _TINY))
        return of_cells + learned * np.log1p(-np.minimum(never, 1 - 1e-15)) + of_left, never

    def at(ln_c_X: Floats, of_X: Floats) -> tuple[Floats, Floats]:
        of, (ln_XC, q_X) = of_X.astype(int), shapes(ln_c_X)
        return parts((n_BC[of, :-1] * ln_XC).sum(axis=1), q_X, learned_B[of], left_B[of], share_B[of])

    every_B, grid_G = np.arange(len(n_BC), dtype=np.float64), np.log(np.geomspace(*_REACH) / about_T[-1])
    ln_GC, q_G = shapes(grid_G)
    value_BG, _ = parts(n_BC[:, :-1] @ ln_GC.T, q_G, learned_B[:, None], left_B[:, None], share_B[:, None])
    best_B = value_BG.argmax(axis=1)
    around = tuple(grid_G[np.clip(best_B, 1, len(grid_G) - 2) + side] for side in (-1, 0, 1))
    found = find_minimum(lambda *of: -at(*of)[0], around, args=(every_B,))
    ln_c_B = np.where(found.success, found.x, grid_G[best_B])  # at an end of the grid no bracket exists
    value_B, never_B = at(ln_c_B, every_B)
    is_known_B = n_BC[:, :-1].sum(axis=1) > 0
    return Tails(*(np.where(is_known_B, each_B, np.nan) for each_B in (np.exp(ln_c_B), never_B, value_B)))


def local_slope(c: Floats | float, q: Floats) -> Floats:
    """The slope -d ln(-ln RBP_k) / dx where 1 - RBP_k = q falls as exp(-c x): c q / ((1 - q) (-ln(1 - q))), above c."""
    return np.asarray(c * q / ((1 - q) * -np.log1p(-q)))
