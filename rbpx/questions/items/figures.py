"""Draws accuracy, or greedy success, and exact match against S."""

from collections.abc import Sequence

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Figure, Origin, Scale, Undrawn, line, rule, scale_of
from rbpx.display.chart.laws import series_figure
from rbpx.display.law_columns import estimate_in
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Axis
from rbpx.runs.group import Group
from rbpx.runs.origin import spelled
from rbpx.store.store import Record


def figures(tasks: Sequence[tuple[Group, Sequence[Record]]]) -> list[Figure | Undrawn]:
    """Draws each task whose rows are given; texts have no figure."""
    none = Undrawn("success", "Success against size", "Texts that are read whole have no items.")
    return [_figure(group, rows) for group, rows in tasks if rows[0]["acc"] is not None] or [none]


def _figure(group: Group, rows: Sequence[Record]) -> Figure:
    chance, shares = rows[0]["chance"], dict[str, list[tuple[str, float, Estimate]]]()
    kind = "greedy" if chance is None else "accuracy"
    for row in rows:
        name, key = kind if row.get("slice") is None else f"{kind}, {row['slice']}", "acc"
        if row["kind"] == "exact_match":
            name, key = f"exact match at {row['k']:,}", "measured"
        is_same = row["kind"] == "exact_match" and (row["slice"] or (kind == "greedy" and row["k"] == 1))
        if row.get(key) is not None and not is_same:
            shares.setdefault(name, []).append((name, row["non_embedding_params"], estimate_in(row, key)))
    (_, S_0, first), (_, S_1, last) = shares[kind][0], shares[kind][-1]
    words = (f"{kind} goes from {first.value:.3f} at S = {S_0:.3g} to {last.value:.3f} at {S_1:.3g}.",
             "Bars: 95 %, over items. Dashes: chance, where there is one.")  # fmt: skip
    return series_figure(
        f"success-{group.first.dataset}",
        f"Success against size on {group.first.dataset}",
        [point for series in [*shares.values()][:MOST_SERIES] for point in series],
        scale_of(Axis.S, "S"),
        Scale("share", "share of items", least=0.0),
        words,
        Origin(spelled("item_scores", run_id=group.runs[-1].run_id, ties=group.ties.value), tuple(group.run_ids)),
        [*([] if chance is None else [rule(share=chance)]), line(look={"opacity": 0.5})],
    )
