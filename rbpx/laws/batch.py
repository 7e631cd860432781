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

__all__ = [
    "HUBER",
    "Search",
    "Searching",
    "alone",
    "huber_lines",
    "huber_weight",
    "offset_residuals",
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
    """Least squares of a law with an offset E >= 0 on each set of points, from a start of its own.

    Levenberg and Marquardt's steps in (ln_C_ref, alpha, E / E_start), E kept at 0 where it would become negative. A
    set whose steps have become small is finished and removed, as a few take ten times the steps of the others.

    Args:
        searches: at the same sizes, all of them holding their exponents or none.

    Returns:
        Parameters of all sets one after another, [B, P]; NaN where the search did not end.
    """
    x_N, holds_alpha = searches[0].x_N, searches[0].holds_alpha
    ln_y_BN, start_BP = (np.concatenate([getattr(s, name) for s in searches]) for name in ("ln_y_BN", "start_BP"))
    unit_BP = np.ones(start_BP.shape)
    unit_BP[:, 2] = np.repeat([s.start_BP[0, 2] for s in searches], [len(s.start_BP) for s in searches])
    theta_BP = np.full(start_BP.shape, np.nan)
    left_B, u_BP, damping_B = np.arange(len(ln_y_BN)), start_BP / unit_BP, np.full(len(ln_y_BN), 1e-3)
    cost_B, r_BN, J_BPN = offset_residuals(x_N, ln_y_BN, start_BP, unit_BP)
    for _ in range(300):
        g_BP = (J_BPN @ r_BN[:, :, None])[:, :, 0]
        A_BPP = J_BPN @ J_BPN.transpose(0, 2, 1)
        diagonal_BP = A_BPP.reshape(-1, 9)[:, ::4]  # a view
        bound_B = (u_BP[:, 2] == 0) & (g_BP[:, 2] <= 0)
        fixed_BP = np.zeros(g_BP.shape, bool)
        fixed_BP[:, 1], fixed_BP[:, 2] = holds_alpha, bound_B
        if holds_alpha or bound_B.any():
            g_BP[fixed_BP] = 0
            A_BPP[fixed_BP[:, :, None] | fixed_BP[:, None, :]] = 0
        diagonal_BP *= 1 + damping_B[:, None]
        diagonal_BP += fixed_BP
        diagonal_BP += 1e-6 * damping_B[:, None]  # far out a parameter may not matter at all
        new_BP = u_BP + np.linalg.solve(A_BPP, g_BP[..., None])[..., 0]
        np.maximum(new_BP[:, 2], 0, out=new_BP[:, 2])
        new_cost_B, new_r_BN, new_J_BPN = offset_residuals(x_N, ln_y_BN, new_BP * unit_BP, unit_BP)
        better_B = new_cost_B <= cost_B
        done_B = (np.abs(new_BP - u_BP) <= 1e-9 * (1 + np.abs(u_BP))).all(axis=1)
        # A free step that gains nothing: at the foot of the valley, or where a parameter has stopped to matter.
        done_B |= better_B & (damping_B <= 1e-2) & (cost_B - new_cost_B <= 1e-14 * cost_B)
        if better_B.all():
            u_BP, cost_B, r_BN, J_BPN = new_BP, new_cost_B, new_r_BN, new_J_BPN
        elif better_B.any():
            u_BP[better_B], cost_B[better_B] = new_BP[better_B], new_cost_B[better_B]
            r_BN[better_B], J_BPN[better_B] = new_r_BN[better_B], new_J_BPN[better_B]
        damping_B = np.minimum(np.maximum(np.where(better_B, damping_B / 5, damping_B * 5), 1e-6), 1e8)
        if done_B.any():
            theta_BP[left_B[done_B]] = (u_BP * unit_BP)[done_B]
            rest_B = ~done_B
            left_B, u_BP, damping_B, cost_B = left_B[rest_B], u_BP[rest_B], damping_B[rest_B], cost_B[rest_B]
            ln_y_BN, r_BN, J_BPN, unit_BP = ln_y_BN[rest_B], r_BN[rest_B], J_BPN[rest_B], unit_BP[rest_B]
        if len(left_B) == 0:
            break
    return theta_BP


def offset_residuals(x_N: Floats, ln_y_BN: Floats, theta_BP: Floats, unit_BP: Floats) -> tuple[Floats, Floats, Floats]:
    """Sum of squares [B], residuals [B, N] and derivatives of ln y [B, P, N], E counted in units of unit_BP[:, 2]."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # a step too far has no cost, and is not taken
        power_BN = np.exp(theta_BP[:, :1] - theta_BP[:, 1:2] * x_N)
        law_BN = power_BN + theta_BP[:, 2:]
        share_BN = power_BN / law_BN
        r_BN = ln_y_BN - np.log(law_BN)
        J_BPN = np.empty((len(theta_BP), 3, len(x_N)))
        J_BPN[:, 0], J_BPN[:, 1], J_BPN[:, 2] = share_BN, -x_N * share_BN, unit_BP[:, 2:] / law_BN
        return (r_BN**2).sum(1), r_BN, J_BPN
