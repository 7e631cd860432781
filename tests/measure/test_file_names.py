"""The name of a user's file in a store: that of its path, or the one under which a store already holds its text."""

from pathlib import Path

import pytest

from rbpx.config.text.dataset import DatasetConfig
from tests.support.commands import here
from tests.support.stores import Family, cell_records, snapshot, write_jsonl


def names(store: Path) -> list[tuple[str, str]]:
    return sorted((record["size"], record["dataset"]) for record in cell_records(store))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "notes.jsonl", "abc abd abe abc", "The cat sat on the mat.", "one two three four")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("notes.jsonl", "notes"),
        ("some/folder/notes.jsonl.gz", "notes"),
        ("wiki.test.raw", "wiki.test"),
        ("README", "README"),
        (".hidden", ".hidden"),
    ],
)
def test_a_file_is_named_after_its_path(path: str, name: str) -> None:
    assert DatasetConfig(path=path).name == name
    assert DatasetConfig(path=path, name="mine").name == "mine"


def test_a_text_keeps_the_name_that_a_store_has_for_it_and_another_one_has_its_own(
    family: Family, notes: Path, cwd: Path, tmp_path: Path
) -> None:
    """Earlier versions called every file `file`, and asked for it by a key that holds this name."""
    store = tmp_path / "store"
    other = write_jsonl(tmp_path / "other.jsonl", "quite another text of a few tokens")
    here("measure", *family.words("xs", text=notes), "dataset.name=file", "--store", store, cwd=cwd, check=0)
    before = snapshot(store)
    here("measure", *family.words("xs", text=notes), "--store", store, cwd=cwd, check=0)
    assert snapshot(store) == before
    here("measure", *family.words("s", text=notes), "--store", store, cwd=cwd, check=0)
    here("measure", *family.words("xs", text=other), "--store", store, cwd=cwd, check=0)
    assert names(store) == [("s", "file"), ("xs", "file"), ("xs", "other")]
