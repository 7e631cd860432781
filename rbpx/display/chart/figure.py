"""Figures: axes and marks over the rows of a table, a description in words, and the Vega-Lite that draws them.

A theme sets colours and font sizes. Source: the schema of Vega-Lite 6.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import numpy as np

from rbpx.display.chart.colours import DASHES
from rbpx.display.table import Column, Table, label
from rbpx.display.vocabulary import amount, percent, short, size_name, title_of, whole
from rbpx.errors import RbpxError
from rbpx.laws.names import Axis, SizeBy
from rbpx.laws.power.law import PowerLaw

Rows = Sequence[Mapping[str, Any]]
T = TypeVar("T")


@dataclass(frozen=True)
class Scale:
    """An axis.

    Attributes:
        key: of the value that it shows.
        zero: whether it includes 0; least is where it begins otherwise, as a share at 0.
        form: format of its labels (d3).
        names: on it, in order; empty for an axis of numbers.
    """

    key: str
    title: str
    log: bool = False
    zero: bool = False
    least: float | None = None
    form: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mark:
    """One layer of a chart.

    Attributes:
        kind: points; a line through rows in their order; a band or bars from lo to hi; the name of its series at each
            row; a rule across the chart at the value that its row has on one of the axes.
        rows: None for those of the figure's values.
        lo: key of the lower end of a band or bar, hi of the upper.
        by: key that dashes and shapes distinguish, instead of the series.
        along: the axis that a band or bar lies along; empty for that of the values.
        look: further properties in Vega-Lite.
        plain: whether it has no colour of a series.
    """

    kind: Literal["points", "line", "band", "bars", "text", "rule"]
    rows: Rows | None = None
    lo: str = "lo"
    hi: str = "hi"
    by: str = ""
    along: Literal["", "x", "y"] = ""
    look: Mapping[str, Any] = field(default_factory=dict)
    plain: bool = False


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes:
        marks: the lowest first.
        series: key that colours, shapes and dashes distinguish; legend is its title, order that of the series in it.
        height: in pixels, for a width of 560.
        is_ordered: whether the series are steps of a quantity, whose colours go from dark to light.
    """

    x: Scale
    y: Scale
    marks: tuple[Mark, ...]
    series: str = ""
    legend: str = ""
    order: tuple[str, ...] = ()
    height: int = 300
    is_ordered: bool = False


def scale_of(axis: Axis, key: str = "", by: SizeBy = SizeBy.total) -> Scale:
    """The logarithmic axis of laws."""
    of_S = "non_embedding_params" if axis is Axis.S else axis.value
    return Scale(key or of_S, title_of(axis, by), log=True, form="~e" if axis is Axis.C else "~s")


def curve(fit: PowerLaw, x: str, y: str, steps: int = 12, **names: Any) -> list[dict[str, Any]]:
    """Points x, y, lo, hi along a law over its sizes, with the interval of one new model."""
    found = map(fit.predict, np.geomspace(min(fit.S), max(fit.S), steps).tolist())
    return [{**names, x: at.S, y: at.y, "lo": at.lo, "hi": at.hi} for at in found]


def points(**more: Any) -> Mark:
    """A mark with a point for each row."""
    return Mark("points", **more)


def line(rows: Rows | None = None, **more: Any) -> Mark:
    """A mark with a line for each series."""
    return Mark("line", rows, **more)


def bars(lo: str = "lo", hi: str = "hi", **more: Any) -> Mark:
    """A mark with an interval for each row."""
    return Mark("bars", lo=lo, hi=hi, **more)


def rule(**at: float) -> Mark:
    """A dashed rule across the chart at a value of one axis, by its key."""
    return Mark("rule", [at], plain=True)


