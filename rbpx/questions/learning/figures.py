"""Draws misses with the share of tokens that are not learned yet."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rbpx.display.chart.figure import Chart, Figure, Scale, Undrawn, drawn, line, points, scale_of
from rbpx.display.table import table_of
from rbpx.display.vocabulary import short
from rbpx.questions.learning.tables import LearningRows
from rbpx.runs.origin import from_shares
from rbpx.status import Status

_LEFT: Final = table_of("left", ("share", "series"), ("{x}", "x", short), ("of tokens", "share", ".1%"))


def figures(parts: Sequence[LearningRows]) -> Iterator[Figure | Undrawn]:
    """Draws the figure of each group; with several, each title names its group."""
    for at, found in enumerate(parts):
        each = _left(found)
        named = replace(each, name=f"{each.name}-{at}", title=f"{each.title}: {found.group.title}")
        yield named if len(parts) > 1 else each


def _left(found: LearningRows) -> Figure | Undrawn:
    (group,), about = found.of("group"), found.group.title
    grid = [row["k"] for row in found.of("tokens")]
    if not grid:
        return Undrawn(_LEFT.name, "Misses, and what is not learned yet", Status(group["status"]).remedy)
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
        _LEFT.of(f"Misses, and what is not learned yet, k = {k}", rows, axis=axis),
        Chart(scale_of(axis, "x"), y, (line(), points()), "series", "share"),
        f"The misses of {about} at k = {k}, tokens that are not hits for good, and that change yet.",
        "Between the first two: hits that are lost again later. At the last point nothing comes later, so they meet.",
        from_shares(found.group, [k]),
    )
