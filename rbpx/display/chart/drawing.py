"""What figures share: rows of data as Vega-Lite reads them, axes, and the colours, shapes and dashes of series."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from rbpx.display.chart.colours import DASHES
from rbpx.laws.names import Axis
from rbpx.laws.power import PowerLawFit
from rbpx.laws.prediction import along

__all__ = [
    "PLACE_TITLES",
    "S_TITLE",
    "colour",
    "curve",
    "dash",
    "data",
    "line_dash",
    "linear",
    "logarithmic",
    "shape",
    "spec_of",
    "tips",
    "zero_line",
]

Rows = Sequence[Mapping[str, Any]]

S_TITLE: Final = "S, non-embedding parameters"
PLACE_TITLES: Final = {  # of what laws are in
    Axis.S: S_TITLE,
    Axis.D: "D, training tokens",
    Axis.C: "C, training FLOPs",
    Axis.step: "training steps",
}
_DIGITS: Final = 5  # of a number in a figure; the table below it has all
_LEGEND, _SYMBOL = 60, 5  # characters: of a line of a legend, of a symbol with the space beside it
_STEPS: Final = 12  # of a curve
_LOG10: Final = "log(datum.value) / LN10"
_AT_POWERS: Final[Any] = {
    "condition": {"test": f"abs({_LOG10} - round({_LOG10})) < 1e-9", "value": 1},
    "value": 0.35,
}


def data(rows: Rows) -> alt.InlineData:
    """Rows as CSV inside the figure, which takes a third of the space of JSON; unknown numbers are empty.

    A column is text if any of its values is.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = {name for name in names if any(isinstance(row.get(name), str) for row in rows)}
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_plain(row.get(name)) for name in names] for row in rows)
    parse = {name: "string" if name in texts else "number" for name in names}
    return alt.InlineData(values=written.getvalue(), format=alt.CsvDataFormat(type="csv", parse=parse))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}" if math.isfinite(value) else None
    return value


def curve(fit: PowerLawFit, steps: int = _STEPS) -> list[dict[str, float | None]]:
    """S, y, lo, hi along a law from its smallest to its largest size; the interval is that of one new model."""
    return [{"S": p.S, "y": p.y, "lo": p.lo, "hi": p.hi} for p in along(fit, steps)]


def logarithmic(channel: type, field: str, title: str, form: str | None = None, **more: Any) -> Any:
    """A channel on a logarithmic scale, labelled with few round numbers; grid lines stand out at powers of ten."""
    axis = alt.Axis(format=form or ("~s" if channel is alt.X else "~g"), tickCount=6, gridOpacity=_AT_POWERS, **more)
    return channel(f"{field}:Q", title=title, axis=axis, scale=alt.Scale(type="log", nice=False, padding=12))


def linear(channel: type, field: str, title: str, zero: bool = False, form: str = "~g") -> Any:
    """A channel on a linear scale."""
    return channel(
        f"{field}:Q", title=title, axis=alt.Axis(format=form, tickCount=6), scale=alt.Scale(zero=zero, padding=12)
    )


def colour(field: str, title: str, order: Sequence[str]) -> alt.Color:
    """The colour of a series; `order` is that of the legend, whose columns fit half a page."""
    longest = max((len(name) for name in order), default=0) + _SYMBOL
    columns = max(1, _LEGEND // longest) if longest * len(order) > _LEGEND else None
    legend = alt.Undefined if columns is None else alt.Legend(columns=columns)
    scale = alt.Scale(domain=list(order))
    return alt.Color(f"{field}:N", title=title, sort=list(order), scale=scale, legend=legend)


def shape(field: str, title: str, order: Sequence[str]) -> alt.Shape:
    """The shape of a series' points."""
    return alt.Shape(f"{field}:N", title=title, sort=list(order), scale=alt.Scale(domain=list(order)))


def dash(field: str, order: Sequence[str]) -> alt.StrokeDashValue:
    """The dash of a series' line, as values: with a scale, dashes would appear in the symbols of the legend."""
    tests = [
        {"test": f"datum.{field} === {json.dumps(name)}", "value": list(DASHES[at % len(DASHES)])}
        for at, name in enumerate(order)
    ]
    return alt.StrokeDashValue(list(DASHES[0]), condition=tests)


def line_dash(field: str, order: Sequence[str]) -> alt.StrokeDash:
    """The dash of a line that has no colour or shape of its own, with a legend of lines."""
    scale = alt.Scale(domain=list(order), range=[list(DASHES[at % len(DASHES)]) for at in range(len(order))])
    look = alt.Legend(title=None, symbolStrokeWidth=2, symbolSize=300)
    return alt.StrokeDash(f"{field}:N", sort=list(order), scale=scale, legend=look)


def tips(**fields: str) -> list[alt.Tooltip]:
    """What is shown when a mark is pointed at: field = title, followed by `|format` for a number."""
    tooltips = []
    for field, text in fields.items():
        title, _, form = text.partition("|")
        tooltips.append(alt.Tooltip(f"{field}:{'Q' if form else 'N'}", title=title, format=form or alt.Undefined))
    return tooltips


def zero_line(field: str, title: str) -> Any:
    """A vertical rule at 0 of a horizontal axis."""
    return alt.Chart(data([{field: 0.0}])).mark_rule(strokeDash=[2, 3]).encode(x=alt.X(f"{field}:Q", title=title))


def spec_of(chart: Any, height: int = 300) -> dict[str, Any]:
    """A chart as plain values; the page gives it its width, the theme its look."""
    spec: dict[str, Any] = chart.properties(width=560, height=height).to_dict(validate=False)
    spec.pop("config", None)
    spec.pop("$schema", None)
    return spec
