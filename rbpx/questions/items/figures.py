"""Draws items: accuracy, or what greedy decoding gives, and exact match at each k against S, with chance."""

from collections.abc import Sequence

from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.figure import Figure, Origin, Scale, Undrawn, line, rule, scale_of
from rbpx.display.chart.laws import series_figure
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Axis
from rbpx.questions.items.analysis import GroupItems
from rbpx.runs.origin import spelled

_Point = tuple[str, float, Estimate]  # what is a success, S, its share


def figures(results: Sequence[GroupItems], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """Draw a figure for each task; texts have none."""
    none = Undrawn("success", "Success against size", "Texts that are read whole have no items.")
    return [_figure(items, rows) for items in results if (rows := _points(items))] or [none]


def _points(items: GroupItems) -> list[_Point]:
    """The shares of success over all items, and the accuracy in each slice."""
    found, kind = list[_Point](), "greedy" if items.runs[0].scores.chance is None else "accuracy"
    for each in items.runs:
        S = each.run.non_embedding_params
        found.append((kind if each.part is None else f"{kind}, {each.part}", S, each.scores.acc))
        if each.part is None:
            matches = [match for match in each.matches if kind != "greedy" or match.k != 1]
            found += [(f"exact match at {match.k:,}", S, match.measured) for match in matches]
    series = list(dict.fromkeys(name for name, _, share in found if share.value is not None))[:MOST_SERIES]
    return [point for name in series for point in found if point[0] == name and point[2].value is not None]


def _figure(items: GroupItems, shares: Sequence[_Point]) -> Figure:
    group, chance, of = items.group, items.runs[0].scores.chance, shares[0][0]
    of_first = [(S, share.value or 0.0) for name, S, share in shares if name == of]
    (S_0, first), (S_1, last) = of_first[0], of_first[-1]
    said = f"{of} goes from {first:.3f} at S = {S_0:.3g} to {last:.3f} at {S_1:.3g}"
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
