"""Ids of requests and runs, as they have been in every version: a store of before is found again by them.

Those of fits stand in the recorded answers.
"""

import json
from pathlib import Path

import pytest

from tests.support.composed import here

TEXT = ("One law of size.", "Two laws of tokens, and a third.", "Nothing more.")
CELLS = {
    "model=ladder size=3k": "dcb3c66c97e58aba",
    "model=ladder size=3k limit=2": "10b06812b516639d",
    "model=ladder size=3k seed=7": "f58febf026c5e5ce",
    "model=ladder size=3k dtype=bfloat16": "8a9ca663269e1b80",
    "model=ladder size=3k protocol=rolling": "f629772472bdfa16",
    "model=ladder size=25k model.revision=1.7m": "8ad2649a04464833",
    "model=gpt2 size=gpt2": "6000b1277e3e2d83",
    "model=hub model.id=org/name": "fc26d8573333d821",
    "model=pythia size=70m model.revision=step1000 model.quantise=int8": "8697e7e040c78896",
}
RUNS = {
    "model=ladder size=3k": "857db94b038335ba",
    "model=ladder size=3k dtype=bfloat16": "07c6d2d8b9f665d2",
    "model=ladder size=3k protocol=rolling": "dbda2503fc3da197",
}


@pytest.fixture
def text(cwd: Path) -> str:
    """The words that name three documents in the working directory."""
    (cwd / "t.jsonl").write_text("".join(json.dumps({"text": each}) + "\n" for each in TEXT), encoding="utf-8")
    return "dataset=file dataset.path=t.jsonl"


@pytest.mark.parametrize("words", CELLS)
def test_a_request_has_its_cell_key(words: str, text: str, cwd: Path) -> None:
    store = cwd.parent / "store"
    answer = here("plan", *words.split(), *text.split(), "--format", "json", "--store", store, cwd=cwd, check=0)
    assert [row["cell_key"] for row in json.loads(answer.stdout)] == [CELLS[words]]


@pytest.mark.parametrize("words", RUNS)
def test_what_is_measured_has_its_run_id(words: str, text: str, cwd: Path) -> None:
    store = cwd.parent / "store"
    here("measure", *words.split(), *text.split(), "--store", store, cwd=cwd, check=0)
    (cell,) = (store / "cells").iterdir()
    assert cell.stem == CELLS[words]
    assert json.loads(cell.read_text())["run_id"] == RUNS[words]
