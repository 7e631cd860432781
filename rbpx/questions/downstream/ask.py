"""Answers how tasks succeed in two steps: fits both to each task, predicts the models held out, judges the features.

Source: arXiv 2412.04403 (OLMo ladder).
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.view import Column, View, decimal, magnitude, state, text, whole, with_ends, written
from rbpx.display.vocabulary import decimals, law_title, short, signed
from rbpx.errors import RbpxError
from rbpx.questions.downstream.contest import contest, decisions, judged, overall
from rbpx.questions.downstream.figures import figures
from rbpx.questions.downstream.steps import Task, fit_steps
from rbpx.questions.downstream.trainings import split
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.group import Group
from rbpx.runs.points.tasks import task_values
from rbpx.runs.select.ways import whole_trainings
from rbpx.store.store import Record
from rbpx.typed import typed


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Result]:
    """Fit both steps to every task of every family.

    Raises:
        RbpxError: no group has a feature that was asked for, or a chance is not known.
    """
    by_family: dict[tuple[str, ...], list[Task]] = {}
    for group in groups:
        values = task_values(connection, group, request)
        if values is not None and values.features:
            parts = split(values, request)
            steps = [fit_steps(values, each, parts, request) for each in values.features]
            by_family.setdefault((group.first.source, group.first.family), []).append(Task(values, parts, steps))
    if groups and not by_family:
        what = f"a feature {' or '.join(request.features.names)}" if request.features.by_name else "items or accuracies"
        raise RbpxError(
            f"no group of runs in store={request.store} has {what}; measure a task, as in "
            f"{typed('measure', dataset='arc_easy', size='all')}, or import a table with bits_per_byte and accuracy"
        )
    return [_of_family(tasks, request) for tasks in by_family.values()]


def _of_family(tasks: Sequence[Task], request: Request) -> Result:
    """A row for each prediction of a task, feature and model, then one for each feature that was judged."""
    contests = [contest(task, request) for task in tasks]
    by_task: list[list[Record]] = []
    for task, errors in zip(tasks, contests, strict=True):
        right = decisions([each.steps for each in tasks if each.values.task == task.values.task])
        names = {"kind": "feature", "task": task.values.task, **task.values.group.names()}
        rows = judged(errors, len(task.parts.held_out))
        by_task.append([names | row | right.get((row["feature"], row["k"], row["way"]), {}) for row in rows])
    group, predictions = tasks[0].values.group, [row for task in tasks for each in task.steps for row in each.rows]
    names = {"kind": "feature", "task": None, **group.names(), "dataset": None, "text_hash": None}
    n_models = sum(len(task.parts.held_out) for task, errors in zip(tasks, contests, strict=True) if errors)
    of_tasks = [row for rows in by_task for row in rows]
    of_all = [names | row for row in judged(overall(contests), n_models)]
    about, of_each = group.title_of_family, [row | {"task": f"all {len(tasks)} tasks"} for row in of_all]
    best = [[(row["feature"], row["k"]) for row in rows] for rows in by_task]
    return Result(
        [group],
        [*predictions, *of_tasks, *of_all],
        [
            PREDICTIONS.table("Both steps, and their chain", predictions, about),
            FEATURES.table("Which feature predicts best", [*of_tasks, *of_each], about),
        ],
        [
            f"{task.values.group.title}: {law_title(row['feature'], row['k'])} ({row['way']}) predicts best, with a "
            f"mean error of {interval_of(estimate_in(row, 'mean_error'))}."
            for task, rows in zip(tasks, by_task, strict=True)
            for row in rows[:1]
        ],
        partial(figures, list(zip(tasks, best, strict=True))),
    )


_FEATURE: Final[Column[Record]] = text("feature", "feature", lambda row: law_title(row["feature"], row["k"]))
_IN_3: Final = decimals(3)
PREDICTIONS: Final = View[Record](
    "predictions",
    text("task", "task"),
    text("model", "size", lambda row: row["size"] or short(row["S"])),
    _FEATURE,
    with_ends("step 1", "step1_predicted", means="the feature by its law; for a share, −ln of it", ends_spare=6),
    decimal("own", "step1_actual", means="the model's measured feature", spare=2),
    with_ends("step 2", "step2_predicted", None, _IN_3, "success that the sigmoid gives for its own feature", 3, 7),
    with_ends("chained", "chained_predicted", None, _IN_3, "step 2 at the feature of step 1; 95 % of one new model"),
    with_ends("actual", "actual", None, _IN_3, ends_spare=5),
    written("error", "error", None, lambda value: signed(value, 3), "chained minus actual", 1),
    magnitude("S", "S", spare=8),
    magnitude("D", "D", spare=8),
    text("form", "form", None, "the one that step 1 has", 9),
    whole("trainings", "n_trainings", None, "how many both steps are fitted to", 10),
    whole("points", "n_points", None, "how many step 2 has", 10),
    decimal("chance", "chance", None, 3, "success of guessing", 4),
    state(),
)
FEATURES: Final = View[Record](
    "features",
    text("task", "task"),
    _FEATURE,
    text("way", "way", means="straight: RBP_1 to the power of a target's tokens, or exact match by its own law"),
    whole("models", "n_models", spare=2),
    with_ends("mean error", "mean_error", None, _IN_3, "mean of |chained − actual| over the models held out"),
    with_ends("difference", "difference", None, _IN_3, "of errors, on the same items, from that of cross-entropy", 1),
    with_ends("pairs in order", "decisions", None, decimals(2), "share of pairs of variants ordered right", 3),
)
QUESTION = Question(answer, select=partial(whole_trainings, needs_tokens=False))
