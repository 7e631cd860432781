"""Numbers come in as people write them; what is no number, repeats or contradicts is counted, or told all at once."""

import csv
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rbpx.files.cells import is_no_value, large_number
from tests.support import imports
from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.imports import found
from tests.support.places import SHARED
from tests.support.tables import SUFFIXES, write_table

COLUMNS = "columns={S: params, D: tokens, loss_nats: loss, model: run}"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


def bring(file: Path, store: Path, cwd: Path, *words: str, check: int | None = 0) -> Answer:
    told = ("source=me", "family=lab", "dataset=c4")
    return imports.bring(file, store, cwd, *told, *(words or (COLUMNS,)), check=check)


WRITTEN = {  # as a person writes it -> what it is
    "1.2B": 1_200_000_000, "1.2b": 1_200_000_000, "60M": 60_000_000, "70m": 70_000_000, "10k": 10_000, "3K": 3_000,
    "2T": 2 * 10**12, ".5t": 5 * 10**11, "3e9": 3 * 10**9, "1,000": 1_000, "12,345,678.5": "12345678.5",
    " 7 M ": 7_000_000, "1,100M": 1_100_000_000, "-1,000": -1000, "1000": 1000, "0.1B": 100_000_000,
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), WRITTEN.items())
def test_a_large_number_is_read_exactly_as_it_is_meant(text: str, value: object) -> None:
    assert large_number(text) == Decimal(str(value))


@pytest.mark.parametrize(
    "cell",
    [
        *("1,5", "1,23", "1234,567", "0,123", "1,00M", "1.000.000", "1e3M", "60MB", "60G", "1_000", "B", "1,0000"),
        *(",5", "1 000", "1,000,00", "M5", "NaN", "inf", "", True, None, [1], float("nan")),
    ],
)
def test_what_has_two_readings_or_none_is_no_number(cell: object) -> None:
    assert large_number(cell) is None


@pytest.mark.parametrize("text", ["NaN", "nan", "-nan", "NA", "n/a", "null", "None", " #N/A ", float("nan")])
def test_what_tables_write_for_no_number_is_known(text: object) -> None:
    assert is_no_value(text)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_sizes_and_tokens_may_be_written_as_text_in_every_format(
    suffix: str, store: Path, cwd: Path, tmp_path: Path
) -> None:
    rows = [
        {"run": "a", "params": "60M", "tokens": "1.2B", "step": "1,000", "loss": "3.1"},
        {"run": "b", "params": "1.2b", "tokens": "3e9", "step": "2k", "loss": "2.9"},
        {"run": "c", "params": "1,000,000.5", "tokens": "7,000,000,000", "step": "3", "loss": "2.8"},
    ]
    answer = bring(write_table(tmp_path / f"a{suffix}", rows), store, cwd)
    assert "rounded" not in answer.stderr
    facts = "model, non_embedding_params, training_tokens, training_step, cross_entropy_nats"
    assert found(store, facts) == [
        ("a", 6e7, 1_200_000_000, 1000, 3.1),
        ("b", 1.2e9, 3_000_000_000, 2000, 2.9),
        ("c", 1_000_000.5, 7_000_000_000, 3, 2.8),
    ]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_counts_that_are_not_whole_are_rounded_and_that_is_said_once(
    suffix: str, store: Path, cwd: Path, tmp_path: Path
) -> None:
    tokens = [4630828457.139856, 2e9, 7000000000.5, 7000000001.5]  # half a token goes to the even neighbour
    rows = [{"run": f"r{at}", "params": 6e7, "tokens": D, "loss": 3.0} for at, D in enumerate(tokens)]
    answer = bring(write_table(tmp_path / f"a{suffix}", rows), store, cwd)
    (said,) = [line for line in answer.stderr.splitlines() if "rounded" in line]
    assert said.endswith("to whole numbers: 3 of tokens")
    assert [D for (D,) in found(store, "training_tokens")] == [2 * 10**9, 4630828457, 7000000000, 7000000002]


