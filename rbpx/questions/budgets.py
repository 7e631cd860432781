"""Figures of equal compute, which several questions draw: IsoFLOP curves, and the best size of each budget."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rbpx.display.chart.figure import Chart, Figure, Mark, Origin, Rows, Scale, bars, drawn, line, points, scale_of
from rbpx.display.view import View, magnitude, text, with_ends
from rbpx.display.vocabulary import short
from rbpx.laws.names import Axis
from rbpx.runs.points.surfaces import Trained
from rbpx.store.store import Record

RING: Final = {"filled": False, "color": "gray"}


DOTS: Final = {"strokeDash": [1, 4], "strokeWidth": 3, "color": "gray"}


ISOFLOP: Final = View[Record](
    "isoflop", text("budget", "budget"), text("shown", "shown"), [magnitude(name, name) for name in "Sy"]
)


OPTIMUM: Final = View[Record](
    "optimum",
    text("shown", "shown"),
    magnitude("C", "C"),
    with_ends("best S", "S", None, short),
    with_ends("best D", "D", None, short),
)


def of_quantity(each: Any, trained: Trained) -> Any:
    """One of the figures of a quantity, named after it."""
    return replace(each, name=f"{each.name}-{trained.law}{trained.k or ''}", title=f"{each.title}: {trained.title}")


def scale_of_y(trained: Trained) -> Scale:
    """The axis of a quantity."""
    return Scale("y", trained.title, log=trained.sign == 1)


def scale_of_S(trained: Trained) -> Scale:
    """The axis of sizes."""
    return scale_of(Axis.S, "S", trained.members[0].size_by)


def of_budget(C: float, S: Iterable[float], y: Iterable[float]) -> list[Record]:
    """Sizes of a budget and what they show, as rows of `isoflop_figure`."""
    return [{"budget": f"C = {short(C)}", "S": at, "y": of} for at, of in zip(S, y, strict=True)]


def isoflop_figure(
    title: str,
    trained: Trained,
    ran: Sequence[Record],
    curves: Sequence[Record],
    minima: Sequence[Record],
    caption: str,
    origin: Origin,
) -> Figure:
    """What sizes show at equal compute: runs, curves through them, and the least of each curve in a ring."""
    curves, ran, minima = (
        [row | {"shown": what, "y": trained.sign * row["y"]} for row in rows]
        for what, rows in (("curve", curves), ("runs", ran), ("minimum", minima))
    )
    ring = points(rows=minima, plain=True, look={**RING, "size": 200, "shape": "circle"})
    least = "; ".join(f"{row['budget']}: least y at S = {short(row['S'])}" for row in minima)
    return drawn(
        ISOFLOP.table(title, [*ran, *minima]),
        Chart(
            scale_of_S(trained),
            scale_of_y(trained),
            (line(curves), points(rows=ran), *([ring] if minima else [])),
            "budget",
            height=340,
        ),
        f"{least or 'no minimum lies between sizes'}.",
        caption,
        origin,
    )


def optimum_figure(title: str, shown: Mapping[str, Sequence[Record]], caption: str, origin: Origin) -> Figure:
    """The best size of each compute: a line with its band of the first that is shown, points with bars of others."""
    table = OPTIMUM.table(title, [{"shown": what, **row} for what, rows in shown.items() for row in rows])
    along = next(iter(shown.values()))
    of_line, beside = table.records()[: len(along)], table.records()[len(along) :]
    marks = [Mark("band", _bounded(of_line), "S_lo", "S_hi"), line(of_line)]
    marks += [bars("S_lo", "S_hi", rows=_bounded(beside)), points(rows=beside)]
    return drawn(
        table,
        Chart(
            scale_of(Axis.C),
            Scale("S", "best S", log=True, form="~s"),
            tuple(mark for mark in marks if mark.rows),
            "shown",
        ),
        f"The best size goes from {short(along[0]['S'])} at {short(along[0]['C'])} FLOPs to "
        f"{short(along[-1]['S'])} at {short(along[-1]['C'])}.",
        caption,
        origin,
    )


def _bounded(rows: Rows) -> Rows:
    return [row for row in rows if row["S_lo"] is not None and row["S_hi"] is not None]
