"""A chart for a notebook: results in, a quantity along training of the first group that can be drawn out."""

from collections.abc import Sequence

import altair as alt

from rbpx.analyses.trajectory.analysis import Trajectories
from rbpx.analyses.trajectory.figure import figures
from rbpx.display.chart.notebook import first_drawn


def draw(results: Sequence[Trajectories]) -> alt.LayerChart:
    """A chart of one group; the others are in the report.

    Raises:
        RbpxError: no group has anything to draw.
    """
    return first_drawn(each for at, result in enumerate(results) for each in figures(result, at, ()))
