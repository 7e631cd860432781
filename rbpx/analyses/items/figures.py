"""Items drawn: accuracy, or what greedy decoding gives, and exact match at each k against S, with chance."""

from collections.abc import Sequence

from rbpx.analyses.items.analysis import GroupItems
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Figure, Origin, Undrawn, drawn
from rbpx.display.chart.marks import Chart, Scale, bars, line, points, rule, scale_of
from rbpx.display.column import text, whole, with_ends
from rbpx.display.view import View
from rbpx.groups.question import spelled
from rbpx.laws.interval import Estimate
from rbpx.laws.names import Axis

_Point = tuple[str, float, Estimate]  # what is a success, S, its share


def figures(results: Sequence[GroupItems], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """One figure of each task; none of texts."""
    none = Undrawn("success", "Success against size", "Texts that are read whole have no items.")
    return [_figure(items, rows) for items in results if (rows := _points(items))] or [none]


def _points(items: GroupItems) -> list[_Point]:
    """Of all items, then the accuracy of each slice."""
    found, kind = list[_Point](), "greedy" if items.runs[0].scores.chance is None else "accuracy"
    for each in items.runs:
        S = each.run.non_embedding_params
        found.append((kind if each.part is None else f"{kind}, {each.part}", S, each.scores.acc))
        if each.part is None:
            matches = [match for match in each.matches if kind != "greedy" or match.k != 1]
            found += [(f"exact match at {match.k:,}", S, match.measured) for match in matches]
    series = list(dict.fromkeys(name for name, _, share in found if share.value is not None))[:MOST_SERIES]
    return [point for name in series for point in found if point[0] == name and point[2].value is not None]


def _figure(items: GroupItems, rows: Sequence[_Point]) -> Figure:
    group, chance = items.group, items.runs[0].scores.chance
    view = View[_Point](
        f"success-{group.first.dataset}",
        (
            text("of", "series", lambda point: point[0]),
            whole("S", "S", lambda point: point[1]),
            with_ends("share", "share", lambda point: point[2]),
        ),
    )
    of_first = [(S, share.value or 0.0) for name, S, share in rows if name == rows[0][0]]
    (S_0, first), (S_1, last) = of_first[0], of_first[-1]
    guess = "" if chance is None else f"; guessing gets {chance:.3f}"
    marks = (bars("share_lo", "share_hi"), line(look={"opacity": 0.5}), points())
    return drawn(
        view.table(f"Success against size on {group.first.dataset}", rows),
        Chart(
            scale_of(Axis.S, "S"), Scale("share", "share of items", zero=True),
            marks if chance is None else (rule("chance", share=chance), *marks), "series",
        ),
        f"{rows[0][0]} goes from {first:.3f} at S = {S_0:.3g} to {last:.3f} at {S_1:.3g}{guess}.",
        "Bars: 95 %, over items." + ("" if chance is None else " Dashes: chance."),
        Origin(
            spelled("item_scores", run_id=group.runs[-1].run_id, ties=group.ties.value), tuple(group.run_ids)
        ),
    )  # fmt: skip
