"""The typical rank (verb typical): a group of runs in, the geometric mean of the ranks of each and its law out."""

from dataclasses import dataclass

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.runs.documents import means
from rbpx.runs.fits import Law, doubted, fit_points, fit_record, keep_fits
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Points
from rbpx.laws.names import Method
from rbpx.status import Status
from rbpx.store.sql import ask
from rbpx.store.store import Record, Store


@dataclass(frozen=True, eq=False)
class Typical:
    """The typical rank of each run of a group, in their order, and their law, judged as any law in size is."""

    group: Group
    ranks: tuple[float, ...]
    law: Law
    resamples: int


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Typical:
    """Ask the store for sums by document, and fit the law of their means."""
    counted = ask(connection, "ln_ranks", run_ids=group.run_ids, ties=group.ties.value)
    ln_rank_N, ln_rank_BN = means(group, request, counted, "sum_ln_rank", "n_tokens")
    typical_N, doubt = np.exp(ln_rank_N), Status.one_document if group.n_resampled == 1 else None
    points = Points("typical_rank", None, group.runs, typical_N, np.exp(ln_rank_BN), doubt, group.n_resampled)
    law = doubted(group, fit_points(points, Method.ols))
    return Typical(group, tuple(typical_N.tolist()), law, request.resamples)


def keep(store: Store, result: Typical) -> list[Record]:
    """Keep the law in `fits`, and return its row."""
    return keep_fits(store, [fit_record(result.group, result.law, result.resamples)])
