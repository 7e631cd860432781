"""Batch solver of a surface: many starts, or many replicates of the runs, all at once.

Newton's method within bounds (`step`) for a sum of losses that may be nearly that of absolute values. What fits of one
form at the same points ask at once is solved as one (`Search`). Shapes: B searches, N points, P numbers.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rbpx.laws.names import Objective
from rbpx.laws.numeric import Floats, Problem
from rbpx.laws.surface.equations import Form
from rbpx.laws.surface.runs import Coordinates
from rbpx.laws.surface.step import Loss, loss, step

_MOST_LEFT: Final = 1e-4  # of an objective: a search that ends where a step promises more has not converged
_STUCK: Final = 30  # steps in a row that gain nothing though they promise more: the search is given up
_SLIGHT: Final = 0.1  # of an objective: the side of a valley, and not another one
_ROUNDING: Final = 1e-25  # of an objective: points lie on the surface
_UNMEASURED: Final = 5e-13
_PARTS: Final = ("value_BN", "first_BN", "second_BN", "weight_BN")
_MOST_DERIVATIVES: Final = 2**22  # of all searches at once, 32 MiB: of 100 searches of a surface at 6,000 points


@dataclass(frozen=True)
class End:
    """When a search has ended.

    Attributes:
        left: share of the objective: a step that promises less ends it.
        standstill: share of the objective: a step that gains less gains nothing.
        most_idle: steps in a row that gain nothing; 30 go from the smallest damping to the largest and beyond.
    """

    left: float
    standstill: float
    most_idle: int


POINT: Final = End(1e-9, 1e-12, 30)
# A ten-millionth of the objective of 20 points is a few thousandths of a standard deviation of a constant.
REPLICATE: Final = End(1e-7, 1e-7, 10)
# Of an objective for each point: y is the surface's to a millionth, which is closer than any y is known. A search that
# still halves what is left is about to end by itself; one that creeps along a valley would take thousands of steps.


@dataclass(frozen=True, eq=False)
class Found:
    """Where searches ended.

    Attributes:
        theta_BP: the numbers of each.
        total_B: the objective there, the weighted sum of losses.
        converged_B: whether next to nothing more is to be gained there.
    """

    theta_BP: Floats
    total_B: Floats
    converged_B: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Search(Problem):
    """Searches for the least objective, each from a start of its own; y_ref of the form does not matter to them.

    Attributes:
        form: of the surface.
        x: of the points.
        objective: the loss of a point.
        delta: of Huber's loss, in the units of theta; of shape [B, 1] where searches differ in it.
        ln_y_BN: ln(y / y_ref), of shape [B, N] or [1, N].
        weight_BN: how often each point counts, of shape [B, N] or [1, N].
        start_BP: where each search starts.
        fixed_P: the numbers that stay as they are.
        most_steps: after which a search is ended.
        end: when it has ended by itself.
        over: by what the loss of points above the fit is divided.
    """

    form: Form
    x: Coordinates
    objective: Objective
    delta: float | Floats
    ln_y_BN: Floats
    weight_BN: Floats
    start_BP: Floats
    fixed_P: NDArray[np.bool_]
    most_steps: int = 1000
    end: End = POINT
    over: float = 1.0

    def kind(self) -> Hashable:
        """What searches have in common that can be done as one."""
        u_N = self.x.d_N if self.x.u_N is None else self.x.u_N
        at = tuple(each.tobytes() for each in (self.x.s_N, self.x.d_N, u_N, self.fixed_P))
        how = (self.form.name, self.objective, self.over, self.most_steps, self.end)
        return (*how, *at, self.x.ln_S_ref, self.x.ln_D_ref)

    def rows(self, name: str) -> Floats:
        """An array of the points with a row for each search."""
        given: Floats = getattr(self, name)
        return np.broadcast_to(given, (len(self.start_BP), given.shape[1]))

    @staticmethod
    def solve(alike: Sequence["Search"]) -> list[Found]:
        """What each finds."""
        sizes = [len(each.start_BP) for each in alike]
        ln_y_BN, weight_BN = (np.concatenate([each.rows(name) for each in alike]) for name in ("ln_y_BN", "weight_BN"))
        delta_B1 = np.repeat([each.delta for each in alike], sizes)[:, None]
        start_BP = np.concatenate([each.start_BP for each in alike])
        n_at_once = max(1, _MOST_DERIVATIVES // (start_BP.shape[1] * ln_y_BN.shape[1]))
        found = []
        for first in range(0, len(start_BP), n_at_once):
            at = slice(first, first + n_at_once)
            some = replace(alike[0], ln_y_BN=ln_y_BN[at], weight_BN=weight_BN[at], start_BP=start_BP[at])
            found.append(minimise(replace(some, delta=delta_B1[at])))
        whole = (np.concatenate([getattr(each, of.name) for each in found]) for of in fields(Found))
        return [Found(*each) for each in zip(*(np.split(of, np.cumsum(sizes)[:-1]) for of in whole), strict=True)]


def minimise(search: Search) -> Found:
    """Minimise the objective from each start, downhill at every step."""
    form, x, objective, end, over = search.form, search.x, search.objective, search.end, search.over
    B, theta_BP = len(search.start_BP), search.start_BP.copy()
    total_B, converged_B = np.full(B, np.inf), np.zeros(B, dtype=bool)
    left_B, damping_B, idle_B = np.arange(B), np.full(B, 0.1), np.zeros(B, dtype=np.int64)
    ln_y_BN, weight_BN = search.rows("ln_y_BN"), search.rows("weight_BN")
    delta_B1 = np.broadcast_to(search.delta, (B, 1))
    now_BP, unmeasured_B = search.start_BP.copy(), _UNMEASURED * weight_BN.sum(axis=1)
    ln_fit_BN, losses, J_BPN, now_B = _at(form, x, objective, delta_B1, ln_y_BN, weight_BN, now_BP, over)
    bent_BN, straight_B, near_B = np.zeros(ln_fit_BN.shape), np.full(B, True), np.zeros(B, dtype=bool)
    for _ in range(search.most_steps):
        new_BP, left_to_gain_B = step(form, x, losses, J_BPN, weight_BN, now_BP, damping_B, search.fixed_P, bent_BN)
        new_fit_BN, new_losses, new_J_BPN, new_B = _at(form, x, objective, delta_B1, ln_y_BN, weight_BN, new_BP, over)
        better_B = new_B <= now_B
        # A step along a curved valley leads a little way up its side: once more, with what ln y has bent on it.
        with np.errstate(all="ignore"):
            tangent_BN = ln_fit_BN + ((new_BP - now_BP)[:, None] @ J_BPN)[:, 0]
            expected_B = (loss(objective, delta_B1, tangent_BN, ln_y_BN, over).value_BN * weight_BN).sum(axis=1)
        again_B = ~better_B & straight_B & (expected_B < now_B) & (new_B < (1 + _SLIGHT) * now_B)
        bent_BN = np.where(again_B[:, None], new_fit_BN - tangent_BN, 0.0)
        ln_fit_BN, straight_B = np.where(better_B[:, None], new_fit_BN, ln_fit_BN), ~again_B
        standstill_B = np.where(now_B <= unmeasured_B, 0.5, end.standstill)
        idle_B = np.where(now_B - new_B > standstill_B * now_B, 0, idle_B + 1)
        near_B = (left_to_gain_B <= _MOST_LEFT * now_B) | (now_B <= unmeasured_B)
        done_B = (left_to_gain_B <= end.left * now_B) | (now_B <= _ROUNDING)
        done_B |= idle_B > np.where(near_B, end.most_idle, _STUCK)
        now_BP, now_B = np.where(better_B[:, None], new_BP, now_BP), np.where(better_B, new_B, now_B)
        J_BPN = np.where(better_B[:, None, None], new_J_BPN, J_BPN)
        losses = Loss(*(np.where(better_B[:, None], getattr(new_losses, n), getattr(losses, n)) for n in _PARTS))
        damping_B = np.clip(np.where(better_B, damping_B / 4, np.where(again_B, damping_B, damping_B * 4)), 1e-7, 1e7)
        if done_B.any():
            ended_B = left_B[done_B]
            theta_BP[ended_B], total_B[ended_B], converged_B[ended_B] = now_BP[done_B], now_B[done_B], near_B[done_B]
            rest_B = ~done_B
            left_B, now_BP, now_B, near_B = left_B[rest_B], now_BP[rest_B], now_B[rest_B], near_B[rest_B]
            damping_B, idle_B, unmeasured_B = damping_B[rest_B], idle_B[rest_B], unmeasured_B[rest_B]
            delta_B1, ln_y_BN, weight_BN, J_BPN = delta_B1[rest_B], ln_y_BN[rest_B], weight_BN[rest_B], J_BPN[rest_B]
            losses = Loss(*(getattr(losses, n)[rest_B] for n in _PARTS))
            bent_BN, straight_B, ln_fit_BN = bent_BN[rest_B], straight_B[rest_B], ln_fit_BN[rest_B]
        if len(left_B) == 0:
            break
    theta_BP[left_B], total_B[left_B], converged_B[left_B] = now_BP, now_B, near_B
    return Found(theta_BP, total_B, converged_B)


def _at(
    form: Form,
    x: Coordinates,
    objective: Objective,
    delta_B1: Floats,
    ln_y_BN: Floats,
    weight_BN: Floats,
    theta_BP: Floats,
    over: float,
) -> tuple[Floats, Loss, Floats, Floats]:
    with np.errstate(all="ignore"):  # a step too far has no objective, and is not taken
        ln_fit_BN, J_BPN = form.evaluate(x, theta_BP)
        losses = loss(objective, delta_B1, ln_fit_BN, ln_y_BN, over)
        total_B = (losses.value_BN * weight_BN).sum(axis=1)
    total_B = np.where(np.isfinite(total_B) & np.isfinite(J_BPN).all(axis=(1, 2)), total_B, np.inf)
    return ln_fit_BN, losses, J_BPN, total_B
