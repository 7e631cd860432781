"""All items made of the standard library: what is asked stands there, once, and a task is scored by its name."""

import json
from pathlib import Path

import pytest

from rbpx.data.corpus import read_items, read_stdlib
from rbpx.data.python_items import KINDS
from tests.support.commands import here

FILES = dict(read_stdlib())


@pytest.mark.parametrize("kind", KINDS)
def test_each_of_five_hundred_right_choices_stands_in_its_file_behind_its_context(kind: str) -> None:
    items = list(read_items(f"python_{kind}"))
    assert len({name for name, _ in items}) == len(items) == 500
    for name, row in items:
        line = FILES[row["file"]].split("\n")[int(name.rsplit(":", 1)[1]) - 1]
        asked = row["context"] + row["choices"][row["right"]]
        assert asked in FILES[row["file"]]
        assert asked.rsplit("\n", 1)[-1].strip() in line, "the item's name is the line of its choice"


def test_a_task_is_measured_and_scored_by_its_name(cwd: Path, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "store")
    here("measure", "model=ladder", "size=3k", "dataset=python_brackets", "limit=12", *store, cwd=cwd, check=0)
    (row,) = json.loads(here("items", "--format", "json", "resamples=50", *store, cwd=cwd, check=0).stdout)[:1]
    assert (row["chance"], row["n_items"], row["dataset"]) == (0.5, 12, "python_brackets")
