"""The name of a user's file in a store: that of its path, or the one under which a store already holds its text."""

import json
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.stores import Family, cell_records, snapshot, write_jsonl


def names(store: Path) -> list[tuple[str, str]]:
    return sorted((record["size"], record["dataset"]) for record in cell_records(store))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "notes.jsonl", "abc abd abe abc", "The cat sat on the mat.", "one two three four")


def test_status_and_laws_show_the_name_of_the_file(family: Family, notes: Path, cwd: Path, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "store")
    words = family.words("xs", "s", "m", text=notes)
    answer = here(*words, "resamples=25", "laws=[rbp]", "k=[1]", *store, cwd=cwd, check=0)
    assert "mine on notes" in answer.stdout
    assert names(tmp_path / "store") == [("m", "notes"), ("s", "notes"), ("xs", "notes")]
    assert "notes" in here("status", *store, cwd=cwd, check=0).stdout
    for named in (["dataset=file", f"dataset.path={notes}"], ["dataset=file", "dataset.name=notes"]):
        rows = json.loads(here("fit", *named, "laws=[rbp]", "k=[1]", "--format=json", *store, cwd=cwd, check=0).stdout)
        assert [row["dataset"] for row in rows] == ["notes"]


def test_a_text_that_a_store_holds_by_the_old_name_is_not_measured_again(
    family: Family, notes: Path, cwd: Path, tmp_path: Path
) -> None:
    """Earlier versions called every file `file`, and asked for it by a key that holds this name."""
    store = tmp_path / "store"
    words = [*family.words("xs", "s", text=notes), "--store", store]
    here("measure", *words, "dataset.name=file", cwd=cwd, check=0)
    before = snapshot(store)
    here("measure", *words, cwd=cwd, check=0)
    assert snapshot(store) == before
    states = json.loads(here("status", *words, "--format", "json", cwd=cwd, check=0).stdout)
    assert [state["state"] for state in states] == ["done", "done"]
    here("measure", *family.words("m", text=notes), "--store", store, cwd=cwd, check=0)
    assert names(store) == [("m", "file"), ("s", "file"), ("xs", "file")]  # one group of three, not two of less
    fit = ("fit", "dataset=file", f"dataset.path={notes}", "laws=[rbp]", "k=[1]", "--format=json", "--store", store)
    assert [row["n_points"] for row in json.loads(here(*fit, cwd=cwd, check=0).stdout)] == [3]
