"""What the pictures of a surface draw: IsoFLOP curves, contours with the runs on them, the optimum with its band.

Rows are plain values, for charts and terminals alike.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from rbpx.analyses.surface.law import FormFit, SurfaceLaw
from rbpx.display.numbers import short
from rbpx.laws.surface.isoflop import Budget
from rbpx.laws.surface.optimum import optima

__all__ = ["contour_rows", "drawn", "isoflop_rows", "optimum_rows", "run_rows"]

Rows = list[dict[str, Any]]

_STEPS: Final = 40  # along a curve
_FINE: Final = 400  # where a contour is looked for
_LEVELS: Final = 6
_BUDGETS: Final = 13  # along the optimum
_BEYOND: Final = 2.0  # beyond the runs, contours


def drawn(laws: Sequence[SurfaceLaw], most: int) -> list[SurfaceLaw]:
    """The quantities to draw: cross-entropy and -ln RBP at the smallest k first, those without a surface left out."""

    def place(law: SurfaceLaw) -> tuple[int, int]:
        return {"cross_entropy": 0, "rbp": 1}.get(law.trained.law, 2), law.trained.k or 0

    return sorted((law for law in laws if law.best.fit.surface is not None), key=place)[:most]


def _budgets(law: SurfaceLaw) -> tuple[Budget, ...]:
    return () if law.pictured is None else law.pictured.budgets


def isoflop_rows(law: SurfaceLaw) -> tuple[Rows, Rows, Rows]:
    """Points, parabolas and minima of the budgets that three sizes reach; `budget` names each."""
    points, curves, minima = Rows(), Rows(), Rows()
    for budget in _budgets(law):
        if len(budget.sizes) < 3:
            continue
        name, sign = f"C = {short(budget.C)}", law.trained.sign
        ln_S, ln_y = np.log(budget.sizes), np.log(budget.y_of_sizes)
        points += [
            {"budget": name, "S": S, "y": sign * y} for S, y in zip(budget.sizes, budget.y_of_sizes, strict=True)
        ]
        at = np.linspace(ln_S.min(), ln_S.max(), _STEPS)
        middle = ln_S.mean()
        parabola = np.polyval(np.polyfit(ln_S - middle, ln_y, 2), at - middle)
        curves += [
            {"budget": name, "S": float(np.exp(s)), "y": sign * float(np.exp(y))}
            for s, y in zip(at, parabola, strict=True)
        ]
        if budget.S.value is not None and budget.y is not None:
            ends = {"lo": budget.S.lo, "hi": budget.S.hi}
            minima.append({"budget": name, "S": budget.S.value, "y": sign * budget.y, **ends})
    return points, curves, minima


def run_rows(law: SurfaceLaw) -> Rows:
    """Each run: S, D, y and the size's name."""
    runs, sign = law.trained.runs, law.trained.sign
    values = zip(law.trained.members, runs.S_N.tolist(), runs.D_N.tolist(), runs.y_N.tolist(), strict=True)
    return [{"size": run.size, "S": S, "D": D, "y": sign * y} for run, S, D, y in values]


def contour_rows(law: SurfaceLaw, form: FormFit) -> Rows:
    """Lines of equal y over the rectangle of the runs and a factor of 2 beyond; `level` is y, in order along S."""
    surface, runs = form.fit.surface, law.trained.runs
    if surface is None:
        return []
    S_G, D_F = (
        np.geomspace(each.min() / _BEYOND, each.max() * _BEYOND, n)
        for each, n in ((runs.S_N, _STEPS), (runs.D_N, _FINE))
    )
    fitted = replace(surface, theta_BP=surface.theta_BP[:0])  # contours have no intervals
    ln_y_GF = fitted.ln_y(np.repeat(S_G, _FINE), np.tile(D_F, _STEPS))[0].reshape(_STEPS, _FINE)
    least, most = (float(each) for each in np.quantile(ln_y_GF, [0.04, 0.96]))
    levels = np.linspace(least, most, _LEVELS)
    rows = Rows()
    for level in np.unique([float(f"{each:.3g}") for each in np.exp(levels)]):
        for S, ln_y_F in zip(S_G.tolist(), ln_y_GF, strict=True):
            if ln_y_F.min() < np.log(level) < ln_y_F.max():
                # ln y falls with D
                ln_D = float(np.interp(-np.log(level), -ln_y_F, np.log(D_F)))
                rows.append({"level": short(law.trained.sign * float(level)), "S": S, "D": float(np.exp(ln_D))})
    return rows


def optimum_rows(law: SurfaceLaw) -> tuple[Rows, Rows]:
    """The best S and D along C with their bands, and the minima of IsoFLOP parabolas; none where no form says it."""
    surface, runs = None if law.optimal is None else law.optimal.fit.surface, law.trained.runs
    if surface is None:
        return [], []
    flops = law.flops_per_token
    C_N = flops(runs.S_N) * runs.D_N
    along = optima(surface, np.geomspace(C_N.min(), 10 * C_N.max(), _BUDGETS).tolist(), flops)
    line = [
        {"C": each.C, "S": each.S.value, "lo": each.S.lo, "hi": each.S.hi, "D": each.D.value, "way": "surface"}
        for each in along
        if each.S.value is not None
    ]
    minima = [
        {"C": each.C, "S": each.S.value, "lo": each.S.lo, "hi": each.S.hi, "D": each.D.value, "way": "IsoFLOP"}
        for each in _budgets(law)
        if each.S.value is not None
    ]
    return line, minima
