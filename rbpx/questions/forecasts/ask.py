"""Answers `forecasts`: a row for each registered prediction and measured model that it is about."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import duckdb

from rbpx.config.keys.laws import Laws
from rbpx.display.section import interval_of
from rbpx.display.table import Table, interval, table_of
from rbpx.display.vocabulary import amount, law_title, percent
from rbpx.errors import RbpxError, number_of
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.prediction.prediction import coverage, score
from rbpx.questions.forecasts import ANALYSIS, ForecastsKeys
from rbpx.questions.question import Question
from rbpx.questions.result import Result
from rbpx.runs.forecasts import is_of
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import size_points, weigh_group
from rbpx.runs.run import Run
from rbpx.runs.select.groups import select_alike
from rbpx.runs.select.stored import family_name
from rbpx.store.sql import ask
from rbpx.store.store import Record
from rbpx.ties import Ties

_SCORES: Final = ("error", "in_sd", "interval_score")  # of `rbpx.laws.prediction.prediction.Score`


def answer(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: ForecastsKeys) -> list[Result]:
    """Compares every registered prediction with the models that it is about.

    Raises:
        RbpxError: there is no forecast.
    """
    families = request.family or (None if request.model is None else [family_name(request)])
    datasets = None if request.dataset is None else [request.dataset.name]
    predictions = ask(connection, "registered_forecasts", families=families, datasets=datasets).to_pylist()
    if not predictions:
        raise RbpxError(ANALYSIS.lacking.format(store=request.store))
    runs = [run for group in groups for run in group.runs]
    run_ids = [
        *(run_id for run in runs for run_id in run.run_ids),
        *(of for each in predictions for of in _rested_on(each)),
    ]
    times = {row["run_id"]: row["started_at"] for row in ask(connection, "run_times", run_ids=run_ids).to_pylist()}
    shown = [_measured_values(connection, run, predictions, request) for run in runs]
    rows, scored = list[Record](), list[tuple[Record, Run]]()
    for at, each in enumerate(predictions):
        came = [(run, values[at]) for run, values in zip(runs, shown, strict=True) if at in values]
        of_models = [(_scored(each, run, measured, times), run) for run, measured in came]
        rows += [row for row, _ in of_models] or [_row(each, "waiting")]
        scored += [(row, run) for row, run in of_models if row["error"] is not None]
    whole, sentence = _overall(scored, len(rows))
    return [Result(groups[:1], [*rows, whole], _tables(rows), [sentence])]


def _overall(scored: Sequence[tuple[Record, Run]], n_rows: int) -> tuple[Record, str]:
    held = [row["outcome"] == "inside" for row, _ in scored]
    models = [(run.family, run.training, run.revision) for _, run in scored]
    share, n = coverage(held, models), len(set(models))
    mean = sum(row["interval_score"] for row, _ in scored) / len(scored) if scored else None
    row = {"kind": "coverage", **by_name(coverage=share), "n_scored": len(scored), "n_models": n}
    sentence = f"No model that was forecast has been measured yet: {number_of(n_rows, 'prediction')} wait for theirs."
    if scored:
        sentence = (
            f"Of {number_of(len(held), 'forecast')} of {number_of(n, 'model')}, measured since, {sum(held)} held: the "
            f"measured value lies within the 95 % interval. Their share, each model counted once, is "
            f"{interval_of(share, 2)}; 0.95 is meant."
        )
    return row | {"interval_score": mean}, sentence


def _rested_on(prediction: Record) -> Sequence[str]:
    return prediction["run_ids"] or ()


def _measured_values(
    connection: duckdb.DuckDBPyConnection, run: Run, predictions: Sequence[Record], request: ForecastsKeys
) -> dict[int, float | None]:
    about = {at: each for at, each in enumerate(predictions) if is_of(each, each["S"], each["D"], run)}
    known: dict[tuple[str, str, int | None], float] = {}
    for ties in {each["ties"] for each in about.values()}:
        asked = [each for each in about.values() if each["ties"] == ties]
        laws, ks = sorted({each["law"] for each in asked}), sorted({each["k"] for each in asked} - {None})
        of = request.to(Laws, laws=laws, k=ks or None, resamples=1)  # values only, so no intervals are needed
        group = Group((run,), Ties(ties))
        points = size_points(group, weigh_group(connection, group, of, ks, laws), of, ks, laws)
        known |= {(ties, each.law, each.k): float(each.y_N[0]) for each in points}
    return {at: known.get((each["ties"], each["law"], each["k"])) for at, each in about.items()}


def _scored(prediction: Record, run: Run, measured: float | None, times: Mapping[str, datetime]) -> Record:
    # A record's own time proves little, but it cannot be earlier than the runs that it rests on.
    known = [times[run_id] for run_id in _rested_on(prediction) if run_id in times]
    known += [] if prediction["registered_at"] is None else [prediction["registered_at"]]
    if known and any(run_id in times and times[run_id] < max(known) for run_id in run.run_ids):
        return _row(prediction, "too_late", run, measured)
    found = None if measured is None else score(prediction["y"], prediction["lo"], prediction["hi"], measured)
    if found is None:
        return _row(prediction, "not_known", run)
    scores = {name: getattr(found, name) for name in _SCORES}
    return _row(prediction, "inside" if found.is_inside else "outside", run, measured) | scores


def _row(prediction: Record, outcome: str, run: Run | None = None, measured: float | None = None) -> Record:
    model = {"run_id": run and " ".join(run.run_ids), "size": run and run.size, "measured": measured}
    return {"kind": "forecast", **prediction, "outcome": outcome, **model, **dict.fromkeys(_SCORES)}


def _tables(rows: Sequence[Record]) -> list[Table]:
    registered: dict[str, list[Record]] = {}
    for row in rows:
        at = row["registered_at"]
        when = "at a time that it does not say" if at is None else f"{at:%Y-%m-%d %H:%M}"
        about = f"{row['forecast_id']}, {when}: {row['family']} on {row['dataset']}"
        registered.setdefault(about, []).append(row)
    return [FORECASTS.of("Forecasts", map(_told, own), about) for about, own in registered.items()]


def _told(row: Record) -> Record:
    ends = {"y_lo": row["lo"], "y_hi": row["hi"]}
    return row | ends | {"law": law_title(row["law"], row["k"]), "outcome": row["outcome"].replace("_", " ")}


FORECASTS: Final = table_of(
    "forecasts", ("quantity", "law"), ("S", "S", amount), ("D", "D", amount), *interval("predicted", "y"),
    ("measured", "measured", ".4f"), ("error", "error", percent),
    ("in sd", "in_sd", "+.2f", "(ln measured − ln predicted) over the sd that the interval stands for"),
    ("outcome", "outcome", str, "where the measured value lies; too late: it was measured before the registration"),
    first="law S y measured in_sd outcome, error",
)  # fmt: skip
QUESTION = Question(answer, select=select_alike)
