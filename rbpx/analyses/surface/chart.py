"""A chart for a notebook: results in, contours of a surface of the first group that can be drawn out."""

from collections.abc import Sequence

import altair as alt

from rbpx.analyses.surface.figure import figures
from rbpx.analyses.surface.law import Surfaces
from rbpx.display.chart.notebook import first_drawn


def draw(results: Sequence[Surfaces]) -> alt.LayerChart:
    """A chart of one group; the others are in the report.

    Raises:
        RbpxError: no group has anything to draw.
    """
    return first_drawn(each for at, result in enumerate(results) for each in figures(result, at, ()))
