"""The name of a user's file in a store is that of its path."""

import json
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.stores import Family, cell_records, write_jsonl


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
