"""Every question about single tokens, or with few resamples: an answer with its doubts, or one line; no traceback."""

import json
import warnings
from pathlib import Path

import pytest

from rbpx.analyses.registry import analysis, names
from tests.support.commands import here
from tests.support.synthetic import Truth, write_store

WORDS = {
    "compare": ["drawn/1000", "drawn/10000"],
    "multiplier": ["base=drawn", "variant=other"],
    "closure": ["family=drawn", "dataset=text1"],
    "pooled": [],
    "predict": ["S=1e9", "family=drawn"],
}
QUESTIONS = [name for name in names() if not analysis(name).measures and name != "temperature"]  # these need models


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two families on two texts, one of a single token and one of a token in each of two documents."""
    root = tmp_path_factory.mktemp("one") / "store"
    for family in ("drawn", "other"):
        for n_documents in (1, 2):
            write_store(root, Truth(), 1, n_documents, n_tokens=1, dataset=f"text{n_documents}", family=family)
    return root


@pytest.mark.parametrize("question", QUESTIONS)
def test_single_tokens_end_in_no_traceback(question: str, store: Path, cwd: Path) -> None:
    words = [question, *WORDS.get(question, ["family=drawn"]), "k=1", "resamples=25", "--store", store]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        answer = here(*words, cwd=cwd)
    lines = answer.stderr.splitlines()
    assert answer.returncode in (0, 2), answer.stderr
    assert all(line.startswith("rbpx: ") for line in lines)
    assert (answer.stdout != "") == (answer.returncode == 0)
    assert len(lines) == 1 or answer.returncode == 0


def test_too_few_resamples_leave_a_law_in_k_its_numbers_without_intervals(cwd: Path, tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(), seed=1, n_documents=20).root
    exchanges = {}
    for resamples in (9, 25):
        words = ("klaw", "k=[1,10,100]", f"resamples={resamples}", "--format", "json", "--store", store)
        rows = json.loads(here(*words, cwd=cwd, check=0).stdout)
        exchanges[resamples] = [row["params"]["exchange"] for row in rows if row["size"] is not None]
    for few, enough in zip(exchanges[9], exchanges[25], strict=True):
        assert (few["rate"], few["factor"]) == (enough["rate"], enough["factor"])
        assert (few["lo"], few["hi"]) == (None, None)
        assert enough["lo"] < enough["factor"]
