"""Any relation, and the answer to any query, leaves a store whole, in the format that was asked for."""

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from rbpx.errors import RbpxError
from rbpx.files.leftovers import held
from rbpx.store.export import export
from rbpx.store.relations import write_views
from rbpx.store.schema import COLUMNS
from tests.support.commands import here
from tests.support.stores import columns_of, run_folders, snapshot
from tests.support.synthetic import Truth, write_store

ONE_SIZE = "SELECT size, k, ties, rbp, revision FROM observations WHERE size = '1000' ORDER BY ALL"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("export") / "store"
    write_views(write_store(root, Truth(S=(1_000, 10_000, 100_000)), seed=1, n_documents=4, n_tokens=8))
    return root


def asked_of_duckdb(store: Path, query: str) -> list[dict[str, Any]]:
    """The same answer by another way: the index, opened by DuckDB alone."""
    with duckdb.connect(str(store / "rbpx.duckdb"), read_only=True) as connection:
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def test_every_relation_can_be_exported_as_parquet(store: Path, tmp_path: Path) -> None:
    for relation in COLUMNS:
        export(str(store), relation, str(tmp_path / f"{relation}.parquet"))
        counted = asked_of_duckdb(store, f"SELECT count(*) AS n FROM {relation}")
        assert pq.read_table(tmp_path / f"{relation}.parquet").num_rows == counted[0]["n"], relation
    assert len(list(tmp_path.iterdir())) == len(COLUMNS)


def test_the_suffix_of_the_output_decides_and_all_formats_say_the_same(store: Path, tmp_path: Path) -> None:
    expected = asked_of_duckdb(store, ONE_SIZE)
    assert len(expected) > 6
    for suffix in ("csv", "json", "parquet"):
        export(str(store), ONE_SIZE, str(tmp_path / f"out.{suffix}"))
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == expected
    assert json.loads((tmp_path / "out.json").read_text()) == expected
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert list(rows[0]) == list(expected[0])
    assert [{**row, "k": int(row["k"]), "rbp": float(row["rbp"])} for row in rows] == [
        row | {"revision": row["revision"] or ""} for row in expected
    ]
    export(str(store), "SELECT 1 AS one", str(tmp_path / "out.txt"), ".json")  # what the name does not tell
    assert json.loads((tmp_path / "out.txt").read_text()) == [{"one": 1}]


def test_without_an_output_it_is_csv_on_stdout_and_sql_writes_parquet_too(
    store: Path, cwd: Path, tmp_path: Path
) -> None:
    words = (ONE_SIZE, "--store", store)
    printed = here("export", *words, cwd=cwd, check=0)
    assert [row["size"] for row in csv.DictReader(io.StringIO(printed.stdout))][:2] == ["1000", "1000"]
    assert printed.stderr == ""
    here("sql", *words, "--output", tmp_path / "out.parquet", cwd=cwd, check=0)
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == asked_of_duckdb(store, ONE_SIZE)


def test_a_question_writes_what_the_suffix_of_its_output_says(store: Path, cwd: Path, tmp_path: Path) -> None:
    asked = ("emergence", "k=1", "n=1", "--store", store)
    for name, begins in (
        ("a.txt", ""),
        ("a.md", "<!-- rbpx"),
        ("a.csv", "kind,"),
        ("a.json", "["),
        ("a.tex", "% rbpx"),
    ):
        here(*asked, "--output", tmp_path / name, cwd=cwd, check=0)
        assert (tmp_path / name).read_text().lstrip().startswith(begins), name
    assert (tmp_path / "a.txt").read_text() == here(*asked, cwd=cwd, check=0).stdout


def test_tokens_leave_as_they_were_measured(store: Path, tmp_path: Path) -> None:
    export(str(store), "tokens", str(tmp_path / "tokens.csv"))
    rows = list(csv.DictReader(io.StringIO((tmp_path / "tokens.csv").read_text())))
    runs = {name: columns_of(folder, "tokens") for name, folder in run_folders(store).items()}
    assert len(rows) == sum(len(run["greater"]) for run in runs.values())
    assert {int(row["greater"]) + int(row["ties"]) + 1 - int(row["rank"]) for row in rows} == {0}
    for name, run in runs.items():
        ranks = sorted(int(row["greater"]) for row in rows if row["run_id"] == name)
        assert ranks == sorted(run["greater"].tolist())


def test_an_answer_without_rows_is_a_header_or_an_empty_array(store: Path, tmp_path: Path) -> None:
    for suffix, expected in (("csv", "size\n"), ("json", "[]\n")):
        export(str(store), "SELECT size FROM runs WHERE size = 'nosuch'", str(tmp_path / f"out.{suffix}"))
        assert (tmp_path / f"out.{suffix}").read_text() == expected


def test_a_wrong_export_is_one_line_and_writes_nothing(store: Path, tmp_path: Path) -> None:
    before = snapshot(store)
    for what, output, suffix, says in (
        ("nosuch", "out.csv", None, ["nosuch is not a relation", "observations", "fits"]),
        ("imports.csv", "out.csv", None, ["imports.csv is not a relation"]),
        ("SELECT * FROM nosuch", "out.csv", None, ["nosuch does not exist", "relations: runs, fits"]),
        ("DELETE FROM runs", "out.csv", None, ["SELECT", "DELETE"]),
        ("runs", "out.xlsx", None, ["out.xlsx", ".csv, .json, .parquet"]),
        ("runs", "out.csv", ".json", ["out.csv", "format=", "differ"]),
        ("runs", "nosuch/out.csv", None, ["nosuch/out.csv", "name another"]),
        ("runs", "nosuch/out.parquet", None, ["nosuch/out.parquet", "name another"]),
    ):
        with pytest.raises(RbpxError) as problem:
            export(str(store), what, str(tmp_path / output), suffix)
        assert [part for part in says if part not in str(problem.value)] == [], str(problem.value)
        assert "\n" not in str(problem.value)
    with pytest.raises(RbpxError, match="does not exist"):
        export(str(tmp_path / "nosuch"), "runs", str(tmp_path / "out.csv"))
    assert list(tmp_path.iterdir()) == []
    assert snapshot(store) == before


def test_what_a_killed_export_left_goes_at_the_next_and_what_a_living_one_writes_stays(
    store: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.csv"
    output.write_text("before")
    left, living = (tmp_path / f".out.csv.{at:08x}.tmp" for at in range(2))
    for path in (left, living):
        path.touch()
        os.utime(path, (0, 0))
    with held(living):
        export(str(store), "SELECT 1 AS one", str(output))
    assert sorted(tmp_path.iterdir()) == [living, output]
    assert output.read_text() == "one\n1\n"


def test_a_full_disk_ends_with_1_and_what_to_do(store: Path, cwd: Path) -> None:
    for words in (("export", "runs", "--format", "csv"), ("fit", "--format", "json"), ("report",)):
        told = here(*words, "--store", store, "--output", "/dev/full", cwd=cwd, check=1)
        assert told.stderr.splitlines()[-1].endswith("make room and run the same line again"), words


def test_an_export_into_a_device_or_a_pipe_leaves_it_one(store: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    export(str(store), "SELECT 1 AS one", str(pipe))
    assert os.read(reader, 100) == b"one\n1\n"
    os.close(reader)
    assert pipe.is_fifo()
