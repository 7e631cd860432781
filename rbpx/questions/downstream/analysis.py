"""Success on tasks in two steps (verb downstream): fits both steps to each task and predicts the models held out.

Source: arXiv 2412.04403 (OLMo ladder).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import duckdb

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.laws.intervals.estimate import by_name
from rbpx.questions.downstream.contest import Contestant, contest, decisions, overall
from rbpx.questions.downstream.steps import FeatureSteps, fit_steps
from rbpx.questions.downstream.trainings import Split, split
from rbpx.runs.group import Group
from rbpx.runs.points.tasks import TaskValues, task_values
from rbpx.store.store import Record, Store


@dataclass(frozen=True, eq=False)
class TaskSteps:
    """One task.

    Attributes:
        values: its features and success.
        parts: the trainings that were fitted, and those held out.
        features: both steps of each feature.
        contestants: the features by how well they predict the models held out, the best first.
    """

    values: TaskValues
    parts: Split
    features: tuple[FeatureSteps, ...]
    contestants: tuple[Contestant, ...]


@dataclass(frozen=True, eq=False)
class Downstream:
    """The tasks of one family.

    Attributes:
        group: the runs of the first task.
        tasks: in the order of their names.
        overall: the features judged over all tasks; empty for a single task.
    """

    group: Group
    tasks: tuple[TaskSteps, ...]
    overall: tuple[Contestant, ...]


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Downstream]:
    """Fit both steps to every task of every family.

    Raises:
        RbpxError: no group has a feature that was asked for, a chance is not known, or several forms were asked for.
    """
    if len(request.form) > 1:
        raise RbpxError(
            f"form={request.typed['form']} names several forms, and step 1 takes one; give one, as in form=chinchilla"
        )
    by_family: dict[tuple[str, ...], list[TaskSteps]] = {}
    for group in groups:
        values = task_values(connection, group, request)
        if values is None or not values.features:
            continue
        parts = split(values, request)
        steps = tuple(fit_steps(values, each, parts, request) for each in values.features)
        task = TaskSteps(values, parts, steps, contest(values, parts, steps, request))
        by_family.setdefault((group.first.source, group.first.family), []).append(task)
    if groups and not by_family:
        what = f"a feature {' or '.join(request.features.names)}" if request.features.by_name else "items or accuracies"
        raise RbpxError(
            f"no group of runs in store={request.store} has {what}; measure a task, such as "
            "python -m rbpx measure dataset=arc_easy size=all, or import a table with bits_per_byte and accuracy"
        )
    return [_of_family(tasks) for tasks in by_family.values()]


def _of_family(tasks: Sequence[TaskSteps]) -> Downstream:
    decided = []
    for task in tasks:
        of = decisions([each.features for each in tasks if each.values.task == task.values.task])
        named = tuple(replace(each, decisions=of.get(each.name, each.decisions)) for each in task.contestants)
        decided.append(replace(task, contestants=named))
    return Downstream(tasks[0].values.group, tuple(decided), overall([each.contestants for each in decided]))


def keep(store: Store, result: Downstream) -> list[Record]:
    """A row for each prediction of a task, feature and model, and one for each feature that was judged."""
    rows = [row for task in result.tasks for steps in task.features for row in _rows(task, steps)]
    for task in result.tasks:
        names = {"task": task.values.task, **task.values.group.names()}
        rows += [{"kind": "feature", **names, **_row(each)} for each in task.contestants]
    names = {"task": None, **result.group.names(), "dataset": None, "text_hash": None}
    return rows + [{"kind": "feature", **names, **_row(each)} for each in result.overall]


def _row(each: Contestant) -> Record:
    row: Record = {"feature": each.feature, "k": each.k, "way": each.way, "n_models": each.n_models}
    return row | by_name(mean_error=each.error, difference=each.difference, decisions=each.decisions)


def _rows(task: TaskSteps, steps: FeatureSteps) -> Iterator[Record]:
    names = task.values.group.names()
    constants = {name: None if steps.sigmoid is None else getattr(steps.sigmoid.sigmoid, name) for name in _CONSTANTS}
    for each in steps.predictions:
        row: Record = {"kind": "prediction", "task": task.values.task, **names}
        row |= {"size": None} if each.run is None else each.run.names()
        row |= {"feature": steps.values.name, "k": steps.values.k, "S": each.S, "D": each.D}
        row |= {"form": steps.form, "n_trainings": steps.n_trainings, "n_points": steps.n_points}
        row |= {"chance": task.values.chance, **constants}
        row |= by_name(step1_predicted=each.step1) | {"step1_actual": each.feature}
        row |= by_name(step2_predicted=each.step2, chained_predicted=each.chained, actual=each.actual)
        row |= {"error": each.error, "held": each.holds, "status": each.status.value}
        yield row | {"reasons": [reason.value for reason in each.reasons]}


_CONSTANTS = ("a", "x0", "h", "b")
