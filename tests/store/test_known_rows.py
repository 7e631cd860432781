"""Rows that the index has are those of their files, and a file that was touched since is read again."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.store import schema
from rbpx.store.index import refresh_index
from rbpx.store.messages import collected_messages
from rbpx.store.sql import relations
from rbpx.store.sql.queries import connect
from rbpx.store.sql.relations import INDEX, opened_index, stamps_of
from rbpx.store.store import Record, Store, now

DISTRIBUTIONS = ("lognormal", "power_law", "power_law_cutoff", "weibull")


def write(store: Store, distribution: str, loglik: float) -> Path:
    name = f"run-mid-{distribution}"
    record = {"run_id": "run", "ties": "mid", "distribution": distribution, "params": {"mu": [1.5, None]}}
    store.write_record("rank_fits", name, record | {"loglik": loglik, "created_at": now()})
    return store.root / "rank_fits" / f"{name}.json"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.prepare()
    for at, distribution in enumerate(DISTRIBUTIONS):
        write(store, distribution, -1.0 * at)
    refresh_index(store)
    return store


def rows(store: Store) -> list[tuple[str, float]]:
    """What the relation has; the same as if each file had been read, in the same order and types."""
    stamps = {name: stamps_of(store, name) for name in relations.BY_RECORD}
    with collected_messages() as said, opened_index(store) as index:
        table = relations.record_tables(store, stamps, index)["rank_fits"]
    with collected_messages() as said_by_files:
        assert table.equals(relations.table(store, "rank_fits"))
    assert said == said_by_files
    return list(zip(table["distribution"].to_pylist(), table["loglik"].to_pylist(), strict=True))


# ---------------------------------------------------------------------------------------------------------------- runs


class Watched(Store):
    """A store that notes which manifests and records of requests are read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.read: list[str] = []

    def manifest(self, run_id: str) -> Record:
        self.read.append(run_id)
        return super().manifest(run_id)

    def record(self, kind: str, name: str) -> Record | None:
        if kind == "cells":
            self.read.append(name)
        return super().record(kind, name)


def write_run(store: Store, run_id: str, tokens: pa.Schema = schema.TOKENS) -> None:
    """A run of two tokens, whose file of tokens has these columns."""
    values = {"run_id": run_id, "logprob": -0.5, "correct": False}
    rows = pa.table({column.name: [values.get(column.name, 1)] * 2 for column in tokens}, schema=tokens)
    facts = dict.fromkeys(("n_documents", "n_skipped", "n_tokens", "n_bytes", "vocab_size"), 2)
    texts = dict.fromkeys(("protocol", "dtype", "text_hash", "tokenizer_hash"), "x")
    tables = {name: relations.BY_FILE[name].empty_table() for name in ("rank_counts", "documents")}
    store.write_run(run_id, {"run_id": run_id, **facts, **texts, "cross_entropy_nats": 0.5}, {"tokens": rows, **tables})
    cell = {"cell_key": f"cell-{run_id}", "run_id": run_id, "family": "f", "size": "1m", "dataset": "x"}
    store.write_record("cells", cell["cell_key"], cell)


@pytest.fixture
def runs(tmp_path: Path) -> Watched:
    """Runs of this version, of a version before offsets of bytes, and of items."""
    store = Watched(tmp_path / "runs")
    store.prepare()
    for run_id, columns in (
        ("a", schema.TOKENS),
        ("b", pa.schema(list(schema.TOKENS)[:7])),
        ("c", schema.ITEMS_TOKENS),
    ):
        write_run(store, run_id, columns)
    refresh_index(store)
    store.read.clear()
    return store


def asked(store: Store, query: str) -> list[tuple[object, ...]]:
    """What the index answers, which is what is answered from the files."""
    with duckdb.connect(str(store.root / INDEX), read_only=True) as index, connect(store) as connection:
        rows = index.execute(query).fetchall()
        assert rows == connection.execute(query).fetchall()
    return rows


def test_only_the_run_that_was_added_is_read(runs: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    read_schema = pq.read_schema
    monkeypatch.setattr(
        "pyarrow.parquet.read_schema", lambda path: opened.append(path.parent.name) or read_schema(path)
    )
    write_run(runs, "d", schema.ITEMS_TOKENS)
    refresh_index(runs)
    assert sorted(runs.read) == ["cell-d", "d"]
    assert opened == ["d"] * 3
    runs.drop_run("a")
    runs.read.clear()
    refresh_index(runs)
    assert (runs.read, opened[3:]) == ([], [])
    assert asked(runs, "SELECT run_id, cell_key FROM runs ORDER BY ALL") == [(r, f"cell-{r}") for r in "bcd"]
