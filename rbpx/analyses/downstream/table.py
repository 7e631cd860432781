"""Tasks in two steps: predictions of both and of the chain beside what is true, in tables."""

from collections.abc import Sequence

from rbpx.analyses.downstream.analysis import Downstream, TaskSteps
from rbpx.analyses.downstream.steps import FeatureSteps, Predicted
from rbpx.display.names import law_name, status_name
from rbpx.display.numbers import UNKNOWN, number, short, span, with_ends
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
        _print_contest(result)
    print_notes(
        screen,
        "Step 1: the feature by its law in size (and tokens); step 2: success by the sigmoid of the model's own "
        "feature; chained: of step 1's, with the 95 % interval of one new model. Features that are shares are -ln "
        "share. Error: chained less actual.",
        (each.status for result in results for task in result.tasks for s in task.features for each in s.predictions),
    )


def _print_contest(result: Downstream) -> None:
    parts = [(task.values.task, task.contestants) for task in result.tasks if len(task.contestants) > 1]
    parts += [(f"all {len(result.tasks)} tasks", result.overall)] if len(result.overall) > 1 else []
    if not parts:
        return
    columns = ["feature", "way", "models", "mean error", "95 %", "less that of CE", "95 % of that", "pairs in order"]
    decided = any(each.decisions.value is not None for _, of in parts for each in of)
    table = grid(
        f"{result.group.title_of_family}: which feature predicts best", columns if decided else columns[:-1], 2
    )
    for name, contestants in parts:
        rows = []
        for each in contestants:
            row = [f" {law_name(each.feature, each.k)}", each.way, str(each.n_models)]
            row += [*with_ends(each.error, 3), *with_ends(each.difference, 3)]
            rows.append([*row, number(each.decisions.value, 2)] if decided else row)
        table.add_part(name, rows)
    put(console(), table)
    console().print(
        "Mean error: of |chained less actual| over the models held out, intervals over items, the same resamples for "
        "every feature; straight: RBP_1 to the power of the tokens of each target, or exact match by its own law.\n",
        markup=False,
        soft_wrap=True,
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
        law_name(steps.values.name, steps.values.k),
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
