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

from rbpx.store.sql.queries import RELATIONS
from tests.support.commands import Answer, here, start
from tests.support.stores import Measured, columns_of, run_folders, snapshot

ONE_SIZE = "SELECT size, k, ties, rbp, revision FROM observations WHERE size = 'xs' ORDER BY ALL"


def export(measured: Measured, cwd: Path, *words: object, check: int | None = 0) -> Answer:
    return here("export", *words, "--store", measured.store, cwd=cwd, check=check)


def asked_of_duckdb(store: Path, query: str) -> list[dict[str, Any]]:
    """The same answer by another way: the index, opened by DuckDB alone."""
    with duckdb.connect(str(store / "rbpx.duckdb"), read_only=True) as connection:
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_can_be_exported_as_parquet(
    relation: str, measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.parquet"
    assert export(measured, cwd, relation, "--output", output).stdout == ""
    counted = asked_of_duckdb(measured.store, f"SELECT count(*) AS n FROM {relation}")
    assert pq.read_table(output).num_rows == counted[0]["n"]
    assert list(tmp_path.glob(".*")) == []


def test_a_query_without_an_output_is_csv_on_stdout(measured: Measured, cwd: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(export(measured, cwd, ONE_SIZE).stdout)))
    expected = asked_of_duckdb(measured.store, ONE_SIZE)
    assert len(expected) > 6
    assert [{**row, "k": int(row["k"]), "rbp": float(row["rbp"])} for row in rows] == [
        row | {"revision": row["revision"] or ""} for row in expected
    ]


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_the_suffix_of_the_output_decides_and_all_formats_say_the_same(
    suffix: str, measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    output = tmp_path / f"out{suffix}"
    export(measured, cwd, ONE_SIZE, "--output", output)
    expected = asked_of_duckdb(measured.store, ONE_SIZE)
    if suffix == ".parquet":
        assert pq.read_table(output).to_pylist() == expected
    elif suffix == ".json":
        assert json.loads(output.read_text()) == expected
    else:
        rows = list(csv.DictReader(io.StringIO(output.read_text())))
        assert [float(row["rbp"]) for row in rows] == [row["rbp"] for row in expected]
        assert list(rows[0]) == list(expected[0])


def test_the_answer_of_sql_can_be_parquet_too(measured: Measured, cwd: Path, tmp_path: Path) -> None:
    here("sql", ONE_SIZE, "--output", tmp_path / "out.parquet", "--store", measured.store, cwd=cwd, check=0)
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == asked_of_duckdb(measured.store, ONE_SIZE)


def test_format_tells_what_the_name_of_the_output_does_not(measured: Measured, cwd: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    export(measured, cwd, "SELECT 1 AS one", "--output", output, "--format", "json")
    assert json.loads(output.read_text()) == [{"one": 1}]
    assert json.loads(export(measured, cwd, "SELECT 1 AS one", "--format", "json").stdout) == [{"one": 1}]


def test_tokens_leave_as_they_were_measured(measured: Measured, cwd: Path, tmp_path: Path) -> None:
    output = tmp_path / "tokens.csv"
    export(measured, cwd, "tokens", "--output", output)
    rows = list(csv.DictReader(io.StringIO(output.read_text())))
    runs = {name: columns_of(folder, "tokens") for name, folder in run_folders(measured.store).items()}
    assert len(rows) == sum(len(run["greater"]) for run in runs.values())
    for name, run in runs.items():
        ranks = sorted(int(row["greater"]) for row in rows if row["run_id"] == name)
        assert ranks == sorted(run["greater"].tolist())


def test_an_answer_without_rows_is_a_header_or_an_empty_array(measured: Measured, cwd: Path) -> None:
    query = "SELECT size FROM runs WHERE size = 'nosuch'"
    assert export(measured, cwd, query).stdout == "size\n"
    assert json.loads(export(measured, cwd, query, "--format", "json").stdout) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nosuch"], ["nosuch is not a relation", "observations", "fits"]),
        (["imports.csv"], ["imports.csv is not a relation"]),
        ([], ["takes one relation", "observations"]),
        (["runs", "tokens"], ["takes one relation", "got 2"]),
        (["SELECT * FROM nosuch"], ["nosuch", "relations:"]),
        (["DELETE FROM runs"], ["SELECT", "DELETE"]),
        (["runs", "--output", "@/out.xlsx"], ["out.xlsx", ".csv, .json, .parquet"]),
        (["runs", "--output", "@/out.csv", "--format", "json"], ["out.csv", "format=json", "differ"]),
        (["runs", "--output", "@/nosuch/out.csv"], ["nosuch/out.csv", "name another"]),
        (["runs", "--output", "@/nosuch/out.parquet"], ["nosuch/out.parquet", "name another"]),
    ],
)
def test_a_wrong_export_is_one_line_and_writes_nothing(
    words: list[str], says: list[str], measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    before = snapshot(measured.store)
    answer = export(measured, cwd, *(word.replace("@", str(tmp_path)) for word in words), check=2)
    (line,) = answer.stderr.splitlines()
    assert [part for part in says if part not in line] == [], line
    assert answer.stdout == ""
    assert sorted(tmp_path.iterdir()) == [cwd]
    assert snapshot(measured.store) == before


def test_a_store_that_is_not_there_is_said(cwd: Path, tmp_path: Path) -> None:
    answer = here("export", "runs", "--store", tmp_path / "nosuch", cwd=cwd, check=2)
    assert "does not exist" in answer.stderr
    assert not (tmp_path / "nosuch").exists()


def test_an_export_that_fails_leaves_the_file_that_was_there(measured: Measured, cwd: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    output.write_text("before")
    refused = export(measured, cwd, "SELECT * FROM nosuch", "--output", output, check=2)
    assert "nosuch does not exist" in refused.stderr
    assert "relations: runs, tokens" in refused.stderr
    assert output.read_text() == "before"
    export(measured, cwd, "SELECT 1 AS one", "--output", output)
    assert output.read_text() == "one\n1\n"
    assert sorted(tmp_path.iterdir()) == [cwd, output]


def test_an_export_into_a_device_or_a_pipe_leaves_it_one(measured: Measured, cwd: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    export(measured, cwd, "SELECT 1 AS one", "--output", pipe)
    assert os.read(reader, 100) == b"one\n1\n"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_reader_that_has_enough_is_no_error(measured: Measured, cwd: Path) -> None:
    process = start("export", "SELECT range AS n FROM range(1000000)", "--store", measured.store, cwd=cwd)
    assert process.stdout is not None
    assert process.stdout.readline() == "n\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 0
