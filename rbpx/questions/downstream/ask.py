"""Answers `downstream` for each task, and ranks the features. Source: arXiv 2412.04403 (OLMo ladder)."""

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, Final

import duckdb

from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.table import STATUS, interval, table_of
from rbpx.display.vocabulary import amount, law_title, listed, number, short, size_name, whole
from rbpx.errors import RbpxError, number_of
from rbpx.questions.downstream import DownstreamKeys
from rbpx.questions.downstream.figures import figures
from rbpx.questions.downstream.steps import TaskSteps, fit_steps
from rbpx.questions.downstream.trainings import split
from rbpx.questions.question import OnPage, Question
from rbpx.questions.result import Result
from rbpx.runs.group import By, Group
from rbpx.runs.points.tasks import task_values
from rbpx.runs.select.groups import select
from rbpx.spelling import typed
from rbpx.status import Status
from rbpx.store.store import Record


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: DownstreamKeys) -> list[Result]:
    """Fits both steps to every task of every family.

    Raises:
        RbpxError: no group has a requested feature, or a task; or a chance is unknown.
    """
    by_family: dict[tuple[str, ...], list[TaskSteps]] = {}
    for group in groups:
        values = task_values(connection, group, request.but(resamples=1))  # values only
        if values is not None and values.features:
            parts = split(values, request)
            steps = [fit_steps(values, each, parts, request) for each in values.features]
            by_family.setdefault((group.first.source, group.first.family), []).append(TaskSteps(values, parts, steps))
    if groups and not any(task.values.has_success for tasks in by_family.values() for task in tasks):
        lacks = request.features.by_name and not by_family
        what = f"a feature {' or '.join(request.features.names)}" if lacks else "items or accuracies"
        raise RbpxError(
            f"no group of runs in store={request.store} has {what}; measure a task, as in "
            f"{typed('measure', dataset='arc_easy', size='all')}, or import a table with bits_per_byte and accuracy"
        )
    return [_of_family(tasks, request) for tasks in by_family.values()]


def _of_family(tasks: Sequence[TaskSteps], request: DownstreamKeys) -> Result:
    errors_of_tasks = [_errors(task) for task in tasks]
    by_task = [
        [{"kind": "feature", "task": of.values.task, **of.values.group.names(), **row} for row in _ranked(errors)]
        for of, errors in zip(tasks, errors_of_tasks, strict=True)
    ]
    group, predictions = tasks[0].values.group, [row for task in tasks for each in task.steps for row in each.rows]
    names = {"kind": "feature", "task": None, **group.names(), "dataset": None, "text_hash": None}
    of_tasks = [row for rows in by_task for row in rows]
    of_all = [names | row for row in _ranked(_means(errors_of_tasks))]
    about, of_each = group.title_of_family, [row | {"task": f"all {len(tasks)} tasks"} for row in of_all]
    best = [[(row["feature"], row["k"]) for row in rows] for rows in by_task]
    shown = _shown(tasks, best)
    is_shown = [any(row is each for each in shown) for row in predictions]
    return Result(
        [group],
        [*predictions, *of_tasks, *of_all],
        [
            PREDICTIONS.of("Success predicted in two steps", map(_told, predictions), about, brief=is_shown),
            FEATURES.of("Which feature predicts best", map(_named, [*of_tasks, *of_each]), about, brief=False),
        ],
        [_sentence(shown, [*of_all, *of_tasks])],
        partial(figures, list(zip(tasks, best, strict=True))),
    )


_Errors = Mapping[tuple[str, int | None], tuple[float, int]]
"""By feature and its k: the mean of |chained - actual| over the held-out models, and their number."""


def _errors(task: TaskSteps) -> _Errors:
    """Of the features that predict every held-out model."""
    n = len(task.parts.held_out)
    of = {each.name: [row["error"] for row in each.rows[:n]] for each in task.steps}
    return {name: (fmean(map(abs, found)), n) for name, found in of.items() if n and None not in found}


