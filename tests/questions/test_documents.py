"""Documents that are not alone: parts of one text are resampled together, and neighbours that are alike are said."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.laws.intervals.estimate import document_weights
from tests.support.asking import Rows, ask
from tests.support.stores import columns_of
from tests.support.synthetic import Truth, write_store

TRUTH = Truth(S=(1_000, 10_000, 100_000, 1_000_000, 10_000_000), shared=0.6)
TEXTS, PARTS, TOKENS, B = 8, 6, 150, 40
N = TEXTS * PARTS
OF_TEXT = [d // PARTS for d in range(N)]
ALIKE = "neighbouring documents are alike"


def rows(store: Path, verb: str, **keys: Any) -> Rows:
    return ask(store, verb, resamples=B, **keys).rows


def drawn(root: Path, sources: Sequence[str]) -> Path:
    """48 documents of eight texts, by the names that they have in their source."""
    write_store(root, TRUTH, 1, n_documents=N, n_tokens=TOKENS, sources=sources, of_text=OF_TEXT)
    return root


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each text is a row of a file, cut into paragraphs."""
    return drawn(tmp_path_factory.mktemp("cut") / "store", [f"{d // PARTS + 1}:{d % PARTS + 1}" for d in range(N)])


@pytest.fixture(scope="module")
def in_order(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each document is a row of a file, those of one text in a row."""
    return drawn(tmp_path_factory.mktemp("rows") / "store", [str(d + 1) for d in range(N)])


def test_parts_of_one_text_are_drawn_together(cut: Path) -> None:
    """The spread of alpha over replicates of texts, from a loop over the tokens."""
    hits_DN = []
    for run in sorted((cut / "runs").glob("[!_]*")):
        tokens = columns_of(run, "tokens")
        hits_DN.append(np.bincount(tokens["doc_id"], tokens["greater"] == 0, N))
    alphas = []
    for drawn_T in document_weights(TEXTS, B, 42):
        weights_D = np.repeat(drawn_T, PARTS)
        ln_y = [math.log(-math.log(weights_D @ hits_D / (weights_D.sum() * TOKENS))) for hits_D in hits_DN]
        alphas.append(-np.polyfit(np.log(TRUTH.S), ln_y, 1)[0])
    (law,) = rows(cut, "fit", k=1, laws=["rbp"])
    assert law["params"]["alpha_text_sd"] == pytest.approx(np.std(alphas, ddof=1) * math.sqrt(8 / 7), rel=1e-9)
    assert law["params"]["uncertainty"]["n_effective"] == TEXTS
    assert law["params"]["notes"] == ["Resampled by text: 8 texts, cut into 48 documents."]


def test_texts_of_unequal_length_count_by_their_shares_of_the_tokens(tmp_path: Path) -> None:
    """Five texts, cut into one to five documents of as many tokens: 15^2 / (1 + 4 + 9 + 16 + 25)."""
    of_text = [text for text in range(1, 6) for _ in range(text)]
    write_store(tmp_path, TRUTH, 1, n_documents=15, n_tokens=40, sources=[f"{d}:{at}" for at, d in enumerate(of_text)])
    (law,) = rows(tmp_path, "fit", k=1, laws=["rbp"])
    assert law["params"]["uncertainty"]["n_effective"] == pytest.approx(225 / 55)
    assert law["params"]["notes"] == ["Resampled by text: 5 texts, cut into 15 documents."]


def test_every_question_about_a_text_cut_into_parts_resamples_the_text(cut: Path, in_order: Path) -> None:
    """Those of one run too: their intervals are wider than those of as many documents that stand alone."""
    width = {}
    for store in (cut, in_order):
        (row, *_) = rows(store, "units")
        width[store] = row["nats_per_token_hi"] - row["nats_per_token_lo"]
    assert width[cut] > 1.5 * width[in_order]


def test_documents_in_a_row_that_are_alike_are_said(in_order: Path) -> None:
    asked = ask(in_order, "fit", k=1, laws=["rbp"], resamples=B)
    (law,) = asked.rows
    assert law["status"] == "dependent_documents"
    (note,) = law["params"]["notes"]
    assert note.startswith(f"{ALIKE}, so 48 documents vary as about ")
    assert ALIKE in asked.words
    laws_in_k = [row for row in rows(in_order, "klaw", k=[1, 2, 5, 10]) if row["law"] == "k_law"]
    assert all("dependent_documents" in row["params"]["reasons"] for row in laws_in_k)
    assert ALIKE in ask(in_order, "predict", k=[1, 10, 100], laws=["rbp"], resamples=B).words


def test_what_is_alike_is_sought_in_the_order_of_the_source_and_not_of_the_sample(tmp_path: Path) -> None:
    """Row 10 comes after row 9, and a sample that was shuffled is put back."""
    order = np.random.default_rng(2).permutation(N)
    apart = drawn(tmp_path / "apart", [str(place) for place in order])  # the texts lie across each other in the source
    assert ALIKE not in ask(apart, "fit", k=1, laws=["rbp"], resamples=B).words
    shuffled, of_text = tmp_path / "shuffled", [OF_TEXT[d] for d in order]
    write_store(
        shuffled, TRUTH, 1, n_documents=N, n_tokens=TOKENS, sources=[f"test/{d}" for d in order], of_text=of_text
    )
    assert ALIKE in ask(shuffled, "fit", k=1, laws=["rbp"], resamples=B).words


def test_a_law_whose_models_scatter_more_than_its_documents_keeps_its_status(tmp_path: Path) -> None:
    """The documents are said to be alike; the interval is hardly too narrow for that."""
    scattered = Truth(S=(1_000, 10_000, 100_000, 10**6, 10**7, 10**8), shared=0.6, scatter=1.0)
    store = tmp_path / "store"
    write_store(
        store, scattered, 3, n_documents=N, n_tokens=TOKENS, sources=[str(d) for d in range(N)], of_text=OF_TEXT
    )
    (law,) = rows(store, "fit", k=1, laws=["rbp"])
    assert "dependent_documents" not in law["params"]["reasons"]
    assert ALIKE in law["params"]["notes"][0]


def test_one_text_cut_into_parts_says_that_it_is_one(tmp_path: Path) -> None:
    store = tmp_path / "store"
    write_store(store, TRUTH, 1, n_documents=30, sources=[f"book.txt:{d}" for d in range(30)])
    (law,) = rows(store, "fit", k=1, laws=["rbp"])
    assert law["params"]["uncertainty"]["n_effective"] == 30
    assert law["params"]["notes"] == [
        "The 30 documents are parts of one text, so intervals are over other parts of it, not over other texts."
    ]
