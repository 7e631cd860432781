"""Figures of laws, and of single numbers with intervals."""

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from rbpx.display.chart.figure import Chart, Figure, Mark, Origin, Scale, Undrawn, bars, curve, drawn
from rbpx.display.table import SIZE, Column, interval, table_of
from rbpx.display.vocabulary import short, whole
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.power.law import PowerLaw

_MOST_ON_A_LINE: Final = 2  # places of a curve that is straight on logarithmic axes and has no band


def law_figure(
    name: str,
    title: str,
    laws: Sequence[tuple[str, PowerLaw]],
    x: Scale,
    y: Scale,
    words: tuple[str, str],
    origin: Origin,
    *,
    legend: str = "",
    sizes: Mapping[float, str] | None = None,
    band: bool = True,
    within: Sequence[Sequence[Estimate]] = (),
) -> Figure | Undrawn:
    """The points and lines of some laws, named in the legend.

    `words` are what can be seen, for those who cannot see it, and the caption; `sizes` names the model at each place;
    `band` draws where 95 % of new models would lie, `within` the intervals of the points of each law.
    """
    has_ends = any(at.lo is not None for of in within for at in of)
    columns = [Column(legend or "law", "series"), *([] if sizes is None else [SIZE]), Column(x.title, x.key, whole)]
    columns += interval(y.title, y.key) if has_ends else [Column(y.title, y.key, ".4f")]
    on_axis = abs if y.log else float  # also of what is negative
    fitted, rows = list[dict[str, Any]](), list[dict[str, Any]]()
    for (series, fit), bounds in zip(laws, within or [()] * len(laws), strict=True):
        for of_x, value, at in zip_longest(fit.S, fit.y, bounds):
            if math.isfinite(value) and (value or not y.log):
                own = {f"{y.key}_lo": at.lo, f"{y.key}_hi": at.hi} if has_ends else {}
                of = {"series": series, "size": (sizes or {}).get(of_x), x.key: of_x, y.key: on_axis(value)}
                fitted.append(of | own)
        if fit.alpha.value is not None:
            for row in curve(fit, x.key, y.key, 12 if band else _MOST_ON_A_LINE):
                rows.append(
                    {"series": series, x.key: row.pop(x.key)}
                    | {key: on_axis(of) if isinstance(of, float) else of for key, of in row.items()}
                )
    marks = [Mark("band", rows)] if band and rows else []
    marks += [Mark("line", rows)] if rows else []
    marks += [bars(f"{y.key}_lo", f"{y.key}_hi")] if has_ends else []
    says, caption = words
    chart = Chart(x, y, (*marks, Mark("points")), "series", legend)
    return drawn(table_of(name, *columns).of(title, fitted), chart, says, caption, origin)


def series_figure(
    name: str,
    title: str,
    numbers: Sequence[tuple[str, float, Estimate]],
    x: Scale,
    y: Scale,
    words: tuple[str, str],
    origin: Origin,
    under: Sequence[Mark] = (),
) -> Figure:
    """Numbers with their intervals, each of a series at its place, over marks `under`; `words` as in `law_figure`."""
    at_x = Column(x.key, x.key, whole if x.log else short)  # counts lie on logarithmic axes
    values = table_of(name, ("of", "series"), at_x, *interval(y.key, y.key))
    rows = [
        {"series": series, x.key: at, y.key: of.value, f"{y.key}_lo": of.lo, f"{y.key}_hi": of.hi}
        for series, at, of in numbers
    ]
    marks = (*under, Mark("bars", lo=f"{y.key}_lo", hi=f"{y.key}_hi"), Mark("points"))
    return drawn(values.of(title, rows), Chart(x, y, marks, "series"), *words, origin)
