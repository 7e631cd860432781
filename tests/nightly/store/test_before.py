"""A store that rbpx 0.2 wrote, whose requests had all keys: it is read, resumed and asked as it was then.

before.tar.gz has a text, the store that `measure model=ladder size='[3k,7k,25k,85k]' dataset=file
dataset.path=texts.jsonl` made of it, with a forecast, and what `fit k='[1,10]' resamples=50 --format json` printed.
"""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.composed import here

BEFORE = Path(__file__).parents[2] / "store" / "before.tar.gz"
GRID = ("model=ladder", "size=[3k,7k,25k,85k]", "dataset=file", "dataset.path=texts.jsonl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(BEFORE) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path


def rows(*words: str, folder: Path) -> list[dict[str, Any]]:
    done = here(*words, "--format", "json", "--store", "store", cwd=folder, check=0, writes=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_nothing_is_measured_again(folder: Path) -> None:
    runs = sorted(path.name for path in (folder / "store" / "runs").glob("[!_]*"))
    answer = here("measure", *GRID, "--store", "store", cwd=folder, check=0, writes=True)
    assert "nothing to measure" in answer.stderr
    assert sorted(path.name for path in (folder / "store" / "runs").glob("[!_]*")) == runs


def test_it_is_audited(folder: Path) -> None:
    audited = rows("audit", "dtype=float32", "limit=2", "resamples=20", folder=folder)
    assert {row["size"] for row in audited if row["kind"] == "run"} >= {"3k", "85k"}
