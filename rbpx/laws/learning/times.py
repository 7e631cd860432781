"""Times of tokens from their hits alone: each is only known to lie between two points, or beyond the first or last one.

All tokens of a training are looked at at the same points, so a time lies in one of T + 1 cells: cell 0 up to the first
point, cell c between point c - 1 and c (counted from 0), cell T after the last. `lasting` takes the cell between the
last miss and the first hit that stays; `between` any cell from before the first hit to that one.

The tail of the times: from some point on the share that is not learned yet falls as
    S(x) / S(x_0) = never + (1 - never) exp(-c (x - x_0)),     so as D^-c where nothing is never learned.

Source: B. W. Turnbull, JRSS B 38 (1976), 290, for the shares of cells.

Shapes: T points, M tokens, C = T + 1 cells, B replicates.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.learning.golden import golden
from rbpx.laws.numeric import Floats

_ROUNDS: Final = 20_000
_CLOSE: Final = 1e-10
_REACH: Final = (1e-3, 50.0)  # of c times the range of x


def lasting(hit_TM: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The cell between the last miss and the first hit that stays, [M]; T where the last point is a miss."""
    T = len(hit_TM)
    last_miss_M = T - 1 - np.argmax(~hit_TM[::-1], axis=0)
    return np.where(hit_TM.all(axis=0), 0, last_miss_M + 1)


def first_hit(hit_TM: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The cell that ends at the first hit, [M]; T where there is none."""
    return np.where(hit_TM.any(axis=0), np.argmax(hit_TM, axis=0), len(hit_TM))


def turnbull(n_CC: Floats) -> Floats:
    """The shares of the cells that make the intervals likeliest, [C]: the non-parametric maximum of the likelihood.

    Where each interval is one cell these are the shares of the counts.

    Args:
        n_CC: how many times lie from cell i to cell j, both included, at [i, j].

    Raises:
        ValueError: there is no time, or an interval ends before it begins.
    """
    if n_CC.sum() <= 0 or np.any(np.tril(n_CC, -1) > 0):
        raise ValueError("there are no intervals, or some end before they begin")
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


@dataclass(frozen=True, eq=False)
class Tails:
    """The tail of the times under each replicate.

    Attributes:
        c_B: exponent per unit of x; NaN where no time lies in the tail.
        never_B: share of those left at the first point that are never learned; 0 where it is held there.
        ln_likelihood_B: of the cells.
    """

    c_B: Floats
    never_B: Floats
    ln_likelihood_B: Floats

    def left(self, x_X: Floats) -> Floats:
        """The share of those left at the first point that is still left at each x after it, [B, X]; x from there on."""
        return self.never_B[:, None] + (1 - self.never_B[:, None]) * np.exp(-self.c_B[:, None] * x_X)


def fit_tails(x_T: Floats, n_BC: Floats, with_never: bool) -> Tails:
    """Maximum likelihood of the tail from interval-censored times.

    For a given c the likeliest share left at the end is the one that was left, if that is not less than exp(-c range),
    so that the search is in c alone.

    Args:
        x_T: the points of the tail, ascending, at least three where something may never be learned, else two.
        n_BC: how many times lie in the cells after the first point, [B, T]: between points, and after the last.
        with_never: whether a share is never learned; else it is 0.

    Raises:
        ValueError: shapes disagree, or there are fewer points.
    """
    if n_BC.shape[1] != len(x_T) or len(x_T) < 2 + with_never:
        raise ValueError(f"{n_BC.shape[1]} cells after {len(x_T)} points")
    about_T = x_T - x_T[0]
    learned_B, left_B, n_B = n_BC[:, :-1].sum(axis=1), n_BC[:, -1], n_BC.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share_left_B = left_B / n_B

    def parts(ln_c_B: Floats) -> tuple[Floats, Floats, Floats]:
        at_BT = np.exp(-np.exp(ln_c_B)[:, None] * about_T)
        q_B = at_BT[:, -1]
        never_B = np.where(with_never & (share_left_B > q_B), (share_left_B - q_B) / (1 - q_B), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            of_cells_B = (n_BC[:, :-1] * np.log(at_BT[:, :-1] - at_BT[:, 1:])).sum(axis=1)
            of_learned_B = learned_B * np.log1p(-never_B)
            of_left_B = np.where(left_B > 0, left_B * np.log(never_B + (1 - never_B) * q_B), 0.0)
        return of_cells_B + of_learned_B + of_left_B, never_B, q_B

    lo, hi = (np.full(len(n_BC), np.log(end / about_T[-1])) for end in _REACH)
    ln_c_B = golden(lambda ln_c_B: parts(ln_c_B)[0], lo, hi)
    value_B, never_B, _ = parts(ln_c_B)
    is_known_B = (learned_B > 0) & (n_B > 0)
    return Tails(*(np.where(is_known_B, each_B, np.nan) for each_B in (np.exp(ln_c_B), never_B, value_B)))


def local_slope(c: Floats | float, q: Floats) -> Floats:
    """-d ln(-ln RBP_k) / dx where 1 - RBP_k = q falls as exp(-c x): c q / ((1 - q) (-ln(1 - q))), above c.

    It is 1.06 c at q = .1, 1.44 c at .5, 1.94 c at .7, and grows without bound as q nears 1.

    Args:
        c: the exponent of q.
        q: the share of misses, in (0, 1).
    """
    return np.asarray(c * q / ((1 - q) * -np.log1p(-q)))
