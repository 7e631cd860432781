"""Batch solver for one law and many sets of points: ln S and the resamples of ln y in, parameters of each out.

A point fit goes through lmfit (`rbpx.laws.regression`), a thousand resamples of it through these, all at once and some
thousand times as fast; tests compare them with lmfit on the same resamples. A search of one law takes its time for a
few sets that end late, so what searches for an offset is a generator, which yields each `Search` and is sent its
parameters: `together` runs those of many laws side by side. Shapes: N sizes, P parameters, B sets of points.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.offset_search import search_offsets

__all__ = [
    "HUBER",
    "Search",
    "Searching",
    "alone",
    "huber_lines",
    "huber_weight",
    "search_offset",
    "together",
]

Floats = NDArray[np.float64]
T = TypeVar("T")

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
class Search:
    """Sets of points to which a law with an offset E >= 0 is to be fitted by least squares.

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


Searching = Generator[Search, Floats, T]
"""What yields searches, is sent the parameters [B, P] of each, and returns what it makes of them."""


def alone(searching: Searching[T]) -> T:
    """The result of one."""
    (result,) = together([searching])
    return result


def together(searching: Sequence[Searching[T]]) -> list[T]:
    """The results of several, side by side: the searches in which they are at one time are done as one."""
    results: dict[int, T] = {}
    asked: dict[int, Search] = {}

    def advance(at: int, found_BP: Floats | None) -> None:
        try:
            asked[at] = next(searching[at]) if found_BP is None else searching[at].send(found_BP)
        except StopIteration as end:
            results[at] = end.value

    def kind(at: int) -> tuple[bytes, bool]:
        return asked[at].x_N.tobytes(), asked[at].holds_alpha

    for at in range(len(searching)):
        advance(at, None)
    while asked:
        for _, members in groupby(sorted(asked, key=kind), key=kind):
            alike = list(members)
            searches = [asked.pop(at) for at in alike]
            found_BP = search_offset(*searches)
            ends = np.cumsum([len(each.start_BP) for each in searches])[:-1]
            for at, own_BP in zip(alike, np.split(found_BP, ends), strict=True):
                advance(at, own_BP)
    return [results[at] for at in range(len(searching))]


def search_offset(*searches: Search) -> Floats:
    """The parameters of all sets of several searches one after another, [B, P]; NaN where a search did not end.

    Args:
        searches: at the same sizes, all of them holding their exponents or none.
    """
    ln_y_BN, start_BP = (np.concatenate([getattr(s, name) for s in searches]) for name in ("ln_y_BN", "start_BP"))
    return search_offsets(searches[0].x_N, ln_y_BN, start_BP, searches[0].holds_alpha)
