"""Tasks in two steps: predictions of both and of the chain beside what is true, in tables."""

from collections.abc import Sequence

from rbpx.analyses.downstream.analysis import Downstream, TaskSteps
from rbpx.analyses.downstream.steps import FeatureSteps, Predicted
from rbpx.analyses.downstream.words import feature_name
from rbpx.display.names import status_name
from rbpx.display.numbers import UNKNOWN, number, short, span
from rbpx.display.tables import console, grid, print_notes, put

_COLUMNS = ["model", "feature", "step 1", "own", "step 2", "chained", "95 % interval", "actual", "error", "status"]


def show(results: Sequence[Downstream]) -> None:
    """Print the predictions of each family, a part for each task."""
    screen = console()
    for result in results:
        columns = [*_COLUMNS[:3], "95 % of step 1", *_COLUMNS[3:-1], "S", "D", "points", _COLUMNS[-1]]
        spare = ("95 % of step 1", "S", "D", "points")
        table = grid(f"{result.group.title_of_family}: tasks in two steps", columns, 2, spare)
        table.columns[-1].justify = "left"
        for task in result.tasks:
            rows = [_row(steps, each) for steps in task.features for each in steps.predictions]
            table.add_part(_heading(task), rows)
        put(screen, table)
    print_notes(
        screen,
        "Step 1: the feature by its law in size (and tokens); step 2: success by the sigmoid of the model's own "
        "feature; chained: of step 1's, with the 95 % interval of one new model. Features that are shares are -ln "
        "share. Error: chained less actual.",
        (each.status for result in results for task in result.tasks for s in task.features for each in s.predictions),
    )


def _heading(task: TaskSteps) -> str:
    values = task.values
    forms = ", ".join(dict.fromkeys(steps.form for steps in task.features))
    if values.chance is None:
        return f"{values.task} (step 1 alone: {forms})"
    return f"{values.task} (chance {number(values.chance, 3)}; {len(task.parts.fitted)} trainings; step 1: {forms})"


def _row(steps: FeatureSteps, each: Predicted) -> list[str]:
    return [
        f" {short(each.S) if each.size is None else each.size}",
        feature_name(steps.values.name, steps.values.k),
        number(each.step1.value),
        span(each.step1.lo, each.step1.hi),
        number(each.feature),
        number(each.step2.value, 3),
        number(each.chained.value, 3),
        span(each.chained.lo, each.chained.hi, 3),
        number(each.actual.value, 3),
        UNKNOWN if each.error is None else f"{each.error:+.3f}",
        short(each.S),
        short(each.D),
        str(steps.n_points),
        status_name(each.status),
    ]
