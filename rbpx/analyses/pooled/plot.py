"""Pooled laws on a terminal: the residuals of all families about the shared law against S."""

from collections.abc import Sequence

import numpy as np

from rbpx.analyses.pooled.analysis import Pooled
from rbpx.display.names import law_name
from rbpx.display.plot.axes import SIZE, Axis
from rbpx.display.plot.canvas import Series
from rbpx.display.plot.terminal import MOST, print_plot
from rbpx.display.spread import spread
from rbpx.display.tables import console


def show(results: Sequence[Pooled]) -> None:
    """Plot each law, with a mark for each family and the law at 0."""
    screen = console()
    for pooled in results:
        for law in pooled.laws:
            fit = law.fits[0]
            if fit.alpha is None:
                continue
            sizes = [np.array(points.S_N, dtype=np.float64) for points in law.points]
            ends = np.concatenate(sizes)
            x_L = np.geomspace(ends.min(), ends.max(), 60)
            series = [
                Series(family, S_N, np.array(left), x_L=x_L, y_L=np.zeros_like(x_L))
                for family, S_N, left in zip(law.families, sizes, fit.residuals, strict=True)
            ]
            title = f"{pooled.title}, {law_name(law.law, law.k)}: residuals about one exponent"
            print_plot(screen, title, spread(series, MOST), SIZE, Axis("ln y - law", log=False))
