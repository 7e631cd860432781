"""How the best runs of budgets lie, and what other splits of a budget lose, for pictures: over forms, bends and misfit.

Shapes: K draws, G sizes along a budget, N points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Axis
from rbpx.laws.numeric import Floats
from rbpx.laws.surface.averaged import BudgetTest, draw_over_forms
from rbpx.laws.surface.decision import INSIDE, Best, best_among, best_of, draws_of_budget, least, of_draws
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.isoflop import Budget, isoflop, lined_up, reached_budgets
from rbpx.laws.surface.runs import Runs

LEVELS: Final = (0.005, 0.01, 0.02, 0.05)  # how much larger than the least of its compute
_BUDGETS: Final = 13  # from the least compute of the runs to the most, or to what is asked for
_FEWEST: Final = 3  # sizes of a curve
_AROUND: Final = 2.0  # times the sizes of the runs of a budget, to either side
_STEPS: Final = 41  # along a curve
_DRAWS: Final = 1000
_SAME: Final = 0.01  # of ln C: runs that are so close spend the same


@dataclass(frozen=True)
class Margin:
    """The sizes between which a budget loses less than a share of y; None where it is never lost within a hundredfold.

    Attributes:
        level: the share, beyond the least y of this compute.
        smaller: the size below the best one, with more tokens, that loses it.
        larger: the size above.
    """

    level: float
    smaller: Estimate
    larger: Estimate


@dataclass(frozen=True)
class Split:
    """A budget with its best run, and how far from it a split loses how much."""

    best: Best
    margins: tuple[Margin, ...]


@dataclass(frozen=True)
class Curve:
    """The surface along a budget that runs reach.

    Attributes:
        budget: its runs, and the parabola through them.
        best: the least, without numbers where there is none.
        S: sizes, around those of the runs.
        y: the median of the surface at each.
    """

    budget: Budget
    best: Best
    S: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Landscape:
    """What pictures of a decision show.

    Attributes:
        splits: budgets that have a best run, evenly spaced in ln C, and those asked for; in order.
        curves: budgets that at least three sizes of the runs reach.
        leading: places of the points with less y than all of as much compute or less.
    """

    splits: tuple[Split, ...]
    curves: tuple[Curve, ...]
    leading: tuple[int, ...]


def landscape(
    fits: Sequence[Surface],
    asked: Sequence[float],
    most_curves: int,
    budgets: Sequence[BudgetTest] = (),
    seed: int = 0,
) -> Landscape:
    """Look at the budgets of the runs, and at those asked for.

    Args:
        fits: of the forms to the same runs, at least one with a surface.
        asked: training FLOPs.
        most_curves: at most so many curves, evenly spaced among the budgets.
        budgets: backtests in compute, which widen intervals of y.
        seed: of the draws.
    """
    runs = fits[0].runs
    C_N = runs.along(Axis.C)
    spaced = np.geomspace(C_N.min(), max(float(C_N.max()), *asked), _BUDGETS).tolist()
    splits = [_split(fits, C, budgets, seed) for C in sorted({*spaced[:-1], *asked, spaced[-1]})]
    reached = isoflop(runs, lined_up(runs) or reached_budgets(runs, most_curves)).budgets
    usable = [each for each in reached if len(each.sizes) >= _FEWEST]
    places = np.unique(np.linspace(0, max(len(usable) - 1, 0), most_curves).round().astype(int))[: len(usable)]
    curves = [_curve(fits, usable[at], budgets, seed) for at in places]
    found = (each for each in splits if each is not None and each.best.S.value is not None)
    return Landscape(tuple(found), tuple(each for each in curves if each is not None), leading(runs))


def _split(fits: Sequence[Surface], C: float, budgets: Sequence[BudgetTest], seed: int) -> Split | None:
    drawn = draws_of_budget(fits, C, seed)
    if drawn is None:
        return None
    return Split(best_among(fits, C, *drawn, budgets), tuple(_margin(*drawn, level) for level in LEVELS))


def _margin(ln_S_G: Floats, ln_y_KG: Floats, level: float) -> Margin:
    ln_S_K, ln_y_K = least(ln_S_G, ln_y_KG)
    known_K = np.isfinite(ln_S_K)
    # The square root of what is lost is nearly straight, to either side.
    lost_KG = np.sqrt(np.maximum(ln_y_KG[known_K] - ln_y_K[known_K, None], 0.0))
    at_K, wanted = lost_KG.argmin(axis=1), float(np.sqrt(np.log1p(level)))
    crossed = [
        -_first(-ln_S_G[::-1], lost_KG[:, ::-1], len(ln_S_G) - 1 - at_K, wanted),
        _first(ln_S_G, lost_KG, at_K, wanted),
    ]
    ends = [each[np.isfinite(each)] for each in crossed]
    enough = [len(each) >= INSIDE * len(ln_y_KG) for each in ends]
    return Margin(level, *(of_draws(each) if ok else Estimate() for each, ok in zip(ends, enough, strict=True)))


def _first(x_G: Floats, rising_KG: Floats, from_K: Floats, wanted: float) -> Floats:
    """Where each draw first is above a value to the right of a place; NaN where it never is."""
    above_KG = (rising_KG > wanted) & (np.arange(len(x_G)) > from_K[:, None])
    right_K, each_K = above_KG.argmax(axis=1), np.arange(len(rising_KG))
    left_K = np.maximum(right_K - 1, 0)
    low_K, high_K = rising_KG[each_K, left_K], rising_KG[each_K, right_K]
    rise_K = np.where(high_K > low_K, high_K - low_K, 1.0)
    x_K = x_G[left_K] + (x_G[right_K] - x_G[left_K]) * (wanted - low_K) / rise_K
    return np.where(above_KG.any(axis=1), x_K, np.nan)


def _curve(fits: Sequence[Surface], budget: Budget, budgets: Sequence[BudgetTest], seed: int) -> Curve | None:
    best = best_of(fits, budget.C, budgets, seed)
    S_G = np.geomspace(min(budget.sizes) / _AROUND, max(budget.sizes) * _AROUND, _STEPS)
    drawn = draw_over_forms(fits, Runs.of(S_G, budget.C / 6 / S_G, np.ones(_STEPS)), _DRAWS, seed)
    if best is None or drawn is None:
        return None
    return Curve(budget, best, tuple(S_G.tolist()), tuple(np.exp(np.median(drawn[0], axis=0)).tolist()))


def leading(runs: Runs) -> tuple[int, ...]:
    """The places of the points with less y than all others of as much compute, within 1 %, or less."""
    ln_C_N, y_N = np.log(runs.along(Axis.C)), runs.y_N
    least_N = np.array([y_N[ln_C_N <= ln_C + _SAME].min() for ln_C in ln_C_N])
    return tuple(np.flatnonzero(y_N <= least_N).tolist())
