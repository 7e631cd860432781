"""Along training on a terminal: each quantity against D, with the laws after the warm-up."""

from collections.abc import Sequence

import numpy as np

from rbpx.analyses.trajectory.analysis import Trajectories
from rbpx.analyses.trajectory.figure import curve_of
from rbpx.display.names import law_name
from rbpx.display.plot.axes import Axis
from rbpx.display.plot.canvas import Series
from rbpx.display.plot.terminal import MOST, print_plot
from rbpx.display.spread import spread
from rbpx.display.tables import console


def show(results: Sequence[Trajectories]) -> None:
    """Plot each quantity, a mark for each size."""
    for trajectories in results:
        for law, k in dict.fromkeys((each.law, each.k) for each in trajectories.laws):
            of_law = spread([each for each in trajectories.laws if (each.law, each.k) == (law, k)], MOST)
            series = []
            for each in of_law:
                curve = np.array(curve_of(each)).reshape(-1, 2)
                points = np.array(each.D), each.sign * np.array(each.y)
                series.append(Series(each.name, *points, x_L=curve[:, 0], y_L=curve[:, 1]))
            y = Axis(law_name(law, k), log=all(each.sign == 1 for each in of_law))
            title = f"{trajectories.group.title}: {law_name(law, k)} along training"
            print_plot(console(), title, series, Axis("D, training tokens"), y)
