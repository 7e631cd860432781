"""Draws the spectrum of times, the rebuilt slope, and misses with the share of tokens not learned."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rbpx.display.chart.figure import (
    Chart,
    Figure,
    Origin,
    Scale,
    Undrawn,
    bars,
    drawn,
    line,
    points,
    scale_of,
)
from rbpx.display.view import View, decimal, magnitude, share, text
from rbpx.display.vocabulary import short
from rbpx.laws.learning.curves import FEWEST
from rbpx.questions.learning.tables import NATS, LearningRows
from rbpx.runs.origin import from_shares, spelled
from rbpx.store.store import Record

_SLOPE: Final = View[Record](
    "slope", text("slope", "series"), magnitude("{x}", "x"), decimal("nats per unit of ln {x}", "slope", digits=3)
)
_SPECTRUM: Final = View[Record]("spectrum", text("time", "time"), NATS)
_LEFT: Final = View[Record]("left", text("share", "series"), magnitude("{x}", "x"), share("of tokens", "share"))
_WHEN: Final = "When cross-entropy falls, by the time of each token"


def figures(parts: Sequence[LearningRows]) -> Iterator[Figure | Undrawn]:
    """Draws the figures of each group; with several, each title names its group."""
    for at, found in enumerate(parts):
        for each in _figures(found):
            named = replace(each, name=f"{each.name}-{at}", title=f"{each.title}: {found.group.title}")
            yield named if len(parts) > 1 else each


def _figures(found: LearningRows) -> Iterator[Figure | Undrawn]:
    if found.of("bin"):
        yield _spectrum(found)
        yield _slopes(found)
    else:
        why = f"Sigmoids need {FEWEST} points, and there are {len(found.runs)}: measure more (model.revision=all)."
        yield Undrawn(_SPECTRUM.name, _WHEN, why)
    if found.of("point"):
        yield _left(found)


def _tokens(found: LearningRows) -> Origin:
    run_ids = [run.run_id for run in found.runs]
    of_runs = [spelled("learning_tokens", run_id=run_id, ties=found.group.ties.value) for run_id in run_ids]
    return Origin("\nUNION ALL\n".join(of_runs), tuple(run_ids))


def _spectrum(found: LearningRows) -> Figure:
    rows = [row | {"time": f"{short(row['lo'])} to {short(row['hi'])}"} for row in found.of("bin")]
    largest = max(rows, key=lambda row: row["nats"] or 0.0)
    x, names = found.group.axis.value, tuple(row["time"] for row in rows)
    marks = bars("nats_lo", "nats_hi"), points(look={"size": 90})
    return drawn(
        _SPECTRUM.table(_WHEN, rows, axis=found.group.axis),
        Chart(Scale("nats", "nats a token", zero=True), Scale("time", x, names=names), marks),
        f"Most of the fall of cross-entropy of {found.group.title} is of tokens whose time is {largest['time']}.",
        f"What the sigmoids of tokens fall, by the {x} at which half of that is done; bars: 95 %, documents.",
        _tokens(found),
    )


def _slopes(found: LearningRows) -> Figure:
    axis, told = found.group.axis, [row["r2_sigmoid"] for row in found.of("world")]
    rows = [
        {"series": series, "x": (row["lo"] * row["hi"]) ** 0.5, "slope": row[key]}
        for series, key in (("measured", "measured"), ("sigmoids", "rebuilt_sigmoid"), ("a line", "rebuilt_line"))
        for row in found.of("slope")
    ]
    y = Scale("slope", f"nats per unit of ln {axis}", zero=True)
    r2 = " and ".join("–" if each is None else f"{each:.2f}" for each in told)
    return drawn(
        _SLOPE.table("The slope of cross-entropy, rebuilt at points left out", rows, axis=axis),
        Chart(scale_of(axis, "x"), y, (points(),), "series", "slope"),
        f"The slope of cross-entropy of {found.group.title}, and of single sigmoids at points they were not fitted to: "
        f"R² = {r2}, measured and in a drawn world without steps.",
        f"Slopes between neighbouring {axis}, one of which the fits and a line between neighbours left out.",
        _tokens(found),
    )


def _left(found: LearningRows) -> Figure:
    grid = [row["k"] for row in found.of("tokens")]
    k, axis = grid[len(grid) // 2], found.group.axis
    by_point = found.of("point", k=k)
    shown = {f"misses, 1 − RBP_{k}": "rbp", "not learned yet": "learned", "may change yet": "settled"}
    rows = [
        {"series": series, "x": row["x"], "share": 1 - (row[name] or 0.0)}
        for series, name in shown.items()
        for row in by_point
        if name != "settled" or row[name] < 1
    ]
    y = Scale("share", "share of tokens", log=True, form="%")
    return drawn(
        _LEFT.table(f"Misses, and what is not learned yet, k = {k}", rows, axis=axis),
        Chart(scale_of(axis, "x"), y, (line(), points()), "series", "share"),
        f"The misses of {found.group.title} at k = {k}, tokens that are not hits for good, and that change yet.",
        "Between the first two: hits that are lost again later. At the last point nothing comes later, so they meet.",
        from_shares(found.group, [k]),
    )
