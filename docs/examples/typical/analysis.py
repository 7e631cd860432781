"""The typical rank (verb typical): a group of runs in, the geometric mean of the ranks of each and its law out."""

from dataclasses import dataclass

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.groups.documents import means
from rbpx.groups.fits import keep_fits, record_of, with_document_doubts
from rbpx.groups.group import Group
from rbpx.laws.intervals.estimate import Resampled
from rbpx.laws.names import Method
from rbpx.laws.power.law import PowerLawFit, fit_power_law
from rbpx.store.sql.queries import ask
from rbpx.store.store import Record, Store


@dataclass(frozen=True, eq=False)
class Typical:
    """The typical rank of each run of a group, in their order, and their law."""

    group: Group
    ranks: tuple[float, ...]
    fit: PowerLawFit


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Typical:
    """Ask the store for sums by document, and fit the law of their means."""
    counted = ask(connection, "ln_ranks", run_ids=group.run_ids, ties=group.ties.value)
    ln_rank_N, ln_rank_BN = means(group, request, counted, "sum_ln_rank", "n_tokens")
    places, typical_N = [run.x for run in group.runs if run.x is not None], np.exp(ln_rank_N)
    fit = fit_power_law(places, typical_N, Resampled.of(np.exp(ln_rank_BN), group.n_resampled))
    return Typical(group, tuple(typical_N.tolist()), with_document_doubts(group, fit))


def keep(store: Store, result: Typical) -> list[Record]:
    """Keep the law in `fits`, and return its row."""
    run_ids, fit = result.group.run_ids, result.fit
    return keep_fits(store, [record_of(result.group, "typical_rank", fit, run_ids, Method.ols, params=fit.record())])
