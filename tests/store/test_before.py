"""A store that rbpx 0.2 wrote, whose requests had all keys: it is read, resumed and asked as it was then.

before.tar.gz has a text, the store that `measure model=ladder size='[3k,7k,25k,85k]' dataset=file
dataset.path=texts.jsonl` made of it, with a forecast, and what `fit k='[1,10]' resamples=50 --format json` printed.
"""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from rbpx.store.merge import Folder, merge
from rbpx.store.store import Store
from rbpx.store.verify import verify
from tests.support.composed import here

BEFORE = Path(__file__).with_name("before.tar.gz")
GRID = ("model=ladder", "size=[3k,7k,25k,85k]", "dataset=file", "dataset.path=texts.jsonl")
SAME = ("fit_id", "law", "k", "C", "alpha", "alpha_lo", "alpha_hi", "r2", "status", "run_ids")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(BEFORE) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path


def rows(*words: str, folder: Path) -> list[dict[str, Any]]:
    words = (*words, "--details") if words[0] == "fit" else words
    done = here(*words, "--format", "json", "--store", "store", cwd=folder, check=0, writes=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_its_laws_have_the_same_ids_and_numbers(folder: Path) -> None:
    then = {row["fit_id"]: row for row in json.loads((folder / "fit.json").read_text())}
    now = {row["fit_id"]: row for row in rows("fit", "laws=all", "k=[1,10]", "resamples=50", folder=folder)}
    assert now.keys() == then.keys()
    for fit_id, row in now.items():
        for name in SAME:
            before = then[fit_id][name]
            assert row[name] == (pytest.approx(before, rel=1e-6) if isinstance(before, float) else before)


def test_its_cells_are_done(folder: Path) -> None:
    assert [row["state"] for row in rows("status", *GRID, folder=folder)] == ["done"] * 4


def test_it_is_verified_merged_and_its_forecast_scored(folder: Path) -> None:
    before = Store(folder / "store")
    assert verify(before).faults == []
    assert merge(Store(folder / "new"), Folder(before)).skipped == []
    assert Store(folder / "new").run_ids() == before.run_ids()
    assert verify(Store(folder / "new")).faults == []
    forecast = next(row for row in rows("forecasts", folder=folder) if row["kind"] == "forecast")
    assert forecast["name"] == "before"
    assert forecast["lo"] < forecast["y"] < forecast["hi"]
