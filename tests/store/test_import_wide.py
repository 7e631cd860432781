"""A table of steps with a column for each run comes in by one line, as its rows would one below the other."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import imports
from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.imports import found
from tests.support.tables import SUFFIXES, write_table

RUNS = "{small: 60M, big run: 1.2B}"
LOSSES = {100: (4.0, 3.9), 200: (3.5, 3.3), 300: (3.2, None)}  # step -> loss of each run; the second is shorter


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


def bring(file: Path, store: Path, cwd: Path, *words: str, check: int | None = 0) -> Answer:
    return imports.bring(file, store, cwd, "source=me", "family=lab", "dataset=c4", *words, check=check)


def wide(path: Path, *, step: bool = True) -> Path:
    """The losses side by side, with the least of each beside them, as a tracker of experiments exports them."""
    rows: list[dict[str, Any]] = [
        {**({"Step": at} if step else {}), "small": one, "small__MIN": one, "big run": other}
        for at, (one, other) in LOSSES.items()
    ]
    return write_table(path, rows)


BELOW = sorted(
    [("small", 6e7, at, one) for at, (one, _) in LOSSES.items()]
    + [("big run", 1.2e9, at, other) for at, (_, other) in LOSSES.items() if other is not None]
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_runs_side_by_side_are_those_one_below_the_other(suffix: str, store: Path, cwd: Path, tmp_path: Path) -> None:
    file = wide(tmp_path / f"wide{suffix}")
    answer = bring(file, store, cwd, f"runs={{loss_nats: {RUNS}}}")
    assert answer.stderr.splitlines()[:3] == [
        f"imported 5 observations of 2 models on 1 dataset from {file} into {store} as me",
        f"ignored columns of {file}: small__MIN",
        f"left out 1 value of {file} that are empty or NaN",
    ]
    assert found(store, "model, non_embedding_params, training_step, cross_entropy_nats") == BELOW
    assert {size for (size,) in found(store, "size")} == {"60000000", "1200000000"}
    below = tmp_path / "below.csv"
    rows = ["model,S,step,loss_nats", *(",".join(map(str, row)) for row in BELOW)]
    below.write_text("\n".join(rows) + "\n")
    assert "nothing new" in bring(below, store, cwd).stderr
    bring(below, tmp_path / "other", cwd)
    assert set(found(tmp_path / "other", "run_id")) == set(found(store, "run_id"))


def test_without_a_column_that_says_it_rows_count_as_steps_and_that_is_said(
    store: Path, cwd: Path, tmp_path: Path
) -> None:
    file = wide(tmp_path / "wide.csv", step=False)
    answer = bring(file, store, cwd, f"runs={{loss_nats: {RUNS}}}")
    assert f"took rows 1 to 3 of {file} as steps, since no column says step, D or C" in answer.stderr
    expected = sorted((model, S, at // 100, loss) for model, S, at, loss in BELOW)
    assert found(store, "model, non_embedding_params, training_step, cross_entropy_nats") == expected


def test_one_row_of_final_losses_has_no_step(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = tmp_path / "final.csv"
    file.write_text("small,big\n3.2,2.9\n")
    answer = bring(file, store, cwd, "runs={loss_bits: {small: 60M, big: 1.2B}}")
    assert "as steps" not in answer.stderr
    expected = [("big", None, 2.9 * 0.6931471805599453), ("small", None, 3.2 * 0.6931471805599453)]
    assert found(store, "model, training_step, cross_entropy_nats") == expected


def test_more_may_be_said_of_a_run_than_its_size(store: Path, cwd: Path, tmp_path: Path) -> None:
    """Its column, where that has another name; its variant and seed; and its tokens, steps times those of a batch."""
    file = wide(tmp_path / "wide.csv")
    one = "{S: 60M, column: small, variant: muon, training_seed: 3, tokens_per_step: 4k}"
    other = '{S: 1.2B, column: "big run", variant: adamw}'
    bring(file, store, cwd, f"runs={{loss_nats: {{one: {one}, other: {other}}}}}")
    facts = "model, variant, training_seed, training_step, training_tokens"
    assert found(store, facts) == [
        ("one", "muon", 3, 100, 400_000),
        ("one", "muon", 3, 200, 800_000),
        ("one", "muon", 3, 300, 1_200_000),
        ("other", "adamw", None, 100, None),
        ("other", "adamw", None, 200, None),
    ]


def test_step_0_is_refused_once_where_it_would_be_no_tokens(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("Step,small,big\n0,11,11\n100,4,3.9\n")
    words = ("runs={loss_nats: {small: 60M, big: 1.2B}}", "tokens_per_step=4k")
    (line,) = bring(file, store, cwd, *words, check=2).stderr.splitlines()
    assert line == f"rbpx: {file}, line 2: Step is 0, and so is D; leave the row out with where='Step > 0'"
    assert not store.exists()
    bring(file, store, cwd, *words, "where=Step > 0")
    assert found(store, "model, training_tokens") == [("big", 400_000), ("small", 400_000)]


def test_two_quantities_of_one_run_stand_in_its_rows(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("D,a_loss,a_acc\n1B,3,0.5\n2B,,0.6\n")
    runs = "runs={loss_nats: {a: {S: 60M, column: a_loss}}, accuracy: {a: {S: 60M, column: a_acc}}}"
    bring(file, store, cwd, runs)
    expected = [("a", 10**9, 3.0, 0.5), ("a", 2 * 10**9, None, 0.6)]
    assert found(store, "model, training_tokens, cross_entropy_nats, accuracy") == expected


def test_a_fault_of_a_run_is_told_by_its_column(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("step,small,big\n100,4,-1\n200,3.5,3.1\n200,3.4,3.1\n")
    *lines, _ = bring(file, store, cwd, "runs={loss_nats: {small: 60M, big: 1.2B}}", check=2).stderr.splitlines()
    assert [line.removeprefix(f"rbpx: {file}, ").partition(";")[0] for line in lines] == [
        "line 2: big is -1",
        "line 4: small of lab small on c4, step=200 is 3.4, but 3.5 in line 3",
    ]
    assert not store.exists()


WRONG = {
    "no quantity": ("{small: 60M}", "write runs='{loss_nats: {COLUMN: 60M, OTHER: 1.2B}}'"),
    "a loss without unit": ("{nll: {small: 60M}}", "nll is not a field"),
    "a column that is not there": ("{loss_nats: {smal: 60M}}", "no column 'smal'"),
    "no number": ("{loss_nats: {small: 60X}}", "small: S is 60X; give a number above 0"),
    "no S": ("{loss_nats: {small: {variant: x}}}", "small has no S"),
    "a fact that is none": ("{loss_nats: {small: {S: 60M, colour: red}}}", "colour is not known of a run"),
    "two S": ("{loss_nats: {small: 60M}, accuracy: {small: 70M}}", "S is 70M, but another under another quantity"),
    "no mapping": ("[small]", "is not a mapping of quantities to runs"),
}


@pytest.mark.parametrize(("runs", "says"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_meant_is_one_line(runs: str, says: str, store: Path, cwd: Path, tmp_path: Path) -> None:
    (line,) = bring(wide(tmp_path / "wide.csv"), store, cwd, f"runs={runs}", check=2).stderr.splitlines()
    assert says in line
    assert not store.exists()


def test_the_law_along_steps_of_each_run_is_that_of_its_column(store: Path, cwd: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    slopes = {"small": 0.1, "big": 0.2}
    steps = [100, 200, 400, 800, 1600]
    rows = [
        ",".join(["step", *slopes]),
        *(",".join([str(t), *(repr(5 * t**-a) for a in slopes.values())]) for t in steps),
    ]
    file.write_text("\n".join(rows) + "\n")
    bring(file, store, cwd, "runs={loss_nats: {small: 60M, big: 1.2B}}")
    words = ("fit", "axis=step", "laws=cross_entropy", "--format", "json", "--store", store)
    laws = json.loads(here(*words, cwd=cwd, check=0).stdout)
    assert {law["size"]: law["alpha"] for law in laws} == pytest.approx({"60000000": 0.1, "1200000000": 0.2}, rel=1e-9)
