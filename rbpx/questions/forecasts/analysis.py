"""Compares registered predictions with what their models have shown since (verb forecasts)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import duckdb

from rbpx.config.request import Request
from rbpx.errors import RbpxError
from rbpx.laws.intervals.estimate import Estimate, by_name
from rbpx.laws.predict.prediction import Score, coverage, score
from rbpx.questions.forecasts import ANALYSIS
from rbpx.runs.group import Group, Run
from rbpx.runs.points.sizes import size_points, weigh_group
from rbpx.runs.select.sizes import family_name, is_of
from rbpx.store.sql import ask
from rbpx.store.store import Record, Store
from rbpx.ties import Ties

_Quantity = tuple[str, int | None]


class Outcome(StrEnum):
    """What became of a forecast."""

    waiting = "waiting"  # for its model
    inside = "inside"
    outside = "outside"
    too_late = "too_late"  # its model was measured before it was registered
    not_known = "not_known"  # the model came, and the quantity is not known of it


@dataclass(frozen=True, eq=False)
class Forecast:
    """One prediction and one model that it is about; there is one for each such model that was measured.

    Attributes:
        said: its row of the relation `forecasts`.
        run: the run of the model; None while it waits.
        measured: what the model showed.
        score: how the prediction did; None where it is not scored.
        outcome: the same in one word.
    """

    said: Record
    run: Run | None
    measured: float | None
    score: Score | None
    outcome: Outcome


@dataclass(frozen=True, eq=False)
class Forecasts:
    """All forecasts that were asked about, and the coverage of those that are scored.

    Attributes:
        group: one of the groups that were looked at.
        forecasts: in the order of their registration.
        coverage: the share of intervals that held.
        n_models: the models that this share counts.
    """

    group: Group
    forecasts: tuple[Forecast, ...]
    coverage: Estimate
    n_models: int

    @property
    def scored(self) -> list[tuple[Forecast, Score]]:
        """The forecasts that count, with their scores."""
        return [(each, each.score) for each in self.forecasts if each.score is not None]

    @property
    def mean_score(self) -> float | None:
        """The mean of their interval scores; None where none counts."""
        return sum(one.interval_score for _, one in self.scored) / len(self.scored) if self.scored else None


def analyse(connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: Request) -> list[Forecasts]:
    """Put every forecast beside the models that it is about.

    Raises:
        RbpxError: there is no forecast.
    """
    families = request.family or (None if request.model is None else [family_name(request)])
    datasets = None if request.dataset is None else [request.dataset.name]
    rows = ask(connection, "registered_forecasts", families=families, datasets=datasets).to_pylist()
    if not rows:
        raise RbpxError(ANALYSIS.lacking.format(store=request.store))
    runs = [run for group in groups for run in group.runs]
    run_ids = [*(run_id for run in runs for run_id in run.run_ids), *_rested_on(rows)]
    times = {row["run_id"]: row["started_at"] for row in ask(connection, "run_times", run_ids=run_ids).to_pylist()}
    measured: dict[Any, dict[_Quantity, float]] = {}
    forecasts = []
    for row in rows:
        came = [run for run in runs if is_of(row, row["S"], row["D"], run)]
        for run in came:
            key = (*run.run_ids, run.revision, row["ties"])
            if key not in measured:
                of_ties = [each for each in rows if each["ties"] == row["ties"]]
                asked = [each for each in of_ties if is_of(each, each["S"], each["D"], run)]
                measured[key] = _measured(connection, run, Ties(row["ties"]), asked, request)
            forecasts.append(_scored(row, run, measured[key].get((row["law"], row["k"])), times))
        if not came:
            forecasts.append(Forecast(row, None, None, None, Outcome.waiting))
    counted = [(each.run, each.outcome) for each in forecasts if each.score is not None and each.run is not None]
    models = [(run.family, run.training, run.revision) for run, _ in counted]
    held = coverage([outcome is Outcome.inside for _, outcome in counted], models)
    return [Forecasts(groups[0], tuple(forecasts), held, len(set(models)))]


def _rested_on(rows: Sequence[Record]) -> list[str]:
    return [run_id for row in rows for run_id in row["run_ids"] or ()]


def _measured(
    connection: duckdb.DuckDBPyConnection, run: Run, ties: Ties, asked: Sequence[Record], request: Request
) -> dict[_Quantity, float]:
    """The values of the quantities that are asked about, under one tie rule."""
    laws, ks = sorted({row["law"] for row in asked}), sorted({row["k"] for row in asked} - {None})
    request = request.but(laws=laws, k=ks or None, resamples=1)  # values are needed, no intervals
    group = Group((run,), ties)
    evidence = weigh_group(connection, group, request, ks, laws)
    return {(points.law, points.k): float(points.y_N[0]) for points in size_points(group, evidence, request, ks, laws)}


def _scored(row: Record, run: Run, measured: float | None, times: dict[str, datetime]) -> Forecast:
    # The time that a record gives for itself proves little, but it cannot be earlier than the runs that it rests on.
    said = [] if row["registered_at"] is None else [row["registered_at"]]
    known = [*said, *(times[run_id] for run_id in _rested_on([row]) if run_id in times)]
    if known and any(run_id in times and times[run_id] < max(known) for run_id in run.run_ids):
        return Forecast(row, run, measured, None, Outcome.too_late)
    result = None if measured is None else score(row["y"], row["lo"], row["hi"], measured)
    if result is None:
        return Forecast(row, run, None, None, Outcome.not_known)
    return Forecast(row, run, measured, result, Outcome.inside if result.is_inside else Outcome.outside)


def keep(store: Store, results: Forecasts) -> list[Record]:
    """Rows for programs, told apart by `kind`: a forecast, and the coverage of all; nothing is stored."""
    rows: list[Record] = []
    for each in results.forecasts:
        row: Record = {"kind": "forecast", **each.said, "outcome": each.outcome.value}
        row |= {"run_id": " ".join(each.run.run_ids) if each.run else None, "size": each.run.size if each.run else None}
        row |= {"measured": each.measured}
        rows.append(row | {name: getattr(each.score, name, None) for name in ("error", "in_sd", "interval_score")})
    row = {"kind": "coverage", **by_name(coverage=results.coverage), "n_scored": len(results.scored)}
    return [*rows, row | {"n_models": results.n_models, "interval_score": results.mean_score}]
