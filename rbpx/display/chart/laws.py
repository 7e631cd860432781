"""Power laws drawn: the points of each, its line, and the band in which new models would lie; and single numbers."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from rbpx.display.chart.figure import Figure, Origin, Undrawn, drawn
from rbpx.display.chart.marks import Chart, Mark, Scale, bars, curve, line, points
from rbpx.display.column import Bounded, Column, decimal, magnitude, text, whole, with_ends
from rbpx.display.view import View
from rbpx.laws.power_fit import PowerLawFit

__all__ = ["law_figure", "series_figure"]

_Point = tuple[str, str | None, float, float]
_SIZE: Final[Column[_Point]] = text("size", "size", lambda point: point[1])
_MOST_ON_A_LINE: Final = 2  # places of a curve that is straight on logarithmic axes and has no band


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
    marks = (*([Mark("band", rows)] if band and rows else []), *([line(rows)] if rows else []), points())
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
    marks = (*under, bars(f"{y.key}_lo", f"{y.key}_hi"), points())
    return drawn(view.table(title, numbers), Chart(x, y, marks, "series"), *words, origin)
