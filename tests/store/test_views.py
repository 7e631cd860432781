"""rbpx.duckdb holds views alone: any DuckDB client sees the rows that commands see, as they are at that moment."""

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from rbpx.store.messages import collected_messages
from rbpx.store.relations import INDEX, write_views
from rbpx.store.schema import COLUMNS
from rbpx.store.sql import connect
from rbpx.store.store import Store
from tests.support.composed import here
from tests.support.damage import Harm, emptied, faults, run_of, truncated
from tests.support.synthetic import Truth, write_store

FROZEN = Path(__file__).parents[1] / "same_answers" / "stores"
DERIVED = ("true_tokens", "measured", "rbp_at(3, 'mid')")


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Store:
    """A copy of the drawn store that has its views."""
    store = Store(shutil.copytree(whole, tmp_path / "store"))
    write_views(store)
    return store


def seen(store: Store, query: str) -> list[Any]:
    """What another client answers from the views."""
    with duckdb.connect(str(store.root / INDEX), read_only=True) as client:
        return client.execute(query).fetchall()


def commanded(store: Store, query: str) -> list[Any]:
    """What a command answers."""
    with connect(store) as connection:
        return connection.execute(query).fetchall()


def n_rows(store: Store, kind: str) -> int:
    return sum(pq.read_metadata(path).num_rows for path in store.root.glob(f"runs/[!_]*/{kind}.parquet"))


@pytest.mark.parametrize("name", ["demo", "imported", "items", "trainings"])
def test_views_have_the_rows_that_commands_see(name: str, tmp_path: Path) -> None:
    store = Store(shutil.copytree(FROZEN / name, tmp_path / "store"))
    write_views(store)
    with duckdb.connect(str(store.root / INDEX), read_only=True) as client, connect(store) as connection:
        for relation in (*COLUMNS, *DERIVED):
            for query in (f"SELECT column_name, column_type FROM (DESCRIBE FROM {relation})", f"FROM {relation}"):
                rows = [sorted(map(repr, each.execute(query).fetchall())) for each in (client, connection)]
                assert rows[0] == rows[1], f"{relation} of {name}"
    for kind in ("tokens", "rank_counts", "documents"):
        assert seen(store, f"SELECT count(*) FROM {kind}") == [(n_rows(store, kind),)]
    sizes = sorted(json.loads(path.read_text())["size"] for path in store.paths("cells"))
    assert seen(store, "SELECT size FROM runs ORDER BY size") == [(size,) for size in sizes]


def test_views_are_never_out_of_date_and_written_once(store: Store) -> None:
    written = (store.root / INDEX).stat().st_mtime_ns
    sizes = "SELECT size FROM runs ORDER BY ALL"
    store.drop_run(run_of(store.root, "m"))
    assert seen(store, sizes) == [("l",), ("s",), ("xs",)]
    write_store(store.root, Truth(S=(10**6,)), seed=0, n_documents=2, n_tokens=5)
    assert seen(store, sizes) == [("1000000",), ("l",), ("s",), ("xs",)]
    assert seen(store, "SELECT count(*) FROM tokens WHERE run_id LIKE 'synthetic%'") == [(10,)]
    write_views(store)
    assert (store.root / INDEX).stat().st_mtime_ns == written


