"""Answers how tasks succeed in two steps: fits both to each task, predicts the models held out, judges the features.

Source: arXiv 2412.04403 (OLMo ladder).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.view import Column, View, decimal, magnitude, state, text, whole, with_ends, written
from rbpx.display.vocabulary import decimals, law_title, short, signed
from rbpx.errors import RbpxError
from rbpx.questions.downstream.contest import contest, decisions, overall
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
    judged = [contest(task, request) for task in tasks]
    by_task: list[list[Record]] = []
    for task, found in zip(tasks, judged, strict=True):
        right = decisions([each.steps for each in tasks if each.values.task == task.values.task])
        names = {"kind": "feature", "task": task.values.task, **task.values.group.names()}
        by_task.append([names | of.record() | right.get(of.name, {}) for of in found])
    group, predictions = tasks[0].values.group, [row for task in tasks for each in task.steps for row in each.rows]
    names = {"kind": "feature", "task": None, **group.names(), "dataset": None, "text_hash": None}
    of_tasks, of_all = [row for rows in by_task for row in rows], [names | of.record() for of in overall(judged)]
    about, of_each = group.title_of_family, [row | {"task": f"all {len(tasks)} tasks"} for row in of_all]
    return Result(
        [group],
        [*predictions, *of_tasks, *of_all],
        [
            PREDICTIONS.table("Both steps, and their chain", predictions, about),
            FEATURES.table("Which feature predicts best", [*of_tasks, *of_each], about),
        ],
        [*_sentences(tasks, by_task)],
        partial(figures, [(task, [of.name[:2] for of in found]) for task, found in zip(tasks, judged, strict=True)]),
    )


_FEATURE: Final[Column[Record]] = text("feature", "feature", lambda row: law_title(row["feature"], row["k"]))
PREDICTIONS: Final = View[Record](
    "predictions",
    text("task", "task"),
    text("model", "size", lambda row: row["size"] or short(row["S"])),
    _FEATURE,
    with_ends(
        "step 1", "step1_predicted", ends_spare=6,
        means="the feature by its law in size (and tokens); for a share, −ln of it",
    ),
    decimal("own", "step1_actual", means="the model's measured feature", spare=2),
    with_ends(
        "step 2", "step2_predicted", None, decimals(3), "success that the sigmoid gives for its own feature", 3, 7
    ),
    with_ends(
        "chained", "chained_predicted", None, decimals(3),
        "success by step 2 at the feature of step 1; the interval is for one new model that neither step has seen",
    ),
    with_ends("actual", "actual", None, decimals(3), ends_spare=5),
    written("error", "error", None, lambda value: signed(value, 3), "chained minus actual", 1),
    magnitude("S", "S", spare=8),
    magnitude("D", "D", spare=8),
    text("form", "form", None, "the one that step 1 has", 9),
    whole("trainings", "n_trainings", None, "how many both steps are fitted to", 10),
    whole("points", "n_points", None, "how many step 2 has", 10),
    decimal("chance", "chance", None, 3, "success of guessing", 4),
    state(),
)  # fmt: skip
FEATURES: Final = View[Record](
    "features",
    text("task", "task"),
    _FEATURE,
    text(
        "way", "way",
        means="straight: RBP_1 to the power of the tokens of each target, or exact match by its own law",
    ),
    whole("models", "n_models", spare=2),
    with_ends(
        "mean error", "mean_error", None, decimals(3),
        "mean of |chained − actual| over the models held out; intervals over items, with the same resamples for each",
    ),
    with_ends(
        "difference", "difference", None, decimals(3),
        "error minus that of cross-entropy, or of the first feature where that is not known", 1,
    ),
    with_ends(
        "pairs in order", "decisions", None, decimals(2),
        "share of pairs of variants in which the better one is predicted", 3,
    ),
)  # fmt: skip


def _sentences(tasks: Sequence[Task], judged: Sequence[Sequence[Record]]) -> Iterator[str]:
    """Which feature predicts each task best, and how far off it is."""
    for task, rows in zip(tasks, judged, strict=True):
        for best in rows[:1]:
            what = f"{task.values.group.title}: {law_title(best['feature'], best['k'])} ({best['way']})"
            yield f"{what} predicts best, with a mean error of {interval_of(estimate_in(best, 'mean_error'))}."


QUESTION = Question(answer, select=partial(whole_trainings, needs_tokens=False))
