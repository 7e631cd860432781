"""Every question of stores that hold hardly anything: an answer with its doubts, or one line; no traceback."""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rbpx.questions.registry import analysis, names
from rbpx.store.sql import connected_once
from tests.support.asking import answer_or_refusal, ask, imported
from tests.support.synthetic import Truth, write_store

KEYS: dict[str, dict[str, Any]] = {
    "compare": {"a": "drawn/1000", "b": "drawn/10000"},
    "multiplier": {"base": "drawn", "variant": ["other"]},
    "predict": {"S": [1e9], "family": ["drawn"]},
}
SMALL = Truth(S=(1_000, 10_000, 100_000))
QUESTIONS = [name for name in names() if not analysis(name).measures]
# Intervals that are about models too, so that one document has them.
OF_MODELS = {"difference", "drift", "predicted", "own"}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Path]]:
    """Single tokens, one document, and imported losses."""
    root = tmp_path_factory.mktemp("little")
    for family in ("drawn", "other"):
        for n_documents in (1, 2):
            write_store(root / "tokens", SMALL, 1, n_documents, n_tokens=1, dataset=f"text{n_documents}", family=family)
    write_store(root / "document", Truth(shared=0.0), 2, n_documents=1, n_tokens=1000)
    losses = "S,loss_nats\n" + "".join(f"1e{at},{5.5 - 0.5 * at + 0.01 * at**2}\n" for at in (5, 6, 7, 8))
    imported(root / "losses", losses, dataset="c4")
    with connected_once():
        yield {path.name: path for path in root.iterdir() if path.is_dir()}


@pytest.mark.parametrize("question", QUESTIONS)
def test_single_tokens_and_losses_alone_end_in_no_traceback(question: str, stores: Mapping[str, Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        keys = KEYS.get(question, {"family": ["drawn"]})
        assert answer_or_refusal(stores["tokens"], question, **keys, k=1, resamples=25)
    assert answer_or_refusal(stores["losses"], question, resamples=20).strip()


@pytest.mark.parametrize("question", ["emergence", "entropy", "exponents", "fit", "klaw", "outcomes", "ranks", "units"])
def test_one_document_has_numbers_and_no_interval_over_documents(question: str, stores: Mapping[str, Path]) -> None:
    asked = ask(stores["document"], question, resamples=50)
    assert "nan" not in asked.words.lower()
    known = {name for row in asked.rows for name, value in row.items() if value is not None}
    assert {name[:-3] for name in known if name.endswith(("_lo", "_hi"))} <= OF_MODELS
    laws = [row for row in asked.rows if row.get("alpha") is not None and row.get("kind") != "trend"]
    doubts = [[row["status"], *row["params"].get("reasons", ())] for row in laws if row["status"] is not None]
    assert all("one_document" in each for each in doubts)
    assert bool(doubts) == (question not in ("exponents", "units"))


def test_what_a_change_is_worth_is_doubted_where_one_document_says_it(stores: Mapping[str, Path]) -> None:
    asked = ask(
        stores["tokens"], "multiplier", dataset="text1", base="drawn", variant=["other"], laws=["cross_entropy"]
    )
    assert {row["status"] for row in asked.rows if row["multiplier"] is not None} == {"one_document"}


def test_shares_of_0_and_1_are_a_status_and_never_a_nan(tmp_path: Path) -> None:
    truth = Truth(C=900.0)  # small models have no token of rank 1; k near V has no miss
    store = write_store(tmp_path / "store", truth, seed=4, n_documents=5, n_tokens=20)
    for verb in ("fit", "klaw", "regimes", "predict", "emergence"):
        words = ask(store, verb, k=[1, 99999], resamples=20).words.lower()  # its rows are JSON without NaN too
        assert "nan" not in words
        assert "inf" not in words.replace("inference", "").replace("information", ""), verb
