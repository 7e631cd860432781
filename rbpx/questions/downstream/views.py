"""Tables of tasks in two steps: both steps and their chain beside the actual success, and which feature is best."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from rbpx.display.section import interval_of
from rbpx.display.view import Table, View, decimal, magnitude, state, text, whole, with_ends, written
from rbpx.display.vocabulary import decimals, law_title, short, signed
from rbpx.questions.downstream.analysis import Downstream, TaskSteps, analyse, keep
from rbpx.questions.downstream.contest import Contestant
from rbpx.questions.downstream.figures import figures
from rbpx.questions.downstream.steps import FeatureSteps, Predicted
from rbpx.questions.question import of_parts, one_by_one
from rbpx.runs.select.ways import whole_trainings

_Prediction = tuple[TaskSteps, FeatureSteps, Predicted]
_Judged = tuple[str, Contestant]
PREDICTIONS: Final = View[_Prediction](
    "predictions",
    text("task", "task", lambda row: row[0].values.task),
    text("model", "size", lambda row: short(row[2].S) if row[2].run is None else row[2].run.size),
    text("feature", "feature", lambda row: law_title(row[1].values.name, row[1].values.k)),
    with_ends(
        "step 1", "step1_predicted", lambda row: row[2].step1,
        means="the feature by its law in size (and tokens); for a share, −ln of it", ends_spare=6,
    ),
    decimal("own", "step1_actual", lambda row: row[2].feature, means="the model's measured feature", spare=2),
    with_ends(
        "step 2", "step2_predicted", lambda row: row[2].step2, decimals(3),
        "success that the sigmoid gives for its own feature", 3, 7,
    ),
    with_ends(
        "chained", "chained_predicted", lambda row: row[2].chained, decimals(3),
        "success by step 2 at the feature of step 1; the interval is for one new model that neither step has seen",
    ),
    with_ends("actual", "actual", lambda row: row[2].actual, decimals(3), ends_spare=5),
    written("error", "error", lambda row: row[2].error, lambda value: signed(value, 3), "chained minus actual", 1),
    magnitude("S", "S", lambda row: row[2].S, spare=8),
    magnitude("D", "D", lambda row: row[2].D, spare=8),
    text("form", "form", lambda row: row[1].form, "the one that step 1 has", 9),
    whole("trainings", "n_trainings", lambda row: row[1].n_trainings, "how many both steps are fitted to", 10),
    whole("points", "n_points", lambda row: row[1].n_points, "how many step 2 has", 10),
    decimal("chance", "chance", lambda row: row[0].values.chance, 3, "success of guessing", 4),
    state(lambda row: row[2].status),
)  # fmt: skip
FEATURES: Final = View[_Judged](
    "features",
    text("task", "task", lambda row: row[0]),
    text("feature", "feature", lambda row: law_title(row[1].feature, row[1].k)),
    text(
        "way", "way", lambda row: row[1].way,
        "straight: RBP_1 to the power of the tokens of each target, or exact match by its own law",
    ),
    whole("models", "n_models", lambda row: row[1].n_models, spare=2),
    with_ends(
        "mean error", "mean_error", lambda row: row[1].error, decimals(3),
        "mean of |chained − actual| over the models held out; intervals over items, with the same resamples for each",
    ),
    with_ends(
        "difference", "difference", lambda row: row[1].difference, decimals(3),
        "error minus that of cross-entropy, or of the first feature where that is not known", spare=1,
    ),
    with_ends(
        "pairs in order", "decisions", lambda row: row[1].decisions, decimals(2),
        "share of pairs of variants in which the better one is predicted", spare=3,
    ),
)  # fmt: skip


def tables(results: Sequence[Downstream]) -> list[Table]:
    """All tasks of one family."""
    about, judged = results[0].group.title_of_family, list[_Judged]()
    for result in results:
        judged += [(task.values.task, each) for task in result.tasks for each in task.contestants]
        judged += [(f"all {len(result.tasks)} tasks", each) for each in result.overall]
    of_tasks = [(task, steps) for result in results for task in result.tasks for steps in task.features]
    rows = [(*of, each) for of in of_tasks for each in of[1].predictions]
    both = PREDICTIONS.table("Both steps, and their chain", rows, about)
    return [both, FEATURES.table("Which feature predicts best", judged, about)]


@one_by_one
def sentences(result: Downstream) -> Iterator[str]:
    """Which feature predicts each task best, and how far off it is."""
    for task in result.tasks:
        for best in task.contestants[:1]:
            named = f"{task.values.group.title}: {law_title(best.feature, best.k)} ({best.way})"
            yield f"{named} predicts best, with a mean error of {interval_of(best.error)}."


QUESTION = of_parts(
    analyse, keep, tables, sentences, figures, together="family", select=partial(whole_trainings, needs_tokens=False)
)
