"""Every question about single tokens, or with few replicates: an answer with its doubts, or one line; no traceback."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rbpx.questions.registry import analysis, names
from rbpx.store.sql import connected_once
from tests.support.asking import answer_or_refusal, ask
from tests.support.synthetic import Truth, write_store

KEYS: dict[str, dict[str, Any]] = {
    "compare": {"a": "drawn/1000", "b": "drawn/10000"},
    "multiplier": {"base": "drawn", "variant": ["other"]},
    "predict": {"S": [1e9], "family": ["drawn"]},
}
SMALL = Truth(S=(1_000, 10_000, 100_000))
QUESTIONS = [name for name in names() if not analysis(name).measures]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two families on two texts, one of a single token and one of a token in each of two documents."""
    root = tmp_path_factory.mktemp("one") / "store"
    for family in ("drawn", "other"):
        for n_documents in (1, 2):
            write_store(root, SMALL, 1, n_documents, n_tokens=1, dataset=f"text{n_documents}", family=family)
    with connected_once():
        yield root


@pytest.mark.parametrize("question", QUESTIONS)
def test_single_tokens_end_in_no_traceback(question: str, store: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        keys = KEYS.get(question, {"family": ["drawn"]})
        assert answer_or_refusal(store, question, **keys, k=1, resamples=25)


def test_too_few_resamples_leave_a_law_in_k_its_numbers_without_intervals(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(), seed=1, n_documents=20).root
    exchanges = {}
    with connected_once():
        for resamples in (9, 25):
            rows = ask(store, "klaw", k=[1, 10, 100], resamples=resamples).rows
            exchanges[resamples] = [row["params"]["exchange"] for row in rows if row["size"] is not None]
    for few, enough in zip(exchanges[9], exchanges[25], strict=True):
        assert (few["rate"], few["factor"]) == (enough["rate"], enough["factor"])
        assert (few["lo"], few["hi"]) == (None, None)
        assert enough["lo"] < enough["factor"]