def test_a_count_beyond_what_a_float_holds_keeps_its_last_digit(store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = [{"run": "a", "params": "60M", "tokens": "9,007,199,254,740,993", "loss": "3"}]
    bring(write_table(tmp_path / "a.csv", rows), store, cwd)
    assert found(store, "training_tokens") == [(2**53 + 1,)]


@pytest.mark.parametrize(
    ("field", "cell"), [("D", "1.5"), ("D", "999.5"), ("k", "1500.5"), ("seed", "1500.5")]
)  # billions; a rank; a name
def test_what_is_no_count_or_too_small_for_one_is_not_rounded(
    field: str, cell: str, store: Path, cwd: Path, tmp_path: Path
) -> None:
    row = {"S": 10**7, "D": 10**9, "k": 1, "rbp": 0.5, "ties": "mid", "loss_nats": 3.0}
    rows = [row | {field: cell}, row | {"D": 2 * 10**9}]
    words = ("columns={training_seed: seed}",) if field == "seed" else ("revision=x",)
    answer = bring(write_table(tmp_path / "a.csv", rows), store, cwd, *words, check=2)
    assert f"line 2: {field} is {cell}; " in answer.stderr


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_empty_and_nan_losses_are_left_out_and_counted(suffix: str, store: Path, cwd: Path, tmp_path: Path) -> None:
    losses: list[Any] = [3.1, float("nan"), None, 2.9]
    rows = [{"run": f"r{at}", "params": 6e7, "tokens": 10**9, "loss": loss} for at, loss in enumerate(losses)]
    rows[2]["params"] = -1.0  # of a row that is left out nothing else matters
    answer = bring(write_table(tmp_path / f"a{suffix}", rows), store, cwd)
    assert f"left out 2 rows of {tmp_path / f'a{suffix}'} without a value, empty or NaN" in answer.stderr
    assert "imported 2 observations of 2 models" in answer.stderr
    assert found(store, "model, cross_entropy_nats") == [("r0", 3.1), ("r3", 2.9)]


def test_of_a_row_with_several_values_only_the_missing_ones_are_left_out(
    store: Path, cwd: Path, tmp_path: Path
) -> None:
    rows = [
        {"S": 10**7, "D": 10**9, "loss_nats": "nan", "accuracy": "0.5"},
        {"S": 10**7, "D": 2 * 10**9, "loss_nats": "3", "accuracy": "N/A"},
        {"S": 10**7, "D": 3 * 10**9, "loss_nats": "2", "accuracy": "0.7"},
        {"S": 10**7, "D": 4 * 10**9, "loss_nats": "", "accuracy": "nan"},
    ]
    answer = bring(write_table(tmp_path / "a.csv", rows), store, cwd, "revision=x")
    assert f"left out 1 row of {tmp_path / 'a.csv'} without a value" in answer.stderr
    assert f"left out 2 values of {tmp_path / 'a.csv'} that are empty or NaN" in answer.stderr
    expected = [(10**9, None, 0.5), (2 * 10**9, 3.0, None), (3 * 10**9, 2.0, 0.7)]
    assert found(store, "training_tokens, cross_entropy_nats, accuracy") == expected


def test_an_empty_cell_of_what_runs_vary_is_no_value(store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = [
        {"S": 10**7, "D": 10**9, "vary_lr": lr, "loss_nats": loss}
        for lr, loss in ((0.003, 3.0), ("", 2.9), ("NA", 2.9))
    ]
    bring(write_table(tmp_path / "a.csv", rows), store, cwd, "revision=x")
    assert found(store, "vary_lr, cross_entropy_nats") == [(0.003, 3.0), (None, 2.9)]


@pytest.mark.parametrize("cell", ["1.5M", "60.5", "0", "-3"])
def test_all_parameters_are_a_whole_number_up_to_its_suffix(cell: str, store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = [{"S": 10**7, "D": 10**9, "total_params": cell, "loss_nats": 3.0}]
    answer = bring(write_table(tmp_path / "a.csv", rows), store, cwd, "revision=x", check=None)
    if cell == "1.5M":
        assert found(store, "total_params") == [(1_500_000,)]
    else:
        assert f"line 2: total_params is {cell}; a positive number is expected" in answer.stderr
        assert answer.stderr.count("\n") == 1


def test_a_file_of_nothing_but_nan_is_refused(store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = [{"run": "a", "params": 6e7, "tokens": 10**9, "loss": "nan"}] * 3
    answer = bring(write_table(tmp_path / "a.csv", rows), store, cwd, check=2)
    (line,) = answer.stderr.splitlines()
    assert "has 3 rows, but no value" in line
    assert not store.exists()


def test_rows_that_repeat_others_are_left_out_and_counted(store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = [
        {"run": "a", "params": "60M", "tokens": "1B", "loss": "3.10"},
        {"run": "a", "params": "6e7", "tokens": "1,000,000,000", "loss": "3.1"},
        {"run": "b", "params": "60M", "tokens": "1B", "loss": "3.2"},
        {"run": "a", "params": "60M", "tokens": "1B", "loss": "3.1"},
    ]
    answer = bring(write_table(tmp_path / "a.csv", rows), store, cwd)
    assert f"left out 2 rows of {tmp_path / 'a.csv'} that an earlier row says already" in answer.stderr
    assert "imported 2 observations of 2 models" in answer.stderr
    assert "there already" not in answer.stderr
    assert found(store, "model, cross_entropy_nats") == [("a", 3.1), ("b", 3.2)]
    again = bring(tmp_path / "a.csv", store, cwd).stderr
    assert "nothing new" in again


def test_rows_of_rbp_that_repeat_others_are_left_out_too(store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = [{"S": 10**7, "k": k, "rbp": rbp} for k, rbp in ((1, 0.4), (5, 0.6), (1, 0.4))]
    answer = bring(write_table(tmp_path / "a.csv", rows), store, cwd, "ties=mid")
    assert "left out 1 row" in answer.stderr
    assert found(store, "k, rbp") == [(1, 0.4), (5, 0.6)]


def test_all_faults_of_a_file_are_told_at_once_by_the_users_columns(store: Path, cwd: Path, tmp_path: Path) -> None:
    """Each in a line, in order of their rows, those that contradict each other among them; then how many there are."""
    file = tmp_path / "a.csv"
    file.write_text(
        'run,params,tokens,loss\na,60M,1B,3.1\nb,60X,1B,3.0\nc,60M,0,-3\nd,60M,1B,"3,1"\na,60M,1B,3.2\ne,60M,2B,nan\n'
    )
    *lines, last = bring(file, store, cwd, check=2).stderr.splitlines()
    told = [line.removeprefix(f"rbpx: {file}, ").partition("; ")[0] for line in lines]
    assert told == [
        "line 3: params is 60X",
        "line 4: tokens is 0",
        "line 4: loss is -3",
        "line 5: loss is 3,1",
        "line 6: loss of lab a on c4, tokens=1000000000 is 3.2, but 3.1 in line 2",
    ]
    assert last.startswith(f"rbpx: {file} has 5 faults, listed above; nothing was imported")
    assert not store.exists()


def test_of_many_faults_the_first_ten_are_told(store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = [{"run": f"r{at}", "params": "60M", "tokens": "1B", "loss": "x" if at % 2 else "3"} for at in range(50)]
    file = write_table(tmp_path / "a.jsonl", rows)
    *lines, last = bring(file, store, cwd, check=2).stderr.splitlines()
    assert [line.partition(": loss")[0] for line in lines] == [f"rbpx: {file}, line {at}" for at in range(2, 22, 2)]
    assert "has 25 faults, of which the first 10 are listed above" in last


def test_what_all_rows_lack_is_told_once_and_before_their_faults(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("run,N,nll\na,60M,x\nb,60M,x\n")
    *lines, last = here("import", file, "source=me", "--store", store, cwd=cwd, check=2).stderr.splitlines()
    says = ["has no column rbp", "no column S", "the family is missing", "the dataset is missing"]
    assert [part for part, line in zip(says, lines, strict=True) if part not in line] == []
    assert "4 faults" in last


def test_faults_are_told_by_the_columns_of_their_text(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("N,a_loss,b_acc\n10M,3,0.5\n10M,4,0.5\n20M,5,50\n")
    words = ("import", file, "source=me", "family=lab", "columns={S: N}")
    texts = "texts={a: {loss_bits: a_loss}, b: {accuracy: b_acc}}"
    *lines, _ = here(*words, texts, "--store", store, cwd=cwd, check=2).stderr.splitlines()
    assert lines[0].startswith(f"rbpx: {file}, line 3: a_loss in nats of lab 10000000 on a is 2.77")
    assert lines[1].startswith(f"rbpx: {file}, line 4: b_acc is 50; give shares")


def points(name: str) -> list[dict[str, str]]:
    path = SHARED / "reference" / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside the project")
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_published_checkpoints_written_by_people_are_those_published(
    suffix: str, store: Path, cwd: Path, tmp_path: Path
) -> None:
    rows = points("gemstones_checkpoints.csv")
    people = [row | {"params": f"{int(row['params']) / 1e6!r}M", "tokens": f"{int(row['tokens']):,}"} for row in rows]
    bring(write_table(tmp_path / f"a{suffix}", people), store, cwd, "columns={S: params, D: tokens, model: run}")
    facts = "model, non_embedding_params, training_tokens, training_step, cross_entropy_nats"
    numbers = [(float(row["params"]), int(row["tokens"]), int(row["step"]), float(row["loss_nats"])) for row in rows]
    assert found(store, facts) == sorted((row["run"], *of) for row, of in zip(rows, numbers, strict=True))
