"""Several questions have in Python the numbers that their verbs print, and a script of a user is checked strictly."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rbpx
from tests.support.commands import here
from tests.support.places import PROJECT
from tests.support.synthetic import Truth, write_store

FEW = "resamples=60"
CELLS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("gaps", {"slices": {"early": "position < 30"}, "k": (10,)}, ["slices={early: 'position < 30'}", "k=[10]"]),
    ("fit", {"laws": "cross_entropy", "ties": "mid"}, ["laws=cross_entropy", "ties=mid"]),
    ("klaw", {"k": (1, 2, 5)}, ["k=[1,2,5]"]),
    ("regimes", {"k": np.array([1, 10])}, ["k=[1,10]"]),
    ("emergence", {"k": 10, "n": [1, 5]}, ["k=10", "n=[1,5]"]),
    ("gaps", {"k": 10}, ["k=10"]),
    ("entropy", {"dataset": "synthetic"}, []),
    ("predict", {"S": [1e8], "laws": ["rbp"], "k": 1}, ["S=[1e8]", "laws=[rbp]", "k=1"]),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two texts, five sizes each."""
    root = tmp_path_factory.mktemp("api") / "store"
    for seed, name in enumerate(("synthetic", "other")):
        write_store(root, Truth(scatter=0.01), seed=seed, n_documents=20, n_tokens=60, dataset=name)
    return root


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that names the texts of the store."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "dataset").mkdir()
    for name in ("synthetic", "other"):
        (folder / "dataset" / f"{name}.yaml").write_text(f"name: {name}\n")
    return folder


def without_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "created_at"} for row in rows]


@pytest.mark.parametrize(
    ("verb", "keys", "words"), CELLS, ids=[f"{verb} {' '.join(words)}" for verb, _, words in CELLS]
)
def test_an_answer_has_the_numbers_that_the_verb_prints(
    verb: str, keys: dict[str, Any], words: list[str], store: Path, own: Path, tmp_path: Path
) -> None:
    asked = [f"dataset={keys['dataset']}"] if "dataset" in keys else words
    printed = here(
        verb, *asked, FEW, "--config-dir", own, "--store", store, "--format", "json", "--details", cwd=tmp_path, check=0
    )
    answer = getattr(rbpx.open(store, own), verb)(resamples=60, **keys)
    assert len(answer.records) > 0
    shown = json.loads(printed.stdout)
    assert without_time(json.loads(json.dumps(answer.details))) == without_time(shown)
    for column in {"alpha", "r2", "nats", "y"} & set(shown[0]):
        known = [row[column] for row in shown if row[column] is not None]
        assert answer.frame()[column].dropna().tolist() == answer.arrow()[column].drop_null().to_pylist() == known
    assert answer.arrow().num_rows == len(answer.frame()) == len(shown)


SCRIPT = """
import rbpx

measured = rbpx.open("store")
fits = measured.fit(dataset="stdlib", k=[1, 10], ties="mid")
alpha: float | None = fits.details[0]["alpha"]
said: list[str] = [*fits.results[0].sentences]
ends: list[float] = fits.frame()["alpha_hi"].tolist()
fits.plot().save("laws.svg")
"""
WRONG = 'import rbpx\n\nrbpx.open("store").fit(tise="mid")\nrbpx.opne("store")\n'


def test_a_script_of_a_user_is_checked_strictly(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(SCRIPT)
    wrong.write_text(WRONG)
    # The project's own settings are strict, and its cache saves the half minute that reading the libraries takes.
    words = [sys.executable, "-m", "mypy", "--no-error-summary", str(right), str(wrong)]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=300)
    errors = [line.split("error: ")[1] for line in done.stdout.splitlines() if ": error: " in line]
    assert [error.split(" for ")[0] for error in errors] == [
        'Unexpected keyword argument "tise"',
        'Module has no attribute "opne"  [attr-defined]',
    ], done.stdout
