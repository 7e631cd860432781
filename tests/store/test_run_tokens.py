"""Tokens of one run, read past SQL: what `true_tokens` has, and the same errors."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.errors import DamageError, RbpxError
from rbpx.store import schema
from rbpx.store.queries import connect
from rbpx.store.run_tokens import ranks_under, run_tokens
from rbpx.store.store import Store
from rbpx.ties import Ties
from tests.support.synthetic import Truth, write_store

COLUMNS = ["doc_id", "position", "greater", "ties", "logprob"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(tmp_path, Truth(S=(1_000, 10_000, 100_000)), seed=1, n_documents=5, n_tokens=30)


def test_the_tokens_of_each_run_come_as_they_are_stored(store: Store) -> None:
    with connect(store) as connection:
        for run_id in store.run_ids():
            of_file = pq.read_table(store.run_folder(run_id) / "tokens.parquet", columns=COLUMNS)
            assert run_tokens(connection, run_id, COLUMNS).to_pylist() == of_file.to_pylist()
        assert run_tokens(connection, "no such run", COLUMNS).num_rows == 0


def test_a_store_without_runs_has_no_tokens(tmp_path: Path) -> None:
    with connect(Store(tmp_path)) as connection:
        nothing = run_tokens(connection, "no such run", COLUMNS)
    assert (nothing.num_rows, nothing.column_names) == (0, COLUMNS)


def test_tokens_of_wrong_choices_are_left_out_as_by_sql(store: Store) -> None:
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
        query = f"SELECT {', '.join(COLUMNS)} FROM tokens WHERE correct IS NOT FALSE AND run_id = '{item}'"
        by_sql = connection.sql(query).fetchall()
        rows = run_tokens(connection, item, COLUMNS).to_pylist()
    assert len(rows) == tokens.num_rows * 2 // 3
    assert [tuple(row.values()) for row in rows] == by_sql


def test_a_file_that_cannot_be_read_is_damage(store: Store) -> None:
    first, *_ = store.run_ids()
    path = store.run_folder(first) / "tokens.parquet"
    with connect(store) as connection:
        whole = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(whole[:200] + bytes(200) + whole[400:])
        with pytest.raises(DamageError, match=r"tokens cannot be read: .*; rbpx store verify names the file"):
            run_tokens(connection, first, COLUMNS)


@pytest.mark.parametrize("ties", list(Ties))
@pytest.mark.parametrize("untold", ["greater", "ties"])
def test_a_rank_that_was_not_told_is_an_error_where_the_rule_needs_it(ties: Ties, untold: str) -> None:
    told = {"greater": [4, 0], "ties": [3, 1]}
    tokens = pa.table(
        {name: pa.array([None, *counts[1:]] if name == untold else counts) for name, counts in told.items()}
    )
    if (ties, untold) == (Ties.pessimistic, "greater"):  # `ties` are then all that are not less
        assert ranks_under(tokens, ties).tolist() == [4.0, 2.0]
    elif (ties, untold) == (Ties.optimistic, "ties"):
        assert ranks_under(tokens, ties).tolist() == [5.0, 1.0]
    else:
        with pytest.raises(RbpxError, match=f"told no ranks with ties={ties}; see `engine`"):
            ranks_under(tokens, ties)
