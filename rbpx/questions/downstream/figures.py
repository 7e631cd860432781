"""Draws both steps of the best feature of each task. Source: arXiv 2412.04403 (OLMo ladder)."""

from collections.abc import Iterator, Sequence

import numpy as np

from rbpx.display.chart.figure import Figure, Origin, Scale, Undrawn, line, rule, scale_of
from rbpx.display.chart.laws import series_figure
from rbpx.display.law_columns import estimate_in
from rbpx.display.vocabulary import law_title
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Axis
from rbpx.questions.downstream.steps import TaskSteps
from rbpx.questions.downstream.trainings import means
from rbpx.runs.origin import spelled

_STEPS = 40  # points of a sigmoid


def figures(tasks: Sequence[tuple[TaskSteps, Sequence[tuple[str, int | None]]]]) -> list[Figure | Undrawn]:
    """Two figures for each task, which comes with its features, best first."""
    none = Undrawn("forecast", "Forecast of success", "No task has a known success.")
    return [figure for task, best in tasks if task.values.has_success for figure in _of_task(task, best)] or [none]


def _of_task(task: TaskSteps, best: Sequence[tuple[str, int | None]]) -> Iterator[Figure | Undrawn]:
    values, name = task.values, task.values.task
    forecast, usable = f"Forecast of success on {name}", {each.name: each for each in task.steps if each.rows}
    steps = next((usable[of] for of in [*best, *usable] if of in usable and usable[of].sigmoid is not None), None)
    if steps is None or steps.sigmoid is None:
        why = "No feature has both steps: they need 4 models or more, and one to predict."
        yield Undrawn(f"forecast-{name}", forecast, why)
        return
    of_T = [training.at[-1:] for training in task.parts.fitted]
    S_T, x_T, y_T = (
        [each.S for each in task.parts.fitted],
        *(means(of_T, of) for of in (steps.values.y_N, values.success_R)),
    )
    fitted = [(S, x, Estimate(y)) for S, x, y in zip(S_T, x_T, y_T, strict=True) if np.isfinite(x + y)]
    of_new = {key: [(row, estimate_in(row, key)) for row in steps.rows if row[key] is not None]
              for key in ("chained_predicted", "actual")}  # fmt: skip
    new = of_new["chained_predicted"]
    in_S = [("fitted", S, y) for S, _, y in fitted] + [("predicted", row["S"], y) for row, y in new]
    in_S += [("actual", row["S"], y) for row, y in of_new["actual"]]
    in_x = [("fitted, sigmoid", x, y) for _, x, y in fitted]
    in_x += [("held out", row["step1_actual"], y) for row, y in of_new["actual"] if row["step1_actual"] is not None]
    reach = [x for _, x, _ in in_x] + [row["step1_predicted"] for row, _ in new]
    curve = [{"series": "fitted, sigmoid", "feature": x, "success": steps.sigmoid(x)}
             for x in np.linspace(min(reach, default=0.0), max(reach, default=0.0), _STEPS).tolist()]  # fmt: skip
    said = "; ".join(f"predicted {y.value:.3f} at S = {row['S']:.3g}" for row, y in new)
    chance, y = rule(success=values.chance or 0.0), Scale("success", "success", least=0.0)
    origin, feature = Origin(spelled("runs_of_text", dataset=name), tuple(values.group.run_ids)), law_title(*steps.name)
    words = (f"{said}.", f"Two steps by {feature}. Bars: 95 %, for one new model. Dashes: chance.")
    yield series_figure(f"forecast-{name}", forecast, in_S, scale_of(Axis.S, "S"), y, words, origin, [chance])
    words = (
        f"Success against {feature}: a sigmoid through {len(fitted)} trainings.",
        f"Success = a / (1 + exp(−h·(x − x0))) + b of the feature x, {feature}. Bars: 95 %, over items.",
    )
    x = Scale("feature", feature)
    yield series_figure(f"step2-{name}", f"Step 2 on {name}", in_x, x, y, words, origin, [chance, line(curve)])
