"""Surfaces on a terminal: IsoFLOP curves, contours with the runs on them, and the best size along C."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rbpx.analyses.surface.curves import contour_rows, drawn, isoflop_rows, optimum_rows, run_rows
from rbpx.analyses.surface.law import SurfaceLaw, Surfaces
from rbpx.display.names import law_name
from rbpx.display.plot.axes import SIZE, Axis
from rbpx.display.plot.canvas import Series
from rbpx.display.plot.terminal import MOST, print_plot
from rbpx.display.spread import spread
from rbpx.display.tables import console

_TOKENS = Axis("D, training tokens")
_NONE = np.empty(0)


def show(results: Sequence[Surfaces]) -> None:
    """Plot cross-entropy and -ln RBP at the smallest k of each group."""
    for surfaces in results:
        for law in drawn(surfaces.laws, 2):
            title = f"{surfaces.group.title}, {law_name(law.trained.law, law.trained.k)}"
            print_plot(console(), f"{title}: contours, and the runs", _contours(law), SIZE, _TOKENS)
            curves = _isoflop(law)
            if curves:
                y = Axis(law_name(law.trained.law, law.trained.k), log=law.trained.sign == 1)
                print_plot(console(), f"{title}: IsoFLOP curves", curves, SIZE, y)
            best = _optimum(law)
            if best:
                axes = Axis("C, training FLOPs"), Axis("best S")
                print_plot(console(), f"{title}: the best size of a budget", best, *axes)


def _column(rows: Sequence[dict[str, Any]], name: str) -> Any:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], np.float64)


def _contours(law: SurfaceLaw) -> list[Series]:
    runs, lines = run_rows(law), contour_rows(law, law.best)
    levels = spread(list(dict.fromkeys(row["level"] for row in lines)), MOST - 1)
    series = []
    for level in levels:
        of_level = [row for row in lines if row["level"] == level]
        x_L, y_L = _column(of_level, "S"), _column(of_level, "D")
        series.append(Series(f"y = {level}", x_L[-1:], y_L[-1:], x_L=x_L, y_L=y_L))
    return [*series, Series("runs", _column(runs, "S"), _column(runs, "D"))]


def _isoflop(law: SurfaceLaw) -> list[Series]:
    points, curves, _ = isoflop_rows(law)
    series = []
    for budget in spread(list(dict.fromkeys(row["budget"] for row in points)), MOST):
        of_budget, curve = ([row for row in rows if row["budget"] == budget] for rows in (points, curves))
        values = {name: (_column(of_budget, name), _column(curve, name)) for name in "Sy"}
        series.append(Series(budget, values["S"][0], values["y"][0], x_L=values["S"][1], y_L=values["y"][1]))
    return series


def _optimum(law: SurfaceLaw) -> list[Series]:
    line, minima = optimum_rows(law)
    if not line:
        return []
    some = line[:: max(1, len(line) // 6)]
    C_N, S_N, lo_N, hi_N = (_column(some, name) for name in ("C", "S", "lo", "hi"))
    x_L, y_L = _column(line, "C"), _column(line, "S")
    series = [Series("surface, 95 %", C_N, S_N, lo_N=lo_N, hi_N=hi_N, x_L=x_L, y_L=y_L)]
    if minima:
        series.append(Series("IsoFLOP", _column(minima, "C"), _column(minima, "S")))
    return series
