"""Counts of ranks by document, in one order, against a loop; tokens of wrong choices, and damage that SQL meets."""

import functools
import math
import operator
from itertools import product
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.runs.documents import EDGES, document_hits, document_ranks
from rbpx.store import schema
from rbpx.store.sql import connect
from rbpx.store.store import Store
from rbpx.ties import Ties
from tests.support.synthetic import Truth, write_store


@pytest.mark.parametrize("ties", list(Ties))
def test_counts_are_those_of_a_loop_in_the_order_of_documents_and_ranks(tmp_path: Path, ties: Ties) -> None:
    store = write_store(tmp_path, Truth(scatter=0.01), seed=5, n_documents=7, n_tokens=90)
    with connect(store) as connection:
        ((run_id,), *_) = connection.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall()
        rows = connection.execute(
            "SELECT doc_id, greater, ties, logprob FROM tokens WHERE run_id = ? ORDER BY doc_id, position", [run_id]
        ).fetchall()
        counts = document_ranks(connection, run_id, ties)
        hits = document_hits(connection, run_id, ties)
    add = {Ties.pessimistic: 1.0, Ties.optimistic: 0.0, Ties.mid: 0.5}[ties]
    check(counts, [(doc_id, greater + add * n_ties + 1, logprob) for doc_id, greater, n_ties, logprob in rows])
    of_hits = {(row["doc_id"], row["rank"]): row["n_tokens"] for row in hits.to_pylist() if row["n_tokens"]}
    up = [(row["doc_id"], min((e for e in EDGES if e >= row["rank"]), default=math.inf)) for row in counts.to_pylist()]
    n_tokens = counts["n_tokens"].to_pylist()
    assert of_hits == {at: sum(n for of, n in zip(up, n_tokens, strict=True) if of == at) for at in up}
    of_documents = [sum(row["sum_logprob"] for row in of.to_pylist() if row["doc_id"] == 3) for of in (hits, counts)]
    assert of_documents[0] == pytest.approx(of_documents[1], rel=1e-14)


def test_tokens_of_wrong_choices_are_left_out(tmp_path: Path) -> None:
    store = write_store(tmp_path, Truth(S=(1_000, 10_000)), seed=1, n_documents=5, n_tokens=30)
    first, *_ = store.run_ids()
    tokens = pq.read_table(store.run_folder(first) / "tokens.parquet").drop_columns("run_id")
    item = "0" * 16
    more = {
        "run_id": pa.array([item] * tokens.num_rows),
        "item": pa.array([0] * tokens.num_rows, pa.int32()),
        "choice": pa.array([0] * tokens.num_rows, pa.int32()),
        "correct": pa.array([None, True, False] * (tokens.num_rows // 3), pa.bool_()),
    }
    for name, column in more.items():
        tokens = tokens.append_column(name, column)
    tables = {"rank_counts": schema.RANK_COUNTS.empty_table(), "documents": schema.DOCUMENTS.empty_table()}
    of_items = tokens.select(schema.ITEMS_TOKENS.names).cast(schema.ITEMS_TOKENS)
    facts = {name: value for name, value in store.manifest(first).items() if name not in ("files", "seal")}
    store.write_run(item, facts | {"run_id": item}, {"tokens": of_items, **tables})
    with connect(store) as connection:
        counts = document_ranks(connection, item, Ties.mid)
    right = [row for row in of_items.to_pylist() if row["correct"] is not False]
    assert len(right) == tokens.num_rows * 2 // 3
    check(counts, [(row["doc_id"], row["greater"] + row["ties"] / 2 + 1, row["logprob"]) for row in right])


def test_a_rank_that_was_not_told_is_an_error_where_the_rule_needs_it(tmp_path: Path) -> None:
    told = {("NULL", Ties.pessimistic): 4.0, (4, Ties.optimistic): 5.0}  # a null beside `ties`: all that are not less
    with connect(Store(tmp_path)) as connection:
        each = ", ".join(f"rank_under(1, 2, '{ties}')" for ties in Ties)
        of_hand = connection.execute(f"SELECT {each}")
        assert of_hand.fetchall() == [(4, 2, 3)], "of logits 5 3 3 3 1, the target one of the threes"
        for ties, (greater, n_ties) in product(Ties, [("NULL", 3), (4, "NULL"), ("NULL", "NULL")]):
            rank = None if n_ties == "NULL" == greater else told.get((greater, ties))
            asked = f"SELECT rank_under({greater}, {n_ties}, '{ties}')::DOUBLE"
            if rank is None:
                with pytest.raises(duckdb.Error, match=f"rank untold: {ties}"):
                    connection.execute(asked).fetchall()
            else:
                assert connection.execute(asked).fetchall() == [(rank,)]


def check(counts: pa.Table, tokens: list[tuple[int, float, float]]) -> None:
    """Counts of document and rank, and sums of the log-probabilities in the order of the tokens, to the last bit."""
    of_place: dict[tuple[int, float], list[float]] = {}
    for doc_id, rank, logprob in tokens:
        of_place.setdefault((doc_id, rank), []).append(logprob)
    assert [tuple(row.values()) for row in counts.to_pylist()] == [
        (*place, len(logprobs), functools.reduce(operator.add, logprobs))
        for place, logprobs in sorted(of_place.items())
    ]
