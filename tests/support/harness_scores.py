"""Scores of items and texts, held against the answers of lm-evaluation-harness 0.4.13 that are kept."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.config.text.dataset import DatasetConfig
from rbpx.data.corpus import Document, documents_of
from rbpx.data.harness_windows import cut_as_harness
from rbpx.data.items import item_of
from rbpx.measure.distributed import init_process_group
from rbpx.measure.extract import measure_windows
from rbpx.measure.reading.reading import Reading
from rbpx.models.load import LoadedModel
from tests.support.harness_cases import CHOICES, CONTEXT, PAIRS, TEMPLATE, TEXTS, build_shape
from tests.support.measuring import load
from tests.support.places import PROJECT

ANSWERS = json.loads((PROJECT / "tests" / "measure" / "harness_answers.json").read_text())
NEAR = 1e-4  # nats of a whole target


@dataclass
class Scored:
    """What one document got: its summed nats, whether each of its tokens is the most probable one, ties."""

    loglikelihood: float
    is_greedy: bool
    n_tied: int


def load_shape(arch: str, shared_data: Path, folder: Path) -> LoadedModel:
    """A model that the harness was asked about."""
    return load(build_shape(arch, shared_data / "data" / "tokenizers", folder / "model"))


def score(loaded: LoadedModel, documents: list[Document]) -> list[Scored]:
    """What each document gets."""
    windows = cut_as_harness(documents, loaded.tokenizer, CONTEXT)
    rows = measure_windows(Reading(loaded, windows, init_process_group("cpu"), 512, lambda n: None))
    scored = []
    for document in documents:
        own = rows["doc_id"] == document.doc_id
        logprob, greater, ties = (rows[name][own] for name in ("logprob", "greater", "ties"))
        scored.append(Scored(float(logprob.astype(float).sum()), bool((greater == 0).all()), int((ties > 0).sum())))
    return scored


def item_documents(rows: list[dict[str, Any]], **keys: Any) -> list[Document]:
    """The documents of items that these keys make of rows."""
    task = DatasetConfig(name="x", path="x", **keys).task
    return documents_of([(str(n), item_of(row, task, lambda: "a row")) for n, row in enumerate(rows)])


def check_targets(arch: str, loaded: LoadedModel) -> None:
    """Targets have the log-likelihood and the greedy flag of the harness."""
    rows = [{"context": context, "target": target} for _, context, target in PAIRS]
    ours = score(loaded, item_documents(rows, context=["context"], target="target"))
    theirs = [answer for (answer,) in ANSWERS[arch]["pairs"]["answers"]]
    for (case, *_), mine, (loglikelihood, is_greedy) in zip(PAIRS, ours, theirs, strict=True):
        assert mine.loglikelihood == pytest.approx(loglikelihood, abs=NEAR), case
        assert mine.is_greedy == is_greedy or mine.n_tied, case
    results = ANSWERS[arch]["pairs"]["results"]
    assert math.exp(-np.mean([each.loglikelihood for each in ours])) == pytest.approx(results["perplexity"], rel=NEAR)
    assert np.mean([each.is_greedy for each in ours]) == results["acc"]


def check_choices(arch: str, loaded: LoadedModel) -> None:
    """Choices have the log-likelihoods and the accuracies of the harness."""
    keys = {"template": TEMPLATE, "choices": "choices", "right": "label", "delimiter": " "}
    of_items = item_documents([dict(row) for row in CHOICES], **keys)
    by_choice = {
        (document.part.item, document.part.choice): each.loglikelihood
        for document, each in zip(of_items, score(loaded, of_items), strict=True)
        if document.part is not None
    }
    right, right_by_length = 0, 0
    for item, (row, theirs) in enumerate(zip(CHOICES, ANSWERS[arch]["choices"]["answers"], strict=True)):
        ours = np.array([by_choice[item, choice] for choice in range(len(row["choices"]))])
        np.testing.assert_allclose(ours, [loglikelihood for loglikelihood, _ in theirs], rtol=0, atol=NEAR)
        right += int(np.argmax(ours)) == row["label"]
        right_by_length += int(np.argmax(ours / [len(choice) for choice in row["choices"]])) == row["label"]
    results = ANSWERS[arch]["choices"]["results"]
    assert (right / len(CHOICES), right_by_length / len(CHOICES)) == (results["acc"], results["acc_norm"])


def check_texts(arch: str, loaded: LoadedModel) -> None:
    """Texts have the log-likelihood and the bits per byte of the harness."""
    of_texts = [Document(n, str(n), text) for n, text in enumerate(TEXTS)]
    ours = [each.loglikelihood for each in score(loaded, of_texts)]
    theirs = [loglikelihood for ((loglikelihood,),) in ANSWERS[arch]["texts"]["answers"]]
    for text, mine, loglikelihood in zip(TEXTS, ours, theirs, strict=True):
        assert mine == pytest.approx(loglikelihood, abs=NEAR), text
    n_bytes = sum(window.n_bytes_scored for window in cut_as_harness(of_texts, loaded.tokenizer, CONTEXT))
    assert n_bytes == sum(len(text.encode()) for text in TEXTS)
    expected = ANSWERS[arch]["texts"]["results"]["bits_per_byte"]
    assert -sum(ours) / n_bytes / math.log(2) == pytest.approx(expected, rel=1e-6)