def spread(items: Sequence[T], most: int) -> list[T]:
    """At most so many items, evenly spaced, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[round(at * (len(items) - 1) / (most - 1))] for at in range(most)]


Spec = dict[str, Any]

WIDTH: Final = 560  # pixels
_DIGITS: Final = 5  # digits of a number in a figure; the table below has all
_EMS: Final = 47  # of the width of a figure on a page
_SYMBOL: Final = 5  # characters that a symbol of a legend takes, with its space
_A_LINE: Final = 1.3  # characters of a legend per em of the width
_LOG10: Final = "log(datum.value) / LN10"
_AT_POWERS: Final = {  # grid lines stand out at powers of ten
    "condition": {"test": f"abs({_LOG10} - round({_LOG10})) < 1e-9", "value": 1},
    "value": 0.35,
}
_MARKS: Final = {"points": "point", "line": "line", "band": "area", "bars": "rule", "text": "text", "rule": "rule"}
_LOOKS: Final[dict[str, Spec]] = {"band": {"opacity": 0.13}, "rule": {"strokeDash": [4, 4]}}  # in a notebook too


def spec(chart: Chart, values: Table, ems: float = _EMS) -> Spec:
    """The Vega-Lite of a chart, `ems` wide in sizes of its text, with the values as tooltips."""
    rows = _shown(values.records())
    order = chart.order or tuple(dict.fromkeys(str(row[chart.series]) for row in rows if chart.series in row))
    layers = [
        _layer(chart, mark, rows if mark.rows is None else _shown(mark.rows), values, order) for mark in chart.marks
    ]
    if chart.series:
        longest, a_line = max((len(name) for name in order), default=0) + _SYMBOL, int(_A_LINE * ems)
        if longest * len(order) > a_line:
            for told in (layer["encoding"]["color"] for layer in layers if "color" in layer["encoding"]):
                told["legend"] = told.get("legend", {}) | {"columns": max(1, a_line // longest)}
    return {"layer": layers, "width": WIDTH, "height": chart.height}


def _shown(rows: Rows) -> Rows:
    names: dict[str, Callable[[str], str]] = {"status": label, "size": size_name}
    return [{name: names[name](str(of)) if of and name in names else of for name, of in row.items()} for row in rows]


def _layer(chart: Chart, mark: Mark, rows: Rows, values: Table, order: Sequence[str]) -> Spec:
    x, y = _axis(chart.x, "~s"), _axis(chart.y, "~g")
    encoding: Spec = {"x": x, "y": y}
    if mark.kind == "rule":
        encoding = {name: at for name, at in encoding.items() if at["field"] in rows[0]}
    if mark.kind in ("band", "bars"):
        along = mark.along or ("x" if chart.y.names else "y")  # where the interval lies
        encoding[along] = encoding[along] | {"field": mark.lo}
        encoding[f"{along}2"] = {"field": mark.hi}
    if chart.y.names and chart.series and mark.kind != "rule":
        encoding["yOffset"] = {"field": chart.series, "type": "nominal", "sort": list(order)}
    if chart.series and not mark.plain:
        encoding |= _told_apart(chart, mark, rows, order)
    if mark.kind == "points":
        encoding["tooltip"] = _tips(values, rows)
    if mark.kind == "text":
        encoding["text"] = {"field": chart.series, "type": "nominal"}
    look = {"type": _MARKS[mark.kind], **_LOOKS.get(mark.kind, {}), **mark.look}
    return {"data": _data(rows), "mark": look, "encoding": encoding}


def _axis(scale: Scale, form: str) -> Spec:
    if scale.names:
        look: Spec = {"grid": True, "labelLimit": 160}
        return {"field": scale.key, "type": "nominal", "sort": list(scale.names), "title": None, "axis": look}
    axis: Spec = {"format": scale.form or (form if scale.log else "~g"), "tickCount": 6}
    if axis["format"].endswith("s"):
        axis["labelExpr"] = "replace(datum.label, 'G', 'B')"  # a billion, as models are named
    on: Spec = {"zero": scale.zero, "padding": 12} | ({} if scale.least is None else {"domainMin": scale.least})
    if scale.log:
        axis["gridOpacity"] = _AT_POWERS
        on = {"type": "log", "nice": False, "padding": 12}
    return {"field": scale.key, "type": "quantitative", "title": scale.title, "axis": axis, "scale": on}


def _told_apart(chart: Chart, mark: Mark, rows: Rows, order: Sequence[str]) -> Spec:
    told: Spec = {"color": _named(chart.series, chart.legend, order)}
    if chart.is_ordered:
        told["color"]["type"] = "ordinal"
    kinds = list(dict.fromkeys(str(row[mark.by]) for row in rows)) if mark.by else order
    if mark.kind == "band":
        told["color"]["legend"] = {"symbolOpacity": 1}  # else that of the band
    if mark.kind == "points":
        told["shape"] = _named(mark.by or chart.series, "" if mark.by else chart.legend, kinds)
    if mark.kind == "line" and "strokeDash" not in mark.look:
        told["strokeDash"] = _dash(mark.by or chart.series, kinds)
    if mark.kind == "line" and mark.by:
        told |= {"detail": {"field": mark.by, "type": "nominal"}, "tooltip": {"field": mark.by, "type": "nominal"}}
    return told


def _named(field: str, title: str, order: Sequence[str]) -> Spec:
    return {"field": field, "type": "nominal", "title": title, "sort": list(order), "scale": {"domain": list(order)}}


def _dash(field: str, order: Sequence[str]) -> Spec:
    """Encodes dashes as values; a scale would put them into the symbols of the legend."""
    tests = [
        {"test": f"datum[{json.dumps(field)}] === {json.dumps(name)}", "value": list(DASHES[at % len(DASHES)])}
        for at, name in enumerate(order)
    ]
    return {"value": list(DASHES[0]), "condition": tests}


_TIPS: Final[Mapping[Any, str]] = {whole: ",", short: ".3~g", amount: ".3~g", percent: "+.2%"}


def _tips(values: Table, rows: Rows) -> list[Spec]:
    tips: list[Spec] = []
    for column in values.columns:
        names = ("95 % from", "to") if column.is_interval else (column.name,) * len(column.keys)
        for key, name in zip(column.keys, names, strict=True):
            if any(key in row for row in rows):
                tips.append({"field": key, "title": name, **_tip_form(column)})
    return tips


def _tip_form(column: Column) -> Spec:
    if not column.is_number:
        return {"type": "nominal"}
    form = column.format if isinstance(column.format, str) else _TIPS.get(column.format, ".4~g")
    return {"type": "quantitative", "format": ".4~g" if column.is_interval else form}


def _data(rows: Rows) -> Spec:
    """Writes rows as CSV, a third of the space of JSON; a column is text if any of its values is."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = {name for name in names if any(isinstance(row.get(name), str) for row in rows)}
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_plain(row.get(name)) for name in names] for row in rows)
    parse = {name: "string" if name in texts else "number" for name in names}
    return {"values": written.getvalue(), "format": {"type": "csv", "parse": parse}}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}" if math.isfinite(value) else None
    return value


