"""`where=` on import chooses rows by SQL over the columns of the file, and over nothing else."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rbpx.errors import RbpxError
from rbpx.files.rows import read_table
from rbpx.store.imports.chosen_rows import rows_where
from rbpx.store.sql import SqlLimits
from tests.support import imports
from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.imports import found, imported
from tests.support.places import SHARED
from tests.support.stores import snapshot
from tests.support.tables import write_table

ROWS: list[dict[str, Any]] = [
    {"run": "a", "S": "60M", "val loss": 3.1, "outlier": False, "tokens": 1000},
    {"run": "b", "S": "60M", "val loss": 9.9, "outlier": True, "tokens": 2000},
    {"run": "c", "S": "120M", "val loss": float("nan"), "outlier": False, "tokens": 3000},
    {"run": "d", "S": "120M", "val loss": 2.9, "outlier": False, "tokens": 4000},
]
COLUMNS = 'columns={loss_nats: "val loss", model: run, D: {column: tokens, times: 1}}'


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Four runs, one of them flagged."""
    return write_table(tmp_path / "runs.csv", ROWS)


def bring(file: Path, store: Path, cwd: Path, *words: str, check: int | None = 0) -> Answer:
    told = ("source=me", "family=lab", "dataset=c4", COLUMNS)
    return imports.bring(file, store, cwd, *told, *words, check=check)


def models(store: Path) -> list[str]:
    return [row["model"] for row in imported(store, "model")]


CHOSEN = {
    "NOT outlier": "acd",
    "outlier = false AND tokens >= 1000.5": "cd",
    '"val loss" < 5': "ad",
    '"val loss" IS NULL': "c",
    "run IN ('a', 'b') -- not the others": "ab",
    "S = '120M'": "cd",
    "tokens % 2000 = 0": "bd",
}


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_condition_means_the_same_in_every_format(suffix: str, tmp_path: Path) -> None:
    table = read_table(write_table(tmp_path / f"runs{suffix}", ROWS))
    for where, runs in CHOSEN.items():
        of = rows_where(table, where)
        assert "".join(of.cells("run")) == runs, where
        assert [row.number for row in of.rows] == ["abcd".index(run) + 1 for run in runs]


@pytest.mark.parametrize("typed", ["where=tokens < 1500", 'where="tokens < 1500"', "where=tokens<1500"])
def test_a_condition_is_typed_as_it_is_or_as_hydra_has_it(typed: str, file: Path, store: Path, cwd: Path) -> None:
    answer = bring(file, store, cwd, typed)
    assert models(store) == ["a"]
    assert f"left out 3 rows of {file} that where= does not choose" in answer.stderr
    assert f"ignored columns of {file}: outlier" in answer.stderr


def test_a_column_that_chooses_is_not_among_those_ignored(file: Path, store: Path, cwd: Path) -> None:
    assert "ignored" not in bring(file, store, cwd, "where=NOT outlier").stderr


def test_rows_that_are_not_chosen_have_no_faults_and_the_others_keep_their_lines(
    file: Path, store: Path, cwd: Path
) -> None:
    with file.open("a") as lines:
        lines.write("e,60X,3,True,5\nf,60X,3,False,5\n")
    (line,) = bring(file, store, cwd, "where=NOT outlier", check=2).stderr.splitlines()
    assert f"{file}, line 7: S is 60X" in line
    bring(file, store, cwd, "where=NOT outlier AND run <> 'f'")


WRONG = {
    "a column that is not there": ("los < 5", ["where='los < 5'", '"los" not found', "run, S, val loss"]),
    "no SQL": ("tokens <", ["Parser Error"]),
    "no condition": ("tokens", ["it is BIGINT, not true or false"]),
    "another statement": ("true; DROP TABLE x", ["Parser Error"]),
    "two expressions": ("true), (false", ["Parser Error"]),
    "a file": ("tokens > (SELECT count(*) FROM read_csv('/etc/passwd'))", ["disabled by configuration"]),
    "a table": ("tokens > (SELECT count(*) FROM observations)", ["observations does not exist"]),
    "a setting": ("(SELECT count(*) FROM pragma_database_list()) > 0 AND tokens > getenv('HOME')", ["where="]),
    "text that is no number": ("S > 7", ["Cannot compare values of type VARCHAR"]),
    "nothing": (" ", ["Parser Error"]),
    "no row": ("tokens > 1e9", ["is true of none of the 4 rows"]),
}  # fmt: skip


@pytest.mark.parametrize(("where", "says"), WRONG.values(), ids=WRONG)
def test_a_condition_that_cannot_be_is_one_line(
    where: str, says: list[str], file: Path, store: Path, cwd: Path
) -> None:
    (line,) = bring(file, store, cwd, f"where={where}", check=2).stderr.splitlines()
    assert [part for part in says if part not in line] == []
    assert not store.exists()


def test_a_condition_that_takes_too_long_is_stopped(file: Path) -> None:
    endless = "tokens > (SELECT sum(a.range * b.range % 7) FROM range(10000000) AS a, range(10000000) AS b)"
    with pytest.raises(RbpxError, match=r"took longer than sql_timeout_s=0\.2 and was stopped; give one SQL expr"):
        rows_where(read_table(file), endless, SqlLimits(0.2))


def test_two_choices_of_one_file_stand_beside_each_other_with_where_they_come_from(
    file: Path, store: Path, cwd: Path
) -> None:
    bring(file, store, cwd, "where=tokens < 3000")
    answer = bring(file, store, cwd, "where=NOT outlier")
    assert "imported 2 observations" in answer.stderr
    assert "(1 of them were there already)" in answer.stderr
    assert models(store) == ["a", "b", "d"]
    listed = json.loads(here("status", "--store", store, "--format", "json", cwd=cwd, check=0).stdout)
    assert {(row["where"], row["n_observations"]) for row in listed} == {("tokens < 3000", 2), ("NOT outlier", 1)}
    before = snapshot(store)
    assert "1 observation of an earlier" in bring(file, store, cwd, "where=NOT outlier").stderr
    assert "nothing new" in bring(file, store, cwd).stderr
    assert snapshot(store) == before


@pytest.mark.parametrize("what", ["tokens", "samples"])
def test_what_takes_all_of_a_file_refuses_a_choice(what: str, file: Path, store: Path, cwd: Path) -> None:
    (line,) = here(
        "import", what, file, "source=me", "where=true", "--store", store, cwd=cwd, check=2
    ).stderr.splitlines()
    assert f"where= is of import FILE, and import {what} takes all" in line


def test_dense_runs_of_a_published_table_are_chosen_by_its_columns(store: Path, cwd: Path) -> None:
    path = SHARED / "reference" / "routing_curves.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not beside the project")
    with gzip.open(path, "rt") as lines:
        theirs = [
            (row["hyper_id"], int(row["step"]), float(row["loss_validation"]))
            for row in csv.DictReader(lines)
            if row["num_experts"] == "1" and float(row["step"]) >= 100_000 and row["loss_validation"] not in ("", "nan")
        ]
    words = "columns={S: dense_parameter_count, loss_nats: loss_validation, model: hyper_id}"
    told = ("source=routing", "family=dense", "dataset=val", words)
    imports.bring(path, store, cwd, *told, "where=num_experts = 1 AND step >= 1e5")
    assert found(store, "model, training_step, cross_entropy_nats") == sorted(theirs)
