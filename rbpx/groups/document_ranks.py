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

_Kept = OrderedDict[tuple[str, Ties], tuple[pa.Table, int]]  # and its bytes
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
    """What documents are resampled from: doc_id, rank, n_tokens, sum_logprob (nats), by document and rank."""
    kept, key = _KEPT.get(), (run_id, ties)
    if kept is not None and key in kept:
        kept.move_to_end(key)
        return kept[key][0]
    counts = ask(connection, "document_ranks", run_id=run_id, ties=ties.value)
    if kept is not None:
        kept[key] = counts, counts.nbytes
        while sum(n_bytes for _, n_bytes in kept.values()) > _MOST_BYTES:
            kept.popitem(last=False)
    return counts
