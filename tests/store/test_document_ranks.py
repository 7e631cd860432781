"""Counts of ranks come in one order, whatever the threads of the database did first."""

from collections import Counter
from pathlib import Path

import pytest

from rbpx.groups.document_ranks import document_ranks
from rbpx.store.queries import connect
from rbpx.ties import Ties
from tests.support.synthetic import Truth, write_store


@pytest.mark.parametrize("ties", list(Ties))
def test_counts_are_those_of_a_loop_in_the_order_of_documents_and_ranks(tmp_path: Path, ties: Ties) -> None:
    store = write_store(tmp_path, Truth(scatter=0.01), seed=5, n_documents=7, n_tokens=90)
    with connect(store) as connection:
        ((run_id,), *_) = connection.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall()
        rows = connection.execute("SELECT doc_id, greater, ties FROM tokens WHERE run_id = ?", [run_id]).fetchall()
        counts = document_ranks(connection, run_id, ties).to_pylist()
    add = {Ties.pessimistic: 1.0, Ties.optimistic: 0.0, Ties.mid: 0.5}[ties]
    counted = Counter((doc_id, greater + add * n_ties + 1) for doc_id, greater, n_ties in rows)
    assert [((row["doc_id"], row["rank"]), row["n_tokens"]) for row in counts] == sorted(counted.items())
