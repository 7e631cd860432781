"""Chooses runs to train next, by how much each narrows a target, ln y, under model averaging.

Joint draws of targets and candidates have a covariance V that includes the disagreement of the forms. A run at m, with
the scatter s of a run, lowers the variance of target t by V_tm^2 / (V_mm + s^2), a lower bound, and leaves V - V_m V_m'
/ (V_mm + s^2).

Shapes: K draws, M candidates, T targets, P of both.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.averaged import draw_averaged
from rbpx.laws.surface.decision import parabola_minimum
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.runs import Runs

LEAST: Final = 0.02  # of the standard deviation; a run that narrows less does not inform
TENFOLD: Final = 10  # times the most compute of the runs, the default budget
_DRAWS: Final = 3000
_PER_AXIS: Final = 14
_BEYOND: Final = 4  # times the largest S and D of the runs, and beyond the range of D / S
_SIZES: Final = 41  # along a budget
_AROUND: Final = 30  # factor around the sizes of the runs, for the best of a budget
_SPLITS: Final = (1, 2, 3, 4, 6, 8)  # numbers of runs among which a budget may be divided
_MOST: Final = 8  # default number of runs
_ROUNDING: Final = 1e-9
_KNOWN: Final = 0.01  # share of the draws in which a target has a value; with fewer they say nothing of it


@dataclass(frozen=True)
class RunPlan:
    """Runs in the order in which they were chosen.

    Attributes:
        name: "per_flop", each run narrowing most per FLOP, or "budget", the best use of all FLOPs.
        runs: of each S, D, C; `sd_before` and `sd_after`, of the target after all earlier runs; `narrowed`, their
            relative decrease; `per_flop`, the decrease of the variance over C.
        next_narrows: relative decrease by one more run; None where no FLOPs are left for one.
    """

    name: str
    runs: tuple[dict[str, float], ...]
    sd: float
    next_narrows: float | None


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets of a plan: `of` maps draws of ln y at the points (S, D), [K, points], to draws of the targets, [K, T].

    A draw without a target is NaN, and is left out.
    """

    S: Floats
    D: Floats
    of: Callable[[Floats], Floats]


def predictions(points: Sequence[tuple[float, float]]) -> Targets:
    """Targets ln y at points of size and tokens."""
    S, D = np.array(points, np.float64).T
    return Targets(S, D, lambda ln_y_KP: ln_y_KP)


def best_values(runs: Runs, budgets: Sequence[float]) -> Targets:
    """Targets ln y of the best run of each budget, C = 6 S D; a draw has none where its least is at an end of sizes."""
    S_G = np.geomspace(runs.S_N.min() / _AROUND, runs.S_N.max() * _AROUND, _SIZES)

    def of(ln_y_KP: Floats) -> Floats:
        _, ln_y, is_inner = parabola_minimum(np.log(S_G), ln_y_KP.reshape(-1, _SIZES))
        return np.where(is_inner, ln_y, math.nan).reshape(len(ln_y_KP), -1)

    D = np.concatenate([C / 6 / S_G for C in budgets])
    return Targets(np.tile(S_G, len(budgets)), D, of)


def candidates(runs: Runs, flops: float = math.inf) -> tuple[Floats, Floats]:
    """S and D, [M], of runs that could be trained for at most `flops` each.

    They have up to four times the largest S and D of the runs, or as far as `flops` suffice, and D / S at most four
    times beyond theirs.
    """
    C_N, ratio_N = runs.along(Axis.C), runs.D_N / runs.S_N
    times = _BEYOND if math.isinf(flops) else max(_BEYOND, math.sqrt(flops / float(C_N.max())))
    S, D = (np.geomspace(of_N.min(), of_N.max() * times, _PER_AXIS) for of_N in (runs.S_N, runs.D_N))
    S_M, D_M = (each.ravel() for each in np.meshgrid(S, D))
    C_M, ratio_M = 6 * S_M * D_M, D_M / S_M
    fits_M = (C_M >= C_N.min() * (1 - _ROUNDING)) & (C_M <= flops)
    fits_M &= (ratio_M >= ratio_N.min() / _BEYOND) & (ratio_M <= ratio_N.max() * _BEYOND)
    return S_M[fits_M], D_M[fits_M]


def next_runs(
    fits: Sequence[Surface], targets: Targets, n: int | None = None, flops: float = math.inf, seed: int = 0
) -> list[RunPlan]:
    """Chooses at most n runs, which cost at most `flops` together, that narrow the targets.

    Returns the plan per FLOP and, for finite `flops`, the best of: that plan, one run of all FLOPs, two of at most half
    each, and so on.
    """
    S_M, D_M = candidates(fits[0].runs, flops)
    at = Runs.of(np.append(targets.S, S_M), np.append(targets.D, D_M), np.ones(len(targets.S) + len(S_M)))
    if len(S_M) == 0:
        return []
    ln_y_KP, scatter_K = draw_averaged(fits, at, _DRAWS, seed)
    target_KT = targets.of(ln_y_KP[:, : len(targets.S)])
    target_KT = target_KT[:, np.isfinite(target_KT).mean(axis=0) >= _KNOWN]
    if target_KT.shape[1] == 0:
        return []
    drawn_KP = np.hstack([target_KT, ln_y_KP[:, len(targets.S) :]])[np.isfinite(target_KT).all(axis=1)]
    V_PP = np.atleast_2d(np.cov(drawn_KP, rowvar=False))
    choose = partial(_plan, V_PP, target_KT.shape[1], float(np.mean(scatter_K**2)), S_M, D_M, flops)
    most = n or _MOST
    per_flop = choose("per_flop", most, flops)
    if math.isinf(flops):
        return [per_flop]
    splits = (choose("budget", m, flops / m) for m in _SPLITS if m <= most)
    return [per_flop, min([*splits, replace(per_flop, name="budget")], key=lambda plan: plan.sd)]


def _plan(
    V_PP: Floats, T: int, noise: float, S_M: Floats, D_M: Floats, left: float, name: str, most: int, each: float
) -> RunPlan:
    """Chooses runs one by one until none informs; T targets come first in V_PP."""
    C_M, runs = 6 * S_M * D_M, list[dict[str, float]]()
    while True:
        before = float(np.trace(V_PP[:T, :T]))
        own_M = np.diag(V_PP)[T:] + noise
        gain_M = (V_PP[:T, T:] ** 2).sum(axis=0) / own_M
        narrows_M = 1 - np.sqrt(np.maximum(1 - gain_M / before, 0.0))
        affordable_M = C_M <= min(each, left) * (1 + _ROUNDING)
        informs_M = affordable_M & (narrows_M >= LEAST)
        if len(runs) == most or not informs_M.any():
            most_M = narrows_M[affordable_M]
            return RunPlan(name, tuple(runs), math.sqrt(before), float(most_M.max()) if len(most_M) else None)
        worth_M = gain_M / C_M if name == "per_flop" else gain_M
        best = int(np.argmax(np.where(informs_M, worth_M, -np.inf)))
        V_m = V_PP[:, T + best]
        V_PP = V_PP - np.outer(V_m, V_m) / own_M[best]
        of = {"S": S_M, "D": D_M, "C": C_M, "narrowed": narrows_M, "per_flop": gain_M / C_M}
        run = {name: float(of_M[best]) for name, of_M in of.items()}
        runs.append(run | {"sd_before": math.sqrt(before), "sd_after": math.sqrt(max(before - gain_M[best], 0.0))})
        left -= run["C"]
