"""The median rank (verb medians): a group of runs in, the median of each and their law in S out."""

from dataclasses import dataclass

import duckdb

from rbpx.config.request import Request
from rbpx.groups.fits import record_of
from rbpx.groups.group import Group
from rbpx.laws.names import Method
from rbpx.laws.power import PowerLawFit, fit_power_law
from rbpx.store.queries import ask
from rbpx.store.store import Record, Store


@dataclass(frozen=True, eq=False)
class Medians:
    """The median rank of each run of a group, in order of S, and their law."""

    group: Group
    medians: tuple[float, ...]
    fit: PowerLawFit


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Medians:
    """Ask the store for the medians, and fit their law."""
    rows = ask(connection, "median_ranks", run_ids=group.run_ids, ties=group.ties.value).to_pylist()
    median_of = {row["run_id"]: float(row["median_rank"]) for row in rows}
    medians = tuple(median_of[run.run_id] for run in group.runs)
    return Medians(group, medians, fit_power_law([run.non_embedding_params for run in group.runs], medians))


def keep(store: Store, result: Medians) -> list[Record]:
    """Keep the law in `fits`, and return its row."""
    fit = result.fit
    record = record_of(result.group, "median_rank", fit, result.group.run_ids, Method.ols, params=fit.params)
    store.write_record("fits", record["fit_id"], record)
    return [record]
