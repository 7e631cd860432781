"""Success of items on a terminal: accuracy, or exact match at each k, against S, with chance as a line."""

from collections.abc import Sequence

import numpy as np

from rbpx.analyses.items.analysis import GroupItems
from rbpx.analyses.items.curves import success_curves
from rbpx.display.plot.axes import SIZE, Axis
from rbpx.display.plot.canvas import Series
from rbpx.display.plot.terminal import MOST, print_plot
from rbpx.display.tables import console


def show(results: Sequence[GroupItems]) -> None:
    """Plot each group of items, intervals over items."""
    for items in results:
        curves = success_curves(items)
        series = [
            Series(curve.name, *(np.array(each, np.float64) for each in (curve.S, curve.y, curve.lo, curve.hi)))
            for curve in curves[: MOST - 1]
        ]
        chance = items.runs[0].scores.chance
        if series and chance is not None:
            S = series[0].x_N
            series.append(Series("chance", S[:1], np.full(1, chance), x_L=S[[0, -1]], y_L=np.full(2, chance)))
        if series:
            axis = Axis("share of items", log=False)
            print_plot(console(), f"{items.group.title}: success against S, 95 % over items", series, SIZE, axis)
