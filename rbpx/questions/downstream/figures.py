"""Figures of both steps by the best feature of each task: the forecast of success against size, and step 2.

Source: arXiv 2412.04403 (OLMo ladder).
"""

import math
from collections.abc import Sequence

import numpy as np

from rbpx.display.chart.figure import Figure, Origin, Scale, Undrawn, line, rule, scale_of
from rbpx.display.chart.laws import series_figure
from rbpx.display.vocabulary import law_title
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Axis
from rbpx.questions.downstream.analysis import Downstream, TaskSteps
from rbpx.questions.downstream.steps import FeatureSteps
from rbpx.questions.downstream.trainings import averages, means
from rbpx.runs.origin import spelled

_Point = tuple[str, float, Estimate]  # its series, its place on the axis, its success
_STEPS = 40  # along a sigmoid


def figures(results: Sequence[Downstream], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """Two figures for each task whose success is known."""
    tasks = [task for result in results for task in result.tasks if task.values.has_success]
    none = Undrawn("forecast", "Forecast of success", "No task has a known success.")
    return [figure for task in tasks for figure in _of_task(task)] or [none]


def _best(task: TaskSteps) -> FeatureSteps | None:
    """The feature that predicted best, else the first that has both steps; None where none has."""
    usable = {(s.values.name, s.values.k): s for s in task.features if s.sigmoid is not None and s.predictions}
    judged = [usable[each.feature, each.k] for each in task.contestants if (each.feature, each.k) in usable]
    return next(iter([*judged, *usable.values()]), None)


def _fitted(task: TaskSteps, steps: FeatureSteps) -> list[tuple[float, float, Estimate]]:
    """S, feature and success of the last checkpoint of each fitted training."""
    of_TR = averages(task.parts.fitted, len(task.values.success_R), 1)
    x_T, y_T = (means(of_TR, of_R).tolist() for of_R in (steps.values.x_R, task.values.success_R))
    S_T = [training.S for training in task.parts.fitted]
    known = [at for at in zip(S_T, x_T, y_T, strict=True) if all(map(math.isfinite, at))]
    return [(S, x, Estimate(y, None, None)) for S, x, y in known]


def _of_task(task: TaskSteps) -> list[Figure | Undrawn]:
    values, steps = task.values, _best(task)
    forecast, second = f"Forecast of success on {values.task}", f"Step 2 on {values.task}"
    if steps is None or steps.sigmoid is None:
        why = "No feature has both steps: they need 4 models or more, and one to predict."
        return [Undrawn(f"forecast-{values.task}", forecast, why)]
    feature, sigmoid = law_title(steps.values.name, steps.values.k), steps.sigmoid.sigmoid
    fitted = _fitted(task, steps)
    new = [each for each in steps.predictions if each.chained.value is not None]
    known = [each for each in new if each.actual.value is not None]
    in_S: list[_Point] = [("fitted", S, y) for S, _, y in fitted]
    in_S += [("predicted", each.S, each.chained) for each in new]
    in_S += [("actual", each.S, each.actual) for each in known]
    in_x: list[_Point] = [("fitted, sigmoid", x, y) for _, x, y in fitted]
    in_x += [("held out", each.feature, each.actual) for each in known if each.feature is not None]
    ends = [x for _, x, _ in in_x] + [each.step1.value for each in new if each.step1.value is not None]
    x_L = np.linspace(min(ends), max(ends), _STEPS).tolist() if ends else []
    curve = [{"series": "fitted, sigmoid", "feature": x, "success": sigmoid(x)} for x in x_L]
    said = "; ".join(
        f"predicted {each.chained.value:.3f} at S = {each.S:.3g}"
        + ("" if each.actual.value is None else f", actual {each.actual.value:.3f}")
        for each in new
    )
    chance = rule("chance", success=values.chance or 0.0)
    origin = Origin(spelled("runs_of_text", dataset=values.task), tuple(values.group.run_ids))
    of_sizes = (f"{said}.", f"Two steps by {feature}. Bars: 95 %, for one new model. Dashes: chance.")
    of_features = (
        f"Success against {feature}: a sigmoid through {len(fitted)} trainings.",
        f"Success = a / (1 + exp(−h·(x − x0))) + b of the feature x, {feature}. Bars: 95 %, over items.",
    )
    S, x, y = scale_of(Axis.S, "S"), Scale("feature", feature), Scale("success", "success", zero=True)
    return [
        series_figure(f"forecast-{values.task}", forecast, in_S, S, y, of_sizes, origin, [chance]),
        series_figure(f"step2-{values.task}", second, in_x, x, y, of_features, origin, [chance, line(curve)]),
    ]
