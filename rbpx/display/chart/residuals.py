"""Residuals of ln y about fitted laws, drawn against what the laws are in, with a line at 0."""

from collections.abc import Sequence

from rbpx.display.chart.figure import Figure, Origin, drawn
from rbpx.display.chart.marks import Chart, Scale, line, points, rule, scale_of
from rbpx.display.column import Column, Placed, decimal, place, text
from rbpx.display.view import View
from rbpx.laws.names import Axis

_Left = tuple[str, str, Placed, float]
_Y = Scale("residual_ln", "ln y − ln law", zero=True)
_CAPTION = (
    "What is left of ln y about each law, sizes joined in order. Scatter of models lies on both sides of 0 whatever "
    "the size; residuals that bend, or keep their sign over neighbouring sizes, are misfit of the form, which more "
    "models do not average out."
)


def residual_figure(
    name: str, title: str, rows: Sequence[_Left], legend: str, says: str, origin: Origin, axis: Axis = Axis.S
) -> Figure:
    """The figure.

    Args:
        name: of the figure.
        title: of the figure.
        rows: one a point: series, size, run, ln y minus law.
        legend: the title of the legend.
        says: what can be seen, for those who cannot see it.
        origin: where the numbers come from.
        axis: what the laws are in.
    """
    columns: tuple[Column[_Left] | Sequence[Column[_Left]], ...] = (
        text(legend, "series", lambda row: row[0]),
        text("size", "size", lambda row: row[1]),
        place(lambda row: row[2]),
        decimal(_Y.title, _Y.key, lambda row: row[3], 5),
    )
    marks = (rule(residual_ln=0.0), line(look={"strokeWidth": 1}), points())
    chart = Chart(scale_of(axis), _Y, marks, "series", legend, height=240)
    return drawn(View(name, columns).table(title, rows, axis=axis), chart, says, _CAPTION, origin)
