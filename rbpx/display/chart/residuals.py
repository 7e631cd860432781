"""Residuals of ln y about fitted laws in; a chart of them against S, with a line at 0, out."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from rbpx.display.chart.drawing import PLACE_TITLES, colour, dash, data, linear, logarithmic, shape, spec_of, tips
from rbpx.display.chart.sheet import Sheet, decimal, named, place, place_column, sheet_of
from rbpx.laws.names import Axis

__all__ = ["CAPTION", "Y_TITLE", "residual_chart", "residual_values"]

Y_TITLE = "ln y − ln law"
CAPTION = (
    "What is left of ln y about each law, sizes joined in order. Scatter of models lies on both sides of 0 whatever "
    "the size; residuals that bend, or keep their sign over neighbouring sizes, are misfit of the form, which more "
    "models do not average out."
)


def residual_chart(
    rows: Sequence[dict[str, Any]], order: Sequence[str], legend: str, axis: Axis = Axis.S
) -> dict[str, Any]:
    """The chart.

    Args:
        rows: one a point: series, size, S, residual.
        order: of the series in the legend, which is left out for one series.
        legend: its title.
        axis: what the laws are in.
    """
    several = len(order) > 1
    hue: dict[str, Any] = {"color": colour("series", legend, order)} if several else {}
    form: dict[str, Any] = {"shape": shape("series", legend, order)} if several else {}
    line: dict[str, Any] = {"strokeDash": dash("series", order)} if several else {}
    y = linear(alt.Y, "residual", Y_TITLE, zero=True)
    tooltip = tips(series=legend, size="size", S="S|,", residual=f"{Y_TITLE}|+.3~g")
    base = alt.Chart(data(list(rows))).encode(x=logarithmic(alt.X, "S", PLACE_TITLES[axis]), y=y)
    zero = alt.Chart(data([{"residual": 0.0}])).mark_rule(strokeDash=[2, 3]).encode(y=y)
    joined = base.mark_line(strokeWidth=1).encode(**hue, **line)
    marks = base.mark_point().encode(**hue, **form, tooltip=tooltip if several else tooltip[1:])
    return spec_of(alt.layer(zero, joined, marks), height=240)


def residual_values(name: str, title: str, rows: Sequence[dict[str, Any]], legend: str, axis: Axis = Axis.S) -> Sheet:
    """The table of a figure's residuals."""
    columns = [(legend, "series"), ("size", "size"), place_column(axis), (Y_TITLE, "residual_ln")]
    entries = [[named(r["series"]), named(r["size"]), place(axis, r["S"]), decimal(r["residual"], 5)] for r in rows]
    return sheet_of(name, f"{title}: values", columns, entries)
