"""Draws items: accuracy, or what greedy decoding gives, and exact match at each k against S, with chance."""

from collections.abc import Iterator, Sequence

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Figure, Origin, Scale, Undrawn, line, rule, scale_of
from rbpx.display.chart.laws import series_figure
from rbpx.display.law_columns import estimate_in
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Axis
from rbpx.runs.group import Group
from rbpx.runs.origin import spelled
from rbpx.store.store import Record

_Point = tuple[str, float, Estimate]  # what is a success, S, its share


def figures(tasks: Sequence[tuple[Group, Sequence[Record]]]) -> list[Figure | Undrawn]:
    """Draw a figure for each task of which the rows are given; texts have none."""
    none = Undrawn("success", "Success against size", "Texts that are read whole have no items.")
    known = [(group, rows[0]["chance"], _points(rows)) for group, rows in tasks]
    return [_figure(*task) for task in known if task[-1]] or [none]


def _points(rows: Sequence[Record]) -> list[_Point]:
    """The shares of success over all items, and the accuracy in each slice."""
    found = [point for row in rows for point in _point(row, "greedy" if rows[0]["chance"] is None else "accuracy")]
    series = list(dict.fromkeys(name for name, _, _ in found))[:MOST_SERIES]
    return [point for name in series for point in found if point[0] == name]


def _point(row: Record, kind: str) -> Iterator[_Point]:
    name, key = kind if row.get("slice") is None else f"{kind}, {row['slice']}", "acc"
    if row["kind"] == "exact_match":
        name, key = f"exact match at {row['k']:,}", "measured"
        if row["slice"] is not None or (kind == "greedy" and row["k"] == 1):  # the same as greedy
            return
    if row.get(key) is not None:
        yield name, row["non_embedding_params"], estimate_in(row, key)


def _figure(group: Group, chance: float | None, shares: Sequence[_Point]) -> Figure:
    of_first = [(S, share.value or 0.0) for name, S, share in shares if name == shares[0][0]]
    (S_0, first), (S_1, last) = of_first[0], of_first[-1]
    said = f"{shares[0][0]} goes from {first:.3f} at S = {S_0:.3g} to {last:.3f} at {S_1:.3g}"
    words, under = (f"{said}.", "Bars: 95 %, over items."), [line(look={"opacity": 0.5})]
    if chance is not None:
        words = (f"{said}; guessing gets {chance:.3f}.", f"{words[1]} Dashes: chance.")
        under = [rule("chance", share=chance), *under]
    sql = spelled("item_scores", run_id=group.runs[-1].run_id, ties=group.ties.value)
    return series_figure(
        f"success-{group.first.dataset}",
        f"Success against size on {group.first.dataset}",
        shares,
        scale_of(Axis.S, "S"),
        Scale("share", "share of items", zero=True),
        words,
        Origin(sql, tuple(group.run_ids)),
        under,
    )
