"""A table means the same in every format, and published tables come in with the numbers that were published."""

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
from tests.support.imports import found
from tests.support.places import SHARED
from tests.support.tables import SUFFIXES, write_table

COLUMNS = "columns={S: params, D: tokens, loss_nats: loss, model: run}"


def bring(file: Path, store: Path, cwd: Path, *words: str) -> Answer:
    return imports.bring(file, store, cwd, "source=me", "family=lab", "dataset=c4", *words)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_numbers_of_every_format_are_rounded_or_left_out_alike(
    suffix: str, store: Path, cwd: Path, tmp_path: Path
) -> None:
    tokens = [4630828457.139856, 2e9, 7000000000.5, 7000000001.5]  # half a token goes to the even neighbour
    rows: list[dict[str, Any]] = [
        {"run": f"r{at}", "params": 6e7, "tokens": D, "loss": 3.0} for at, D in enumerate(tokens)
    ]
    rows += [{"run": "none", "params": 6e7, "tokens": 1e9, "loss": loss} for loss in (float("nan"), None)]
    rows[-1]["params"] = -1.0  # of a row that is left out nothing else matters
    said = bring(write_table(tmp_path / f"a{suffix}", rows), store, cwd, COLUMNS).stderr
    assert f"left out 2 rows of a{suffix} without a value, empty or NaN" in said
    assert "to whole numbers: 3 of tokens\n" in said
    assert found(store, "training_tokens") == [(2 * 10**9,), (4630828457,), (7000000000,), (7000000002,)]


def test_a_row_for_each_run_with_lists_is_a_row_for_each_element(store: Path, cwd: Path, tmp_path: Path) -> None:
    models = {"model": "a", "S": 60_000_000, "betas": [0.9, 0.95]}, {"model": "b", "S": 10**8, "betas": [0.9, 0.99]}
    logs = {"step": [1, 2, 3], "loss": [4.0, 3.5, None]}, {"step": [5], "loss": [3.0]}
    file = write_table(tmp_path / "a.parquet", [model | log for model, log in zip(models, logs, strict=True)])
    assert "left out 1 row" in bring(file, store, cwd).stderr
    assert found(store, "model, training_step, cross_entropy_nats") == [("a", 1, 4), ("a", 2, 3.5), ("b", 5, 3)]
    assert "left out 2 rows" in bring(file, store.with_name("other"), cwd, "where=step > 2").stderr


def test_a_preview_is_a_row_for_each_text_and_quantity(store: Path, cwd: Path, tmp_path: Path) -> None:
    sizes = [("10M", "7M", 3), ("10M", "9M", 2), ("20M", "7M", 2.5), ("20M", "9M", "")]
    file = write_table(tmp_path / "a.csv", [{"S": S, "D": D, "x": loss} for S, D, loss in sizes])
    words = ("source=me", "family=lab", "texts={wiki: {loss_nats: x}}", "--dry-run", "--format", "json")
    (row,) = json.loads(imports.bring(file, store, cwd, *words).stdout)
    counts = {"dataset": "wiki", "quantity": "cross_entropy_nats", "rows": 3, "new": 3, "models": 2, "runs": 3}
    assert row == row | counts | {"S_min": 1e7, "S_max": 2e7, "D_min": 7e6, "D_max": 9e6, "C_min": None}
    assert not store.exists()


# -------------------------------------------------------------------------------------------------------- conditions

ROWS: list[dict[str, Any]] = [
    {"run": "a", "S": "60M", "val loss": 3.1, "outlier": False, "tokens": 1000},
    {"run": "b", "S": "60M", "val loss": 9.9, "outlier": True, "tokens": 2000},
    {"run": "c", "S": "120M", "val loss": float("nan"), "outlier": False, "tokens": 3000},
    {"run": "d", "S": "120M", "val loss": 2.9, "outlier": False, "tokens": 4000},
]
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


def test_a_condition_that_takes_too_long_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rbpx.store.imports.chosen_rows.SqlLimits", lambda: SqlLimits(0.2))
    endless = "tokens > (SELECT sum(a.range * b.range % 7) FROM range(10000000) AS a, range(10000000) AS b)"
    with pytest.raises(RbpxError, match=r"took longer than sql_timeout_s=0\.2 and was stopped; give one SQL expr"):
        rows_where(read_table(write_table(tmp_path / "a.csv", ROWS)), endless)


def test_two_choices_of_one_file_are_listed_beside_each_other(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = write_table(tmp_path / "a.csv", ROWS)
    words = 'columns={loss_nats: "val loss", model: run, D: {column: tokens, times: 1}}'
    for where in ("tokens < 3000", "NOT outlier"):
        said = bring(file, store, cwd, words, f"where={where}").stderr
    assert "(1 of them were there already)" in said
    listed = json.loads(here("status", "--store", store, "--format", "json", cwd=cwd, check=0).stdout)
    assert {(row["where"], row["n_observations"]) for row in listed} == {("tokens < 3000", 2), ("NOT outlier", 1)}
    assert "nothing new" in bring(file, store, cwd, words).stderr


# --------------------------------------------------------------------------------------------------- published tables


def published(name: str) -> tuple[Path, list[dict[str, str]]]:
    path = SHARED / "reference" / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside the project")
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(newline="") as lines:
        return path, list(csv.DictReader(lines))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_published_checkpoints_written_by_people_are_those_published(
    suffix: str, store: Path, cwd: Path, tmp_path: Path
) -> None:
    _, rows = published("gemstones_checkpoints.csv")
    people = [row | {"params": f"{int(row['params']) / 1e6!r}M", "tokens": f"{int(row['tokens']):,}"} for row in rows]
    bring(write_table(tmp_path / f"a{suffix}", people), store, cwd, "columns={S: params, D: tokens, model: run}")
    facts = "model, non_embedding_params, training_tokens, training_step, cross_entropy_nats"
    numbers = [(float(row["params"]), int(row["tokens"]), int(row["step"]), float(row["loss_nats"])) for row in rows]
    assert found(store, facts) == sorted((row["run"], *of) for row, of in zip(rows, numbers, strict=True))


def test_dense_runs_of_a_published_table_are_chosen_by_its_columns(store: Path, cwd: Path) -> None:
    path, rows = published("routing_curves.csv.gz")
    theirs = [
        (row["hyper_id"], int(row["step"]), float(row["loss_validation"]))
        for row in rows
        if row["num_experts"] == "1" and float(row["step"]) >= 100_000 and row["loss_validation"] not in ("", "nan")
    ]
    words = "columns={S: dense_parameter_count, loss_nats: loss_validation, model: hyper_id}"
    bring(path, store, cwd, words, "where=num_experts = 1 AND step >= 1e5")
    assert found(store, "model, training_step, cross_entropy_nats") == sorted(theirs)
