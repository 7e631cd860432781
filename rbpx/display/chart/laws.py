"""Figures of laws: points, lines and bands in which new models would lie; residuals; single numbers with intervals."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from rbpx.display.chart.figure import Chart, Figure, Mark, Origin, Scale, Undrawn, curve, drawn, rule, scale_of
from rbpx.display.view import Bounded, Column, Placed, View, decimal, magnitude, place, text, whole, with_ends
from rbpx.laws.names import Axis, SizeBy
from rbpx.laws.power.law import PowerLawFit

_Point = tuple[str, str | None, float, float]
_SIZE: Final[Column[_Point]] = text("size", "size", lambda point: point[1])
_MOST_ON_A_LINE: Final = 2  # places of a curve that is straight on logarithmic axes and has no band
_Left = tuple[str, str, Placed, float]
_Y = Scale("residual_ln", "ln y − ln law", zero=True)
_CAPTION = (
    "Residuals of ln y about each law, sizes joined in order. Scatter between models lies on both sides of 0 at every "
    "size; residuals that bend, or keep their sign over neighbouring sizes, show a misfit of the form, which more "
    "models do not average out."
)


def law_figure(
    name: str,
    title: str,
    laws: Sequence[tuple[str, PowerLawFit]],
    x: Scale,
    y: Scale,
    words: tuple[str, str],
    origin: Origin,
    *,
    legend: str = "",
    sizes: Mapping[float, str] | None = None,
    band: bool = True,
) -> Figure | Undrawn:
    """The points and lines of some laws.

    Args:
        name: of the figure.
        title: of the figure.
        laws: each with its name in the legend.
        x: what they are laws in.
        y: what they are laws of.
        words: what can be seen, for those who cannot see it, and the caption.
        origin: where the numbers come from.
        legend: its title; empty where names say all.
        sizes: what the model at each place is called; None where a place is no model.
        band: whether the 95 % band of new models is drawn.
    """
    columns: list[Column[_Point]] = [
        text(legend or "law", "series", lambda point: point[0]),
        *([] if sizes is None else [_SIZE]),
        whole(x.key, x.key, lambda point: point[2]),
        decimal(y.title, y.key, lambda point: point[3]),
    ]
    fitted: list[_Point] = [
        (series, (sizes or {}).get(place), place, value)
        for series, fit in laws
        for place, value in zip(fit.S, fit.y, strict=True)
        if math.isfinite(value)
    ]
    rows = [
        row
        for series, fit in laws
        if fit.alpha is not None
        for row in curve(fit, x.key, y.key, 12 if band else _MOST_ON_A_LINE, series=series)
    ]
    marks = (*([Mark("band", rows)] if band and rows else []), *([Mark("line", rows)] if rows else []), Mark("points"))
    says, caption = words
    return drawn(View(name, columns).table(title, fitted), Chart(x, y, marks, "series", legend), says, caption, origin)


def series_figure(
    name: str,
    title: str,
    numbers: Sequence[tuple[str, float, Bounded]],
    x: Scale,
    y: Scale,
    words: tuple[str, str],
    origin: Origin,
    under: Sequence[Mark] = (),
) -> Figure:
    """Numbers with their intervals.

    Args:
        name: of the figure.
        title: of the figure.
        numbers: each with its series and its place.
        x: where they lie.
        y: what they are.
        words: what can be seen, for those who cannot see it, and the caption.
        origin: where they come from.
        under: what is drawn below them.
    """
    view = View[tuple[str, float, Bounded]](
        name,
        text("of", "series", lambda row: row[0]),
        (whole if x.log else magnitude)(x.key, x.key, lambda row: row[1]),  # counts lie on logarithmic axes
        with_ends(y.key, y.key, lambda row: row[2]),
    )
    marks = (*under, Mark("bars", lo=f"{y.key}_lo", hi=f"{y.key}_hi"), Mark("points"))
    return drawn(view.table(title, numbers), Chart(x, y, marks, "series"), *words, origin)


def residual_figure(
    name: str,
    title: str,
    rows: Sequence[_Left],
    legend: str,
    says: str,
    origin: Origin,
    axis: Axis = Axis.S,
    by: SizeBy = SizeBy.total,
) -> Figure:
    """The residuals of laws, ln y minus the law, along their axis.

    Args:
        name: of the figure.
        title: of the figure.
        rows: one a point: series, size, run, ln y minus law.
        legend: the title of the legend.
        says: what can be seen, for those who cannot see it.
        origin: where the numbers come from.
        axis: what the laws are in.
        by: which parameters S counts.
    """
    columns: tuple[Column[_Left] | Sequence[Column[_Left]], ...] = (
        text(legend, "series", lambda row: row[0]),
        text("size", "size", lambda row: row[1]),
        place(lambda row: row[2]),
        decimal(_Y.title, _Y.key, lambda row: row[3], 5),
    )
    marks = (rule(residual_ln=0.0), Mark("line", look={"strokeWidth": 1}), Mark("points"))
    chart = Chart(scale_of(axis, by=by), _Y, marks, "series", legend, height=240)
    return drawn(View(name, columns).table(title, rows, axis=axis), chart, says, _CAPTION, origin)