@pytest.mark.parametrize("harm", ["deleted", "emptied", "cut short", "overwritten", "of another database"])
def test_views_that_were_harmed_are_made_again(harm: str, store: Store) -> None:
    views = store.root / INDEX
    whole = views.read_bytes()
    views.unlink()
    if harm == "of another database":
        with duckdb.connect(str(views)) as other:
            other.execute("CREATE TABLE runs AS SELECT 1 AS one")
    elif harm != "deleted":
        views.write_bytes({"emptied": b"", "cut short": whole[: len(whole) // 3]}.get(harm, b"no database " * 999))
    write_views(store)
    assert seen(store, "SELECT count(*) FROM tokens") == [(n_rows(store, "tokens"),)]


def test_an_empty_store_has_all_relations_without_rows(tmp_path: Path, cwd: Path) -> None:
    Store(tmp_path / "store").prepare()
    here("status", "--store", tmp_path / "store", cwd=cwd)
    counts = " + ".join(f"(SELECT count(*) FROM {relation})" for relation in (*COLUMNS, *DERIVED))
    assert seen(Store(tmp_path / "store"), f"SELECT {counts}") == [(0,)]


def test_a_store_that_moved_has_views_of_its_new_place(store: Store, cwd: Path, tmp_path: Path) -> None:
    query = "SELECT run_id, size, rbp FROM rbp_at(42, 'mid') ORDER BY ALL"
    rows = seen(store, query)
    assert len(rows) == 4
    moved = Store(shutil.move(store.root, tmp_path / "moved"))
    here("sql", "SELECT 1", "--store", moved.root, cwd=cwd, check=0)
    assert seen(moved, query) == rows
    assert not store.root.exists()


def test_what_an_imported_sweep_varies_becomes_a_column(store: Store, cwd: Path) -> None:
    table = cwd.parent / "rows.csv"
    table.write_text("family,size,S,dataset,k,rbp,vary_width\ntoy,1b,1000000000,wiki,1,0.41,3\n")
    query = "SELECT vary_width FROM observations WHERE source = 'them'"
    with pytest.raises(duckdb.BinderException):
        seen(store, query)
    here("import", table, "source=them", "ties=mid", "--store", store.root, cwd=cwd, check=0)
    assert seen(store, query) == commanded(store, query) == [(3.0,)]


BROKEN = {
    "text": b"{", "list": b"[1]", "no UTF-8": b'{"a": "\xff"}', "empty": b"", "deep": b"[" * 10**5,
    "number": b"1", "NUL": b"\x00" * 50, "surrogate": b'{"family": "\\ud800"}',
    "long number": b'{"k": ' + b"9" * 5000 + b"}",
}  # fmt: skip


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_record_that_cannot_be_parsed_has_no_row_and_is_named_once(content: bytes, store: Store) -> None:
    run_id = run_of(store.root, "m")
    broken = {kind: store.root / kind / f"{'b' * 16}.json" for kind in ("fits", "rank_fits", "failures", "forecasts")}
    whole = {kind: seen(store, f"SELECT count(*) FROM {kind}") for kind in broken}
    for path in (*broken.values(), store.run_folder(run_id) / "manifest.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    with collected_messages() as said:
        for answer in (seen, commanded):
            assert answer(store, "SELECT size FROM runs ORDER BY ALL") == [("l",), ("s",), ("xs",)]
            for kind, path in broken.items():
                assert answer(store, f"SELECT count(*) FROM {kind}") == whole[kind], path
    assert sum("left out" in line and len(line) < 500 for line in said) == 5
    for name in (*(f"{kind}/{path.name}" for kind, path in broken.items()), f"run {run_id}"):
        assert sum(line.startswith(f"{name} in store={store.root} is left out: ") for line in said) == 1, name


def test_a_value_that_its_column_cannot_hold_is_null_and_no_error(store: Store) -> None:
    cell = next(store.records("cells"))
    store.write_record("cells", cell["cell_key"], cell | {"training_tokens": "many", "asked_at": 5, "variant": ["x"]})
    query = f"SELECT training_tokens, asked_at FROM runs WHERE run_id = '{cell['run_id']}'"
    assert seen(store, query) == commanded(store, query) == [(None, None)]


@pytest.mark.parametrize(("table", "harm"), [("tokens", truncated), ("rank_counts", truncated), ("documents", emptied)])
def test_a_torn_table_is_passed_over_by_commands_and_named_by_views(table: str, harm: Harm, store: Store) -> None:
    run_id = run_of(store.root, "m")
    harm(store.part(run_id, table))
    with collected_messages() as said:
        assert commanded(store, f"SELECT count(DISTINCT run_id) FROM {table}") == [(3,)]
        assert commanded(store, "SELECT size FROM runs ORDER BY ALL") == [("l",), ("s",), ("xs",)]
    (line,) = said
    assert f"run {run_id} in store={store.root} is left out: {table}.parquet is no whole Parquet file" in line
    assert f"rbpx store rm {run_id}, then run" in line
    with pytest.raises(duckdb.Error, match=f"{run_id}/{table}.parquet"):
        seen(store, f"SELECT count(*) FROM {table}")
    whole = run_of(store.root, "l")
    assert seen(store, f"SELECT count(*) > 0 FROM {table} WHERE run_id = '{whole}'") == [(True,)]
    assert seen(store, f"SELECT count(*) > 0 FROM {table}_of(['{whole}'])") == [(True,)]
    assert seen(store, "SELECT count(DISTINCT run_id) FROM vocab JOIN runs USING (tokenizer_hash)") == [(4,)]


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder with a store that a pattern would match."""
    for name in ("withX", "aXb", "c", "with", "x y"):
        write_store(tmp_path / "in" / name, Truth(S=(10,)), seed=0, n_documents=1, n_tokens=2)
    return tmp_path / "in"


@pytest.mark.parametrize("name", ["with*", "[abc]", "it's", "{c,d}", "a b ü", 'q"', "a?b", "a\\b", "a$b;--"])
def test_a_path_with_characters_of_patterns_reads_no_neighbour(name: str, beside: Path, whole: Path, cwd: Path) -> None:
    store = Store(shutil.copytree(whole, beside / name))
    answer = here(
        "sql", "SELECT count(*) AS n FROM tokens", "--store", store.root, "--format", "json", cwd=cwd, check=0
    )
    assert json.loads(answer.stdout) == [{"n": n_rows(store, "tokens")}]
    assert sorted(commanded(store, "SELECT size FROM runs")) == [("l",), ("m",), ("s",), ("xs",)]
    assert answer.stderr == ""
    if name not in ("a?b", "a\\b"):  # where DuckDB can open no file
        assert seen(store, "SELECT size FROM runs ORDER BY ALL") == [("l",), ("m",), ("s",), ("xs",)]
        assert seen(store, "SELECT count(*) FROM tokens") == [(n_rows(store, "tokens"),)]


def test_views_are_in_a_storage_version_that_older_clients_open(store: Store) -> None:
    header = (store.root / INDEX).read_bytes()[:20]
    assert header[8:12] == b"DUCK"
    assert struct.unpack("<Q", header[12:20]) == (64,)  # that of DuckDB 0.10 to 1.1


def test_a_copy_that_file_syncing_leaves_has_no_row_and_is_named(store: Store) -> None:
    counts = "SELECT " + ", ".join(f"(SELECT count(*) FROM {each})" for each in ("runs", "fits", "vocab", "tokens"))
    before = seen(store, counts)
    paths = [min((store.root / kind).glob("[!_]*.*")) for kind in ("cells", "fits", "vocab")]
    for path in paths:
        for name in (f"{path.stem} (1)", f"{path.stem}.sync-conflict-20261122", f"Copy of {path.stem}"):
            shutil.copy(path, path.with_name(f"{name}{path.suffix}"))
    run_id = run_of(store.root, "m")
    shutil.copytree(store.run_folder(run_id), store.root / "runs" / f"{run_id} (1)")
    named = {fault.name for fault in faults(store.root)}
    assert {f"{run_id} (1)", *(f"{path.stem} (1)" for path in paths)} <= named
    assert len(named) == 3 * len(paths) + 1
    with collected_messages() as said:
        assert seen(store, counts) == commanded(store, counts) == before
    assert all(any(path.stem in line for line in said) for path in paths[:1])
    for kind in ("cells", "fits"):
        for name in (".DS_Store", "Thumbs.db", f"._{run_id}.json", f".~lock.{run_id}.json#"):
            (store.root / kind / name).write_text("{}")
    with collected_messages() as again:
        assert commanded(store, counts) == before
    assert again == said, "what file systems leave is passed over in silence"
