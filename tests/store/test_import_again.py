"""Rows that a restart wrote twice, and a file that comes again with more than it said before."""

from pathlib import Path

import pytest

from tests.support import imports
from tests.support.commands import Answer
from tests.support.imports import found

HEADER = "model,S,step,loss_nats,accuracy\n"
BEFORE = [(step, 3 + 1 / step) for step in range(100, 1100, 100)]
AFTER = [(step, 3.05 + 1 / step) for step in range(700, 1500, 100)]  # from the checkpoint at 600


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


def bring(rows: list[str], store: Path, cwd: Path, *words: str, check: int = 0) -> Answer:
    file = store.parent / "a.csv"
    file.write_text(HEADER + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return imports.bring(file, store, cwd, "source=me", "family=lab", "dataset=c4", *words, check=check)


RESTARTED = [f"r,60M,{step},{loss!r}," for step, loss in [*BEFORE, *AFTER]]


@pytest.mark.parametrize(
    ("keep", "again", "expected"),
    [("last", "a later", dict(BEFORE) | dict(AFTER)), ("first", "an earlier", dict(AFTER) | dict(BEFORE))],
)
def test_of_a_step_that_a_restart_wrote_twice_one_stays_as_asked(
    keep: str, again: str, expected: dict[int, float], store: Path, cwd: Path
) -> None:
    said = bring(RESTARTED, store, cwd, f"keep={keep}").stderr
    assert f"left out 4 rows of {store.parent / 'a.csv'} of which {again} one says the same step again" in said
    assert found(store, "training_step, cross_entropy_nats") == sorted(expected.items())


def test_without_keep_it_is_refused_with_what_to_type(store: Path, cwd: Path) -> None:
    *lines, _ = bring(RESTARTED, store, cwd, check=2).stderr.splitlines()
    assert len(lines) == 4
    assert "keep one of them (keep=last of a step that a restart wrote twice)" in lines[0]
    assert not store.exists()


def test_rows_of_one_step_that_say_other_quantities_or_are_of_another_run_all_stay(store: Path, cwd: Path) -> None:
    bring(["r,60M,100,3,", "r,60M,100,,.5", "q,60M,100,2,"], store, cwd, "keep=last")
    assert found(store, "model, cross_entropy_nats, accuracy") == [("q", 2, None), ("r", 3, None), ("r", None, 0.5)]


def test_sizes_without_names_are_told_apart(store: Path, cwd: Path) -> None:
    bring([",60M,100,3,", ",240M,100,2,", ",60M,100,2.9,"], store, cwd, "keep=last")
    assert found(store, "non_embedding_params, cross_entropy_nats") == [(6e7, 2.9), (2.4e8, 2)]


def test_what_is_stored_already_is_not_replaced(store: Path, cwd: Path) -> None:
    bring(["r,60M,100,3,"], store, cwd)
    line = bring(["r,60M,100,2,"], store, cwd, "keep=last", check=2).stderr
    assert "is 2.0, but 3.0 in the store; keep one of them, " in line


def test_a_file_that_comes_again_with_a_schedule_says_what_is_updated(store: Path, cwd: Path) -> None:
    rows = ["r,60M,100,3,", "r,60M,200,2.9,.5", "q,60M,100,3.1,"]
    bring(rows, store, cwd)
    said = bring([*rows, "q,60M,200,3,"], store, cwd, "schedule=constant").stderr.splitlines()[0]
    assert said.endswith("(3 rows updated: schedule)")
    said = bring([*rows, "q,60M,200,3,.4"], store, cwd, "schedule=constant").stderr.splitlines()[0]
    assert said.endswith("(3 of them were there already; 1 row updated: accuracy)")


THREE = ["q,60M,100,3,", "r,60M,100,3.1,.5", "s,240M,100,2,"]


def files(store: Path) -> set[str]:
    return {path.name for path in (store / "imports").iterdir()}


def test_rows_that_a_file_no_longer_has_stay_and_are_named_with_the_line_that_removes_them(
    store: Path, cwd: Path
) -> None:
    bring(THREE, store, cwd)
    for words in ((), ("where=model != 's'",)):
        said = bring(THREE[: 2 if not words else 3], store, cwd, *words).stderr
        assert "nothing new" not in said
        assert "(2 of them were there already)" in said
        told = "1 observation of an earlier a.csv that this one does not have (s) stay; where this one stands for it"
        assert f"{told}, replace=true removes them\n" in said
    assert "nothing new" in bring(THREE, store, cwd).stderr
    assert len(found(store, "model")) == 3


def test_a_file_that_replaces_leaves_nothing_of_the_one_before_it_and_all_of_others(store: Path, cwd: Path) -> None:
    bring(THREE[:2], store, cwd)
    bring(THREE, store, cwd)  # what one file gave lies in two
    other = store.parent / "other" / "b.csv"
    other.parent.mkdir()
    other.write_text(f"{HEADER}t,480M,100,1.9,\n")
    words = ("source=me", "family=lab", "dataset=c4")
    imports.bring(other, store, cwd, *words)
    imports.bring(other.rename(other.with_name("a.csv")), store, cwd, "source=you", *words[1:])
    before = files(store)
    line = bring(["q,60M,100,2.9,", *THREE[1:2]], store, cwd, check=2).stderr
    assert line.endswith("; what an earlier a.csv gave goes with replace=true\n")
    would = bring(["q,60M,100,2.9,", *THREE[1:2]], store, cwd, "replace=true", "--dry-run").stderr
    assert files(store) == before
    said = bring(["q,60M,100,2.9,", *THREE[1:2]], store, cwd, "replace=true").stderr
    for each in (would, said):
        assert "in place of the 3 observations that an earlier a.csv gave\n" in each
        assert "1 observation of an earlier a.csv that this one does not have (s)\n" in each
    assert found(store, "source, model, cross_entropy_nats, accuracy") == [
        *[("me", "q", 2.9, None), ("me", "r", 3.1, 0.5), ("me", "t", 1.9, None), ("you", "t", 1.9, None)],
    ]
    again = files(store)
    assert "in place of the 2 observations" in bring(["q,60M,100,2.9,", *THREE[1:2]], store, cwd, "replace=true").stderr
    assert files(store) == again


def test_a_faulty_file_replaces_nothing(store: Path, cwd: Path) -> None:
    bring(THREE, store, cwd)
    bring(["q,60M,100,x,"], store, cwd, "replace=true", check=2)
    assert len(found(store, "model")) == 3
