"""Rows that the index has are those of their files, and a file that was touched since is read again."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from rbpx.files.entries import atomic_remove
from rbpx.store import schema
from rbpx.store.checks import integrity
from rbpx.store.index import refresh_index
from rbpx.store.messages import collected_messages
from rbpx.store.sql import relations
from rbpx.store.sql.queries import connect
from rbpx.store.sql.relations import INDEX, known_rows, opened_index, stamps_of
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


def known(store: Store) -> list[str]:
    with opened_index(store) as index:
        names, _ = known_rows(index, {"rank_fits": stamps_of(store, "rank_fits")}).get("rank_fits", ([], None))
    return [name.removeprefix("run-mid-") for name in names]


def rows(store: Store) -> list[tuple[str, float]]:
    """What the relation has; the same as if each file had been read, in the same order and types."""
    stamps = {name: stamps_of(store, name) for name in relations.BY_RECORD}
    with collected_messages() as said, opened_index(store) as index:
        table = relations.record_tables(store, stamps, index)["rank_fits"]
    with collected_messages() as said_by_files:
        assert table.equals(relations.table(store, "rank_fits"))
    assert said == said_by_files
    return list(zip(table["distribution"].to_pylist(), table["loglik"].to_pylist(), strict=True))


def test_what_is_corrupt_is_never_known_and_said_each_time(store: Store) -> None:
    path = write(store, "weibull", -3.0)
    path.write_text(path.read_text().replace("1.5", "2.5"))
    for _ in range(2):
        refresh_index(store)
        assert "weibull" not in known(store)
        with collected_messages() as said, opened_index(store) as index:
            relations.record_tables(store, {name: stamps_of(store, name) for name in relations.BY_RECORD}, index)
        assert "run-mid-weibull.json" in said[0]
        assert len(rows(store)) == 3


@pytest.mark.parametrize("harm", ["deleted", "cut short", "of an earlier version", "of fewer columns"])
def test_an_index_that_says_nothing_of_its_records_knows_none(harm: str, store: Store) -> None:
    index = store.root / INDEX
    if harm == "deleted":
        index.unlink()
    elif harm == "cut short":
        index.write_bytes(index.read_bytes()[:9000])
    else:
        earlier = "DROP TABLE index_records" if harm == "of an earlier version" else "ALTER TABLE rank_fits DROP status"
        with duckdb.connect(str(index)) as connection:
            connection.execute(earlier)
    assert known(store) == []
    assert len(rows(store)) == 4


def test_an_index_of_a_version_with_fewer_columns_is_made_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = schema.RANK_FITS.remove(schema.RANK_FITS.get_field_index("status"))
    with monkeypatch.context() as earlier:
        earlier.setitem(relations.BY_RECORD, "rank_fits", fewer)
        (store.root / INDEX).unlink()
        refresh_index(store)
    refresh_index(store)
    with opened_index(store) as index:
        assert index is not None
        assert index.execute("SELECT count(*) FROM rank_fits WHERE status IS NULL").fetchall() == [
            (len(DISTRIBUTIONS),)
        ]


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


def test_runs_of_several_versions_are_one_relation_in_the_index(runs: Watched) -> None:
    query = "SELECT run_id, first_byte, item, correct FROM tokens WHERE doc_id = 1 ORDER BY run_id"
    of_each = [("a", 1, None, None), ("b", None, None, None), ("c", 1, 1, False)]
    assert asked(runs, query) == [row for row in of_each for _ in range(2)]
    write_run(runs, "d", schema.TOKENS)
    refresh_index(runs)
    assert asked(runs, query)[6:] == [("d", 1, None, None)] * 2


def test_a_run_that_was_measured_again_is_read_again(runs: Watched) -> None:
    """Under its old request's record: what a run says is in its manifest, whose stamp has changed."""
    atomic_remove(runs.run_folder("b"))
    write_run(runs, "b", schema.ITEMS_TOKENS)
    runs.read.clear()
    refresh_index(runs)
    assert sorted(runs.read) == ["b", "cell-b"]
    assert asked(runs, "SELECT item FROM tokens WHERE run_id = 'b'") == [(1,), (1,)]


def test_a_run_that_was_damaged_leaves_the_index_and_comes_back(runs: Watched) -> None:
    path = runs.run_folder("b") / "tokens.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    refresh_index(runs)
    assert asked(runs, "SELECT run_id FROM runs ORDER BY ALL") == [("a",), ("c",)]
    path.write_bytes(whole)
    refresh_index(runs)
    assert asked(runs, "SELECT DISTINCT run_id FROM tokens ORDER BY ALL") == [("a",), ("b",), ("c",)]


def test_what_is_remembered_of_many_runs_is_what_is_checked_of_few(
    runs: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "_REMEMBERED_FROM_ITEMS", 2)
    assert integrity.sound_runs(runs) == ["a", "b", "c"]
    monkeypatch.setattr(integrity, "run_fault", lambda store, run_id: f"{run_id} was looked at")
    monkeypatch.setattr(integrity, "_checked_before", {})  # as in another process
    assert integrity.sound_runs(runs) == ["a", "b", "c"]
    write_run(runs, "d")
    assert integrity.sound_runs(runs) == ["a", "b", "c"]


def test_all_rows_of_an_index_that_is_up_to_date_are_known(store: Store) -> None:
    assert sorted(known(store)) == list(DISTRIBUTIONS)
    assert rows(store) == [("lognormal", 0.0), ("power_law", -1.0), ("power_law_cutoff", -2.0), ("weibull", -3.0)]


def test_what_was_replaced_removed_or_added_since_is_read(store: Store) -> None:
    write(store, "lognormal", 7.0)
    store.drop_record("rank_fits", "run-mid-power_law")
    write(store, "zipf", 9.0)
    assert sorted(known(store)) == ["power_law_cutoff", "weibull"]
    assert rows(store) == [("lognormal", 7.0), ("power_law_cutoff", -2.0), ("weibull", -3.0), ("zipf", 9.0)]
    refresh_index(store)
    assert len(known(store)) == 4
    assert [loglik for _, loglik in rows(store)] == [7.0, -2.0, -3.0, 9.0]