def _means(errors_of_tasks: Sequence[_Errors]) -> _Errors:
    """Means over several tasks, of features known in all tasks with errors."""
    known = [errors for errors in errors_of_tasks if errors]
    in_all = [name for name in known[0] if all(name in errors for errors in known)] if len(known) > 1 else []
    of = {name: list(zip(*(errors[name] for errors in known), strict=True)) for name in in_all}
    return {name: (fmean(means), sum(counts)) for name, (means, counts) in of.items()}


def _ranked(errors: _Errors) -> list[Record]:
    rows = [
        {"feature": feature, "k": k, "n_models": n, "mean_error": error} for (feature, k), (error, n) in errors.items()
    ]
    return sorted(rows, key=lambda row: row["mean_error"])


def _shown(tasks: Sequence[TaskSteps], best: Sequence[Sequence[tuple[str, int | None]]]) -> list[Record]:
    """For each task the predictions of its best feature, the last of each size."""
    shown: dict[tuple[Any, ...], Record] = {}
    for task, features in zip(tasks, best, strict=True):
        of = next((each for each in task.steps if each.name in features[:1]), task.steps[0])
        shown |= {(task.values.group.title, row["size"] or (row["S"], row["D"])): row for row in of.rows}
    return [row for row in shown.values() if row["chained_predicted"] is not None] or [*shown.values()]


def _sentence(shown: Sequence[Record], ranked: Sequence[Record]) -> str:
    largest = [row for row in shown if row["S"] == max(each["S"] for each in shown)]
    last = largest[-1]
    tokens = "" if last["D"] is None else f", D = {short(last['D'])}"
    name = size_name(last["size"]) if last["size"] else f"A model of S = {short(last['S'])}{tokens}"
    if last["chained_predicted"] is None:
        status = Status(last["status"])
        return f"What {name} solves of {last['task']} cannot be predicted, {status.label}: {status.remedy}"
    solves = [f"{interval_of(estimate_in(row, 'chained_predicted'))} of {row['task']}{_actual(row)}" for row in largest]
    best, error = (ranked or [last])[0], ""
    if ranked:
        models = number_of(best["n_models"], "held-out model")
        error = f", the best feature, with a mean error of {number(best['mean_error'], 3)} over {models}"
    said = f"{name} is predicted to solve {listed(solves, _NAMED, '; ')}"
    return f"{said}; by {law_title(best['feature'], best['k'])}{error}."


def _actual(row: Record) -> str:
    return "" if row["actual"] is None else f", and solves {number(row['actual'], 3)}"


def _named(row: Record) -> Record:
    return row | {"feature": law_title(row["feature"], row["k"])}


def _told(row: Record) -> Record:
    return _named(row) | {"size": size_name(row["size"]) if row["size"] else amount(row["S"])}


_NAMED: Final = 3  # tasks in a sentence
PREDICTIONS: Final = table_of(
    "predictions", ("task", "task"), ("model", "size"), ("feature", "feature"),
    *interval("predicted", "chained_predicted", ".3f"), *interval("measured", "actual", ".3f"),
    ("error", "error", "+.3f"), *interval("feature predicted", "step1_predicted"),
    ("its measured value", "step1_actual", ".4f"),
    *interval("by step 2 alone", "step2_predicted", ".3f", "from the feature's measured value"),
    ("S", "S", amount), ("D", "D", amount), ("form of step 1", "form"), ("trainings fitted", "n_trainings", whole),
    ("points of step 2", "n_points", whole), ("chance", "chance", ".3f"), STATUS,
    first="task size feature chained_predicted actual status, error, step1_predicted step1_actual, step2_predicted, "
    "chance, actual_lo, step1_predicted_lo, step2_predicted_lo, S D, form",
)  # fmt: skip
FEATURES: Final = table_of(
    "features", ("task", "task"), ("feature", "feature"), ("models", "n_models", whole),
    ("mean error", "mean_error", ".3f", "mean of |predicted − measured| over the models held out"),
    first="task feature mean_error",
)  # fmt: skip


def _has_success(group: Group) -> bool:
    return group.is_measured or any(run.imported.get("accuracy") is not None for run in group.runs)


QUESTION = Question(answer, select=partial(select, by=By.training, needs_tokens=False), page=OnPage(suits=_has_success))
