"""Warnings about model averaging: departures from all forms, and unusual training tokens of the largest models.

The forms are weighed against the same forms with other scatter (`rbpx.laws.intervals.misfit`).

Shapes: N models in increasing order of size.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from rbpx.laws.forms.candidates import fit_forms, form_grid, means_of_sizes
from rbpx.laws.intervals.lack_of_fit import line_residuals
from rbpx.laws.intervals.misfit import Departure, departures
from rbpx.laws.numeric import line

_PRIOR: Final = ((Departure.end, 0.18), (Departure.run, 0.09), (Departure.scatter, 0.23))  # even scatter has half
FEWEST: Final = 4  # sizes; three show no departure
_ODDS: Final = 3.0  # at most 2.5 % of simulated true laws exceed them, for any number of sizes
_APART: Final = math.log(1.5)
_LESS: Final = 0.9  # of the predicted tokens
_TIMES_OFF: Final = 2.0  # times the largest residual of the smaller runs


def departure_from_forms(S: Sequence[float], y: Sequence[float]) -> Departure | None:
    """The departure if departures are three times as likely as all forms together."""
    if len(set(S)) < FEWEST:
        return None
    weights = dict.fromkeys((None, *Departure), 0.0)
    for departs, weight in _scatter_weights(S, y):
        weights[departs] += weight
    even = weights.pop(None)
    return max(Departure, key=lambda kind: weights[kind]) if sum(weights.values()) > _ODDS * even else None


def n_largest_off(S: Sequence[float], y: Sequence[float]) -> int:
    """How many of the largest sizes deviate, one or two, if any do."""
    ends = [each for each in departures(np.log(np.unique(S))) if each.kind is Departure.end]
    weights = [weight for departs, weight in _scatter_weights(S, y) if departs is Departure.end]
    of_two = [weight for each, weight in zip(ends, weights, strict=True) if each.R_NN[-2, -2] > 1]
    return 1 + (2 * sum(of_two) > sum(weights))


def n_smaller(S: Sequence[float], n: int) -> int:
    """How many models are smaller than the n largest sizes."""
    least = sorted(set(S))[-n]
    return sum(size < least for size in S)


def _scatter_weights(S: Sequence[float], y: Sequence[float]) -> list[tuple[Departure | None, float]]:
    """The departure, if any, and the weight over all forms of each scatter."""
    S_N, *points = means_of_sizes(np.array(S), np.log(np.abs(y))[None])
    grid = form_grid(tuple(np.log(S_N).tolist()), departs=_PRIOR)
    weight_R = fit_forms(grid, *points).weight_BRF[0].sum(axis=1)
    return [(each.departs, weight) for each, weight in zip(grid.scatters, weight_R.tolist(), strict=True)]


def vary_apart(S: Sequence[float], tokens: Sequence[float | None] | None) -> bool:
    """Whether tokens vary apart from size: ln D scatters by more than a factor of 1.5 about a line on ln S.

    Neither fixed tokens nor fixed tokens per parameter do.
    """
    known = [D for D in tokens or () if D]
    if len(known) < len(S) or len(set(S)) < FEWEST:
        return False
    x_N, ln_D_N = np.log(S), np.log(known)
    left_N = line_residuals(x_N, ln_D_N)
    return math.sqrt(float(left_N @ left_N) / (len(S) - 2)) > _APART


def n_unexpected_tokens(S: Sequence[float], tokens: Sequence[float | None] | None) -> int:
    """How many of the largest sizes, one or two, saw more tokens than extrapolated, negative if fewer; else 0.

    They differ if below nine tenths or above ten ninths of a line of ln D on ln S through smaller sizes, and farther
    off than twice any of these.
    """
    known = [(math.log(size), math.log(D)) for size, D in zip(S, tokens or (), strict=False) if D]
    if len(known) < len(S):
        return 0
    x_N, ln_D_N = np.array(known).reshape(-1, 2).T
    for end in sorted(set(S))[FEWEST - 1 :][-2:]:
        m = sum(size < end for size in S)
        level, alpha = line(x_N[:m], ln_D_N[:m])
        off_N = ln_D_N - level + alpha * (x_N - x_N[:m].mean())
        side, far = np.sign(off_N[-1]), max(-math.log(_LESS), _TIMES_OFF * float(np.abs(off_N[:m]).max()))
        if abs(off_N[-1]) > far:
            both = off_N[m] * side > far and end < S[-1]
            return int(side) * (2 if both else 1)
    return 0
