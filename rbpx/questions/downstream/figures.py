"""Figures of both steps by the best feature of each task: the forecast of success against size, and step 2.

Source: arXiv 2412.04403 (OLMo ladder).
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from rbpx.display.chart.figure import Figure, Origin, Scale, Undrawn, line, rule, scale_of
from rbpx.display.chart.laws import series_figure
from rbpx.display.law_columns import estimate_in
from rbpx.display.vocabulary import law_title
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Axis
from rbpx.questions.downstream.steps import FeatureSteps, Task
from rbpx.questions.downstream.trainings import averages, means
from rbpx.runs.origin import spelled

_Point = tuple[str, float, Estimate]  # its series, its place on the axis, its success
_STEPS = 40  # along a sigmoid


def figures(tasks: Sequence[tuple[Task, Sequence[tuple[str, int | None]]]]) -> list[Figure | Undrawn]:
    """Two figures for each task whose success is known, which is given with its features, the best one first."""
    none = Undrawn("forecast", "Forecast of success", "No task has a known success.")
    return [figure for task, best in tasks if task.values.has_success for figure in _of_task(task, best)] or [none]


def _of_task(task: Task, best: Sequence[tuple[str, int | None]]) -> Iterator[Figure | Undrawn]:
    """By the feature that predicted best, else the first that has both steps."""
    values, name = task.values, task.values.task
    forecast, usable = f"Forecast of success on {name}", {each.name: each for each in task.steps if each.rows}
    usable = {key: each for key, each in usable.items() if each.sigmoid is not None}
    steps = next((usable[each] for each in [*best, *usable] if each in usable), None)
    if steps is None or steps.sigmoid is None:
        why = "No feature has both steps: they need 4 models or more, and one to predict."
        yield Undrawn(f"forecast-{name}", forecast, why)
        return
    feature, fitted = law_title(*steps.name), _fitted(task, steps)
    new = [row for row in steps.rows if row["chained_predicted"] is not None]
    known = [row for row in new if row["actual"] is not None]
    in_S: list[_Point] = [("fitted", S, y) for S, _, y in fitted]
    in_S += [("predicted", row["S"], estimate_in(row, "chained_predicted")) for row in new]
    in_S += [("actual", row["S"], estimate_in(row, "actual")) for row in known]
    in_x: list[_Point] = [("fitted, sigmoid", x, y) for _, x, y in fitted]
    in_x += [
        ("held out", row["step1_actual"], estimate_in(row, "actual"))
        for row in known
        if row["step1_actual"] is not None
    ]
    ends = [x for _, x, _ in in_x] + [row["step1_predicted"] for row in new if row["step1_predicted"] is not None]
    x_L = np.linspace(min(ends), max(ends), _STEPS).tolist() if ends else []
    curve = [{"series": "fitted, sigmoid", "feature": x, "success": steps.sigmoid.sigmoid(x)} for x in x_L]
    said = "; ".join(
        f"predicted {row['chained_predicted']:.3f} at S = {row['S']:.3g}"
        + ("" if row["actual"] is None else f", actual {row['actual']:.3f}")
        for row in new
    )
    chance, success = rule("chance", success=values.chance or 0.0), Scale("success", "success", zero=True)
    origin = Origin(spelled("runs_of_text", dataset=name), tuple(values.group.run_ids))
    words = (f"{said}.", f"Two steps by {feature}. Bars: 95 %, for one new model. Dashes: chance.")
    S = scale_of(Axis.S, "S")
    yield series_figure(f"forecast-{name}", forecast, in_S, S, success, words, origin, [chance])
    words = (
        f"Success against {feature}: a sigmoid through {len(fitted)} trainings.",
        f"Success = a / (1 + exp(−h·(x − x0))) + b of the feature x, {feature}. Bars: 95 %, over items.",
    )
    x, under = Scale("feature", feature), [chance, line(curve)]
    yield series_figure(f"step2-{name}", f"Step 2 on {name}", in_x, x, success, words, origin, under)


def _fitted(task: Task, steps: FeatureSteps) -> list[tuple[float, float, Estimate]]:
    """S, feature and success of the last checkpoint of each fitted training."""
    of_TR = averages(task.parts.fitted, len(task.values.success_R), 1)
    x_T, y_T = (means(of_TR, of_R).tolist() for of_R in (steps.values.x_R, task.values.success_R))
    known = zip([training.S for training in task.parts.fitted], x_T, y_T, strict=True)
    return [(S, x, Estimate(y)) for S, x, y in known if math.isfinite(x) and math.isfinite(y)]
