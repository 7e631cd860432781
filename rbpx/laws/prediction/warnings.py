"""What speaks against every form that a prediction averages over, and what the tokens say of the largest runs.

The forms of the prediction (`rbpx.laws.forms.candidates`), with their priors, are weighed against the same forms with
scatter that departs (`rbpx.laws.intervals.misfit`): the largest sizes lie off, another one does, or scatter grows.
A bend is among the forms, so it is no departure from them.

Shapes: N models in increasing order of size.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from rbpx.laws.forms.candidates import fit_forms, form_grid, means_of_sizes
from rbpx.laws.intervals.misfit import Departure, departures
from rbpx.laws.numeric import line

_PRIOR: Final = ((Departure.end, 0.18), (Departure.run, 0.09), (Departure.scatter, 0.23))  # half; even scatter the rest
FEWEST: Final = 4  # sizes; of three, no departure can be told
_ODDS: Final = 3.0  # of a departure: counted, 2.5 % of true laws or fewer have more, at any number of sizes
_LESS: Final = 0.9  # of the tokens that the smaller runs announce
_TIMES_OFF: Final = 2.0  # of how far the smaller runs are from what they announce themselves


def departure_over_forms(S: Sequence[float], y: Sequence[float]) -> Departure | None:
    """The departure that is three times as likely as all forms together, if any is.

    Args:
        S: sizes, in increasing order; equal ones are replicates.
        y: the values there, all of one sign.
    """
    if len(set(S)) < FEWEST:
        return None
    weights = dict.fromkeys((None, *Departure), 0.0)
    for departs, weight in _weighed(S, y):
        weights[departs] += weight
    even = weights.pop(None)
    return max(Departure, key=lambda kind: weights[kind]) if sum(weights.values()) > _ODDS * even else None


def n_largest_off(S: Sequence[float], y: Sequence[float]) -> int:
    """How many of the largest sizes depart, one or two, if any do."""
    ends = [each for each in departures(np.log(np.unique(S))) if each.kind is Departure.end]
    weights = [weight for departs, weight in _weighed(S, y) if departs is Departure.end]
    of_two = [weight for each, weight in zip(ends, weights, strict=True) if each.R_NN[-2, -2] > 1]
    return 1 + (2 * sum(of_two) > sum(weights))


def n_smaller(S: Sequence[float], n: int) -> int:
    """How many models are smaller than the n largest sizes."""
    least = sorted(set(S))[-n]
    return sum(size < least for size in S)


def _weighed(S: Sequence[float], y: Sequence[float]) -> list[tuple[Departure | None, float]]:
    """Every scatter with its departure, none of an even one, and its weight over all forms."""
    S_N, *points = means_of_sizes(np.array(S), np.log(np.abs(y))[None])
    grid = form_grid(tuple(np.log(S_N).tolist()), departs=_PRIOR)
    weight_R = fit_forms(grid, *points).weight_BRF[0].sum(axis=1)
    return [(each.departs, weight) for each, weight in zip(grid.scatters, weight_R.tolist(), strict=True)]


def tokens_off(S: Sequence[float], tokens: Sequence[float | None] | None) -> int:
    """How many of the largest sizes, one or two, saw other tokens than the smaller ones announce, < 0 if fewer.

    A family is trained on the same tokens, or on more with size; a law in size is one along D = a S^b. The line of ln D
    on ln S through all smaller sizes, or all but the two largest, says how many tokens the largest should have seen. It
    lies above its law if it saw fewer than nine tenths of these, below it if it saw more than ten ninths, where it lies
    farther off than twice any of the smaller ones.

    Args:
        S: sizes, in increasing order.
        tokens: training tokens of each, None where they are not known, or none are.
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
