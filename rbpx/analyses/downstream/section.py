"""Tasks in two steps in the report: forecasts of success, and which feature predicts it best."""

from collections.abc import Sequence

from rbpx.analyses.downstream.analysis import Downstream
from rbpx.analyses.downstream.figure import figures
from rbpx.display.chart.figure import Undrawn
from rbpx.display.chart.sheet import Cell, Sheet, decimal, named, sheet_of, span, state, whole
from rbpx.display.names import law_name
from rbpx.display.section import Section, Sources, doubts_of, interval

__all__ = ["section"]


def section(results: Sequence[Downstream], sources: Sources) -> Section:
    """All tasks of one family."""
    statuses = [
        (f"{law_name(steps.values.name, steps.values.k)} on {task.values.task}", each.status)
        for result in results
        for task in result.tasks
        for steps in task.features
        for each in steps.predictions
    ]
    none = Undrawn("forecast", "Success forecast", "No task has a success that is known.")
    return Section(
        "downstream",
        f"Tasks in two steps, {results[0].group.first.family}",
        tuple(line for result in results for line in _sentences(result)),
        tuple(figures(results)) or (none,),
        tuple(sheet for sheet in (_predictions(results), _contest(results)) if sheet.rows),
        doubts_of(statuses),
    )


def _sentences(result: Downstream) -> list[str]:
    said = []
    for task in result.tasks:
        if task.contestants:
            best = task.contestants[0]
            error = interval(best.error.value, best.error.lo, best.error.hi)
            name = law_name(best.feature, best.k)
            said.append(f"{task.values.group.title}: {name} ({best.way}) predicts best, mean error {error}.")
    return said


def _predictions(results: Sequence[Downstream]) -> Sheet:
    rows: list[list[Cell]] = []
    for result in results:
        for task in result.tasks:
            for steps in task.features:
                for each in steps.predictions:
                    row = [named(task.values.task), named(law_name(steps.values.name, steps.values.k))]
                    row += [named(each.size), whole(each.S), decimal(each.step1.value), decimal(each.feature)]
                    row += [decimal(each.step2.value, 3), decimal(each.chained.value, 3)]
                    row += [span(each.chained.lo, each.chained.hi, 3), decimal(each.actual.value, 3)]
                    rows.append([*row, state(each.status)])
    columns = [("task", "task"), ("feature", "feature"), ("model", "size"), ("S", "S"), ("step 1", "step1_predicted")]
    columns += [("own", "step1_actual"), ("step 2", "step2_predicted"), ("chained", "chained_predicted")]
    columns += [("95 %", "chained_predicted_lo chained_predicted_hi"), ("actual", "actual"), ("status", "status")]
    note = "Chained: step 2 of step 1's answer, for models that neither has seen, with the interval of one new model."
    return sheet_of("predictions", "Both steps, and the chain", columns, rows, note)


def _contest(results: Sequence[Downstream]) -> Sheet:
    rows: list[list[Cell]] = []
    for result in results:
        judged = [(task.values.task, task.contestants) for task in result.tasks]
        for name, contestants in [*judged, ("all tasks", result.overall)]:
            for each in contestants:
                row = [named(name), named(law_name(each.feature, each.k)), named(each.way)]
                row += [decimal(each.error.value, 3), span(each.error.lo, each.error.hi, 3)]
                row += [decimal(each.difference.value, 3), span(each.difference.lo, each.difference.hi, 3)]
                rows.append([*row, decimal(each.decisions.value, 2)])
    columns = [("task", "task"), ("feature", "feature"), ("way", "way"), ("mean error", "mean_error")]
    columns += [("95 %", "mean_error_lo mean_error_hi"), ("less that of CE", "difference")]
    columns += [("95 % of that", "difference_lo difference_hi"), ("pairs in order", "decisions")]
    note = "Mean of |chained less actual| over the models held out; intervals over items, the same for every feature."
    return sheet_of("features", "Which feature predicts best", columns, rows, note)
