"""A chart for a notebook: the figures of a section in, the first one that can be drawn out."""

from collections.abc import Iterable

import altair as alt

from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.errors import RbpxError


def first_drawn(figures: Iterable[Figure | Undrawn]) -> alt.LayerChart:
    """The first figure with anything in it; the others are in the report.

    Raises:
        RbpxError: none has anything to draw.
    """
    drawn = next((each for each in figures if isinstance(each, Figure)), None)
    if drawn is None:
        raise RbpxError("nothing to draw: no quantity has values with a law; see the column status")
    chart: alt.LayerChart = alt.LayerChart.from_dict(drawn.spec)
    return chart
