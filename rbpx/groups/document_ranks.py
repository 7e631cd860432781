"""How often each rank occurs in each document of a run, in one order, so that sums over it are the same to the bit."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import duckdb
import pyarrow as pa

from rbpx.store.queries import ask
from rbpx.ties import Ties

_MOST_BYTES: Final = 256 * 2**20  # of counts that are kept

_Kept = OrderedDict[tuple[str, Ties], pa.Table]
_KEPT: ContextVar[_Kept | None] = ContextVar("kept document ranks", default=None)


@contextmanager
def document_ranks_kept() -> Iterator[None]:
    """Count each run once for all that asks within the context, as long as the counts fit into 256 MiB.

    All that asks has to ask one store; a context within another shares the counts of the outer one.
    """
    if _KEPT.get() is not None:
        yield
        return
    token = _KEPT.set(OrderedDict())
    try:
        yield
    finally:
        _KEPT.reset(token)


def document_ranks(connection: duckdb.DuckDBPyConnection, run_id: str, ties: Ties) -> pa.Table:
    """The counts that documents are resampled from: doc_id, rank, n_tokens, sum_logprob (nats), by document and rank.

    DuckDB's threads give groups in any order, and a sum of floats depends on it in its last bits. Sorting here costs a
    fifth of the question; ORDER BY in it a third.
    """
    kept, key = _KEPT.get(), (run_id, ties)
    if kept is not None and key in kept:
        kept.move_to_end(key)
        return kept[key]
    counts = ask(connection, "document_ranks", run_id=run_id, ties=ties.value)
    counts = counts.sort_by([("doc_id", "ascending"), ("rank", "ascending")])
    if kept is not None:
        kept[key] = counts
        while sum(each.nbytes for each in kept.values()) > _MOST_BYTES:
            kept.popitem(last=False)
    return counts
