"""The name of a user's file in a store is that of its path."""

import pytest

from rbpx.config.text.dataset import DatasetConfig


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
