"""Fitted laws of size in; a chart of y against S, with the fits and their bands, out."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from rbpx.analyses.fit.analysis import Laws
from rbpx.display.chart.drawing import PLACE_TITLES
from rbpx.display.names import law_name
from rbpx.errors import RbpxError
from rbpx.groups.fits import Law
from rbpx.groups.labels import titles_of
from rbpx.laws.names import Method
from rbpx.laws.prediction import along

_STEPS = 60  # of a curve


def draw(results: Sequence[Laws]) -> alt.LayerChart:
    """Points, curves and 95 % prediction bands for one new model of a size, on logarithmic axes.

    A law without numbers is shown by its points alone. A negative term is drawn as its absolute value, and its name
    says so.

    Raises:
        RbpxError: no law has a point to draw.
    """
    titles = titles_of([laws.group for laws in results])
    of_each = [(_names(on, law), law) for on, laws in zip(titles, results, strict=True) for law in laws.laws]
    points = [names | row for names, law in of_each for row in _points(law)]
    curves = [names | row for names, law in of_each for row in _curve(law)]
    if not points:
        raise RbpxError("no points to draw: every quantity is 0 or unknown; see the column status")
    x = alt.X("S:Q", scale=alt.Scale(type="log", nice=False, padding=12), title=PLACE_TITLES[results[0].group.axis])
    y = alt.Y("y:Q", scale=alt.Scale(type="log", nice=False, padding=12), title="-ln RBP_k, or nats")
    whole = alt.Legend(labelLimit=0, symbolOpacity=1)  # not that of the band
    law = alt.Color("law:N", sort=list(dict.fromkeys(row["law"] for row in points)), title=None, legend=whole)
    legend = whole if len({row["on"] for row in points}) > 1 else None  # one group needs no name beside it
    on = alt.StrokeDash("on:N", title=None, legend=legend)
    shape = alt.Shape("on:N", title=None, legend=legend)
    tooltip = ["on:N", "law:N", "size:N", alt.Tooltip("S:Q", format=","), alt.Tooltip("y:Q", format=".4f")]
    marks = alt.Chart(alt.InlineData(points)).mark_point(filled=True).encode(x, y, law, shape, tooltip=tooltip)
    if not curves:
        return alt.LayerChart(layer=[marks])
    base = alt.Chart(alt.InlineData(curves))
    band = base.mark_area(opacity=0.12).encode(x, alt.Y("lo:Q"), alt.Y2("hi:Q"), law, detail="on:N")
    return alt.LayerChart(layer=[band, base.mark_line(strokeWidth=1.5).encode(x, y, law, on), marks])


def _names(on: str, law: Law) -> dict[str, Any]:
    negated = " (negated)" if law.fit.params["sign"] == -1 else ""
    method = "" if law.method is Method.ols else f", {law.method}"
    return {"on": on, "law": f"{law_name(law.law, law.k)}{negated}{method}"}


def _points(law: Law) -> Iterator[dict[str, Any]]:
    """What was measured; 0 and unknown values have no place on a logarithmic axis."""
    for run, y in zip(law.runs, law.fit.params["y"], strict=True):
        if y:
            yield {"S": run.x, "size": run.size, "y": abs(y)}


def _curve(law: Law) -> Iterator[dict[str, Any]]:
    """The law between the smallest and the largest size, with its band where it has one."""
    if law.fit.alpha is None or law.fit.params.get("ln_C_ref") is None:
        return
    for point in along(law.fit, _STEPS):
        ends = sorted(abs(end) for end in (point.lo, point.hi) if end is not None)
        band = dict(zip(("lo", "hi"), ends, strict=False)) if len(ends) == 2 else {}
        yield {"S": point.S, "y": abs(point.y)} | band
