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
from rbpx.laws.intervals.misfit import Departure
from rbpx.laws.numeric import Floats, line

_PRIOR: Final = ((Departure.end, 0.18), (Departure.run, 0.09), (Departure.scatter, 0.23))  # half; even scatter the rest
FEWEST: Final = 4  # sizes; of three, no departure can be told
_ODDS: Final = 3.0  # of a departure: counted, 2.5 % of true laws or fewer have more, at any number of sizes
_FEWER: Final = 0.9  # of the tokens that the smaller runs announce
_TIMES_OFF: Final = 2.0  # of how far the smaller runs are from what they announce themselves


def departure_over_forms(S: Sequence[float], y: Sequence[float]) -> Departure | None:
    """The departure that is three times as likely as all forms together, if any is.

    Args:
        S: sizes, in increasing order; equal ones are replicates.
        y: the values there, all of one sign.
    """
    if len(set(S)) < FEWEST:
        return None
    S_N, *points = means_of_sizes(np.array(S), np.log(np.abs(y))[None])
    grid = form_grid(tuple(np.log(S_N).tolist()), departs=_PRIOR)
    weights = dict.fromkeys((None, *Departure), 0.0)
    for scatter, weight in zip(grid.scatters, fit_forms(grid, *points).weight_BRF[0].sum(axis=1).tolist(), strict=True):
        weights[scatter.departs] += weight
    even = weights.pop(None)
    return max(Departure, key=lambda kind: weights[kind]) if sum(weights.values()) > _ODDS * even else None


def is_undertrained(S: Sequence[float], tokens: Sequence[float | None] | None) -> bool:
    """Whether the largest size saw fewer tokens than the smaller ones announce, so that it is worse than its law.

    A family is trained on the same tokens, or on more with size; a law in size is one along D = a S^b. The line of ln D
    on ln S through all smaller sizes, or all but the two largest, says how many tokens the largest should have seen. It
    is undertrained if it saw fewer than nine tenths of these, and lies farther off than twice any of the smaller ones.

    Args:
        S: sizes, in increasing order.
        tokens: training tokens of each, None where they are not known, or none are.
    """
    known = [(math.log(size), math.log(D)) for size, D in zip(S, tokens or (), strict=False) if D]
    x_N, ln_D_N = np.array(known).reshape(-1, 2).T
    if len(known) < len(S):
        return False
    ends = sorted(set(S))[FEWEST - 1 :][-2:]
    return any(_falls_short(x_N, ln_D_N, sum(size < end for size in S)) for end in ends)


def _falls_short(x_N: Floats, ln_D_N: Floats, m: int) -> bool:
    """Whether the largest size saw too few tokens for the line through the m smallest models."""
    level, alpha = line(x_N[:m], ln_D_N[:m])
    off_N = ln_D_N - level + alpha * (x_N - x_N[:m].mean())
    return bool(off_N[-1] < min(math.log(_FEWER), -_TIMES_OFF * float(np.abs(off_N[:m]).max())))
