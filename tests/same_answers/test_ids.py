"""Ids of requests, runs and fits, as they have been in every version: a store of before is found again by them."""

import json
from pathlib import Path

import pytest

from tests.same_answers.answers import asks
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
FITS = {  # of the first row of what was answered, which another test holds
    "fit k=1 laws='[rbp,cross_entropy]' method=all dataset=pydoc": "08b84c3a4c5df346",
    "fit ties=mid laws='[rbp]' k='[1,10]'": "ab93539cf64a04e3",
    "fit size_by=with_embeddings laws='[rbp,cross_entropy]' k=1": "ce9e15528d9930b0",
    "fit E='1.7 +- .05' dataset=pydoc": "0ab95107b6a1452d",
    "fit axis=C": "abdbc97074037286",
    "fit family=twin axis=D laws='[cross_entropy,rbp]' k=1": "6cb1d58ebf01a122",
    "fit source=them family=a dataset=prose method=offset laws='[cross_entropy,rbp]' k=1": "d953e78acb7c2d42",
    "fit source=sweep frontier=true axis=C": "327a3e87d9d488ec",
    "gaps slices=position k=10 dataset=pydoc laws='[rbp]'": "3127a50595560770",
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


def test_fits_have_their_ids() -> None:
    found = {ask.line: ask.expected()[0]["fit_id"] for ask in asks() if ask.line in FITS}
    assert found == FITS
