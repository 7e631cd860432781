"""A figure: its chart, what it shows in words, the values that it draws, and where they come from."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rbpx.display.chart.marks import Chart
from rbpx.display.chart.vega import spec
from rbpx.display.view import Table
from rbpx.errors import RbpxError

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, eq=False)
class Figure:
    """One figure.

    Attributes:
        name: in plain characters, unique within its section; part of file names.
        title: what it shows.
        says: what can be seen, in a sentence, for those who cannot see it.
        caption: what its marks mean.
        chart: its axes and marks.
        values: what it draws.
        sql: a query of the store that gives these numbers.
        run_ids: the runs that they come from.
    """

    name: str
    title: str
    says: str
    caption: str
    chart: Chart
    values: Table
    sql: str
    run_ids: tuple[str, ...]

    @property
    def spec(self) -> dict[str, Any]:
        """Its chart in Vega-Lite, without colours and font sizes, which the theme sets."""
        return spec(self.chart, self.values)


@dataclass(frozen=True)
class Origin:
    """Where the numbers of a figure come from: a query of the store that gives them, and runs."""

    sql: str
    run_ids: tuple[str, ...]


def drawn(values: Table, chart: Chart, says: str, caption: str, origin: Origin) -> Figure:
    """The figure that a chart makes of a table, whose name and title it has."""
    titled = replace(values, title=f"{values.title}: values")
    return Figure(values.name, values.title, says, caption, chart, titled, origin.sql, origin.run_ids)


@dataclass(frozen=True)
class Undrawn:
    """A figure that cannot be drawn.

    Attributes:
        name: as that of the figure.
        title: as that of the figure.
        reason: why, and what to do about it.
    """

    name: str
    title: str
    reason: str


def first_drawn(figures: Iterable[Figure | Undrawn]) -> "alt.LayerChart":
    """The first figure with anything in it; the others are in the report.

    Raises:
        RbpxError: none has anything to draw.
    """
    drawn = next((each for each in figures if isinstance(each, Figure)), None)
    if drawn is None:
        raise RbpxError("nothing to draw: no quantity has values with a law; see the column status")
    import altair as alt  # two seconds, which only a notebook needs

    chart: alt.LayerChart = alt.LayerChart.from_dict(drawn.spec)
    return chart
