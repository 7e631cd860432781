"""Pictures of two steps: success against size with chance and the forecast, of each task by its best feature."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from rbpx.analyses.downstream.analysis import Downstream, TaskSteps
from rbpx.analyses.downstream.curves import best_of, curves_of
from rbpx.display.chart.drawing import S_TITLE, colour, data, linear, logarithmic, shape, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import decimal, named, sheet_of, span, whole
from rbpx.display.names import law_name
from rbpx.groups.question import spelled

__all__ = ["figures"]

_ORDER: Final = ("fitted", "predicted", "actual")


def figures(results: Sequence[Downstream]) -> list[Figure | Undrawn]:
    """A figure for each task of which success is known."""
    return [_figure(task) for result in results for task in result.tasks if task.values.has_success]


def _figure(task: TaskSteps) -> Figure | Undrawn:
    values, steps = task.values, best_of(task)
    name, title = f"forecast-{values.task}", f"Success forecast: {values.group.title}"
    if steps is None:
        return Undrawn(name, title, "No feature has both steps: they need 4 models or more, and one to predict.")
    curves = curves_of(task, steps)
    rows: list[dict[str, Any]] = [
        {"what": "fitted", "S": S, "y": y, "lo": None, "hi": None} for S, y in zip(curves.S, curves.y, strict=True)
    ]
    for each in curves.forecast:
        chained, actual = each.chained, each.actual
        rows.append({"what": "predicted", "S": each.S, "y": chained.value, "lo": chained.lo, "hi": chained.hi})
        if actual.value is not None:
            rows.append({"what": "actual", "S": each.S, "y": actual.value, "lo": actual.lo, "hi": actual.hi})
    x, y = logarithmic(alt.X, "S", S_TITLE), linear(alt.Y, "y", "success", zero=True)
    hue, form = colour("what", "", _ORDER), shape("what", "", _ORDER)
    base = alt.Chart(data(rows))
    layers = [
        base.mark_rule().encode(x=x, y=alt.Y("lo:Q"), y2="hi:Q", color=hue),
        base.mark_point().encode(
            x=x, y=y, color=hue, shape=form, tooltip=tips(what="what", S="S|.3~s", y="success|.3f")
        ),
    ]
    if values.chance is not None:
        rule = alt.Chart(data([{"y": values.chance}])).mark_rule(strokeDash=[4, 4], color="gray")
        layers.append(rule.encode(y=alt.Y("y:Q")))
    said = [
        f"predicted {each.chained.value:.3f} at S = {each.S:.3g}"
        + ("" if each.actual.value is None else f", actual {each.actual.value:.3f}")
        for each in curves.forecast
        if each.chained.value is not None
    ]
    of_feature = law_name(steps.values.name, steps.values.k)
    sheet = sheet_of(
        name, f"{title}: values",
        [("what", "what"), ("S", "S"), ("success", "success"), ("95 %", "lo hi")],
        [[named(r["what"]), whole(r["S"]), decimal(r["y"]), span(r["lo"], r["hi"])] for r in rows],
    )  # fmt: skip
    caption = f"Two steps by {of_feature}. Bars: 95 %, of one new model. Dashes: chance."
    sql = spelled("runs_of_text", dataset=values.task)
    run_ids = tuple(values.group.run_ids)
    return Figure(name, title, f"{'; '.join(said)}.", caption, spec_of(alt.layer(*layers)), sheet, sql, run_ids)
