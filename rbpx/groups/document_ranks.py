"""How often each rank occurs in each document of a run, in one order, so that sums over it are the same to the bit."""

import duckdb
import pyarrow as pa

from rbpx.store.queries import ask
from rbpx.ties import Ties


def document_ranks(connection: duckdb.DuckDBPyConnection, run_id: str, ties: Ties) -> pa.Table:
    """The counts that documents are resampled from: doc_id, rank, n_tokens, sum_logprob (nats), by document and rank.

    DuckDB's threads give groups in any order, and a sum of floats depends on it in its last bits. Sorting here costs a
    fifth of the question; ORDER BY in it a third.
    """
    counts = ask(connection, "document_ranks", run_id=run_id, ties=ties.value)
    return counts.sort_by([("doc_id", "ascending"), ("rank", "ascending")])