if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, eq=False)
class Figure:
    """One figure.

    Attributes:
        name: unique within its section, and part of file names.
        says: for those who cannot see it.
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
        """Its chart in Vega-Lite, without what the theme sets."""
        return spec(self.chart, self.values)


@dataclass(frozen=True)
class Origin:
    """A query that gives the numbers of a figure, and the runs that they come from."""

    sql: str
    run_ids: tuple[str, ...]


def drawn(values: Table, chart: Chart, says: str, caption: str, origin: Origin) -> Figure:
    """The figure of a chart and a table, whose name and title it has."""
    titled = replace(values, title=f"{values.title}: values")
    return Figure(values.name, values.title, says, caption, chart, titled, origin.sql, origin.run_ids)


@dataclass(frozen=True)
class Undrawn:
    """A figure that cannot be drawn: why, and what to do about it."""

    name: str
    title: str
    reason: str


def first_drawn(figures: Iterable[Figure | Undrawn]) -> "alt.LayerChart":
    """The first figure.

    Raises:
        RbpxError: none has anything to draw.
    """
    drawn = next((each for each in figures if isinstance(each, Figure)), None)
    if drawn is None:
        raise RbpxError("nothing to draw: no quantity has a fitted law; the column status says why")
    import altair as alt  # takes two seconds; only a notebook needs it

    chart: alt.LayerChart = alt.LayerChart.from_dict(drawn.spec)
    return chart
