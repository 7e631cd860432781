"""Pictures of items: accuracy, or exact match at each k, against S, with intervals over items and chance."""

from typing import Any

import altair as alt

from rbpx.analyses.items.analysis import GroupItems
from rbpx.analyses.items.curves import success_curves
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.drawing import S_TITLE, colour, data, linear, logarithmic, shape, spec_of, tips
from rbpx.display.chart.figure import Figure
from rbpx.display.chart.sheet import decimal, named, sheet_of, span, whole
from rbpx.groups.question import spelled

__all__ = ["figures"]


def figures(items: GroupItems) -> list[Figure]:
    """One figure of a group of items; none of texts."""
    curves = success_curves(items)[:MOST_SERIES]
    rows: list[dict[str, Any]] = [
        {"series": curve.name, "S": S, "y": y, "lo": lo, "hi": hi}
        for curve in curves
        for S, y, lo, hi in zip(curve.S, curve.y, curve.lo, curve.hi, strict=True)
    ]
    if not rows:
        return []
    order, chance = [curve.name for curve in curves], items.runs[0].scores.chance
    x, y = logarithmic(alt.X, "S", S_TITLE), linear(alt.Y, "y", "share of items", zero=True)
    tooltip = tips(series="of", S="S|.3~s", y="share|.3f", lo="95 % from|.3f", hi="to|.3f")
    hue, form = colour("series", "", order), shape("series", "", order)
    base = alt.Chart(data(rows))
    layers = [
        base.mark_rule().encode(x=x, y=alt.Y("lo:Q"), y2="hi:Q", color=hue),
        base.mark_line(opacity=0.5).encode(x=x, y=y, color=hue),
        base.mark_point().encode(x=x, y=y, color=hue, shape=form, tooltip=tooltip),
    ]
    if chance is not None:
        rule = alt.Chart(data([{"y": chance}])).mark_rule(strokeDash=[4, 4], color="gray")
        layers.append(rule.encode(y=alt.Y("y:Q")))
    first, last = (curves[0].y[at] for at in (0, -1))
    said = f"{order[0]} goes from {first:.3f} at S = {curves[0].S[0]:.3g} to {last:.3f} at {curves[0].S[-1]:.3g}"
    guess = "" if chance is None else f"; guessing gets {chance:.3f}"
    sheet = sheet_of(
        "success", "Success against size: values",
        [("of", "series"), ("S", "S"), ("share", "share"), ("95 %", "lo hi")],
        [[named(r["series"]), whole(r["S"]), decimal(r["y"]), span(r["lo"], r["hi"])] for r in rows],
    )  # fmt: skip
    caption = "Bars: 95 %, over items. Dashes: chance." if chance is not None else "Bars: 95 %, over items."
    run_ids = tuple(items.group.run_ids)
    sql = spelled("item_scores", run_id=items.group.runs[-1].run_id, ties=items.group.ties.value)
    title = f"Success against size: {items.group.title}"
    return [Figure("success", title, f"{said}{guess}.", caption, spec_of(alt.layer(*layers)), sheet, sql, run_ids)]
