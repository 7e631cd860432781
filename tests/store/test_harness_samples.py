"""Samples that lm-evaluation-harness logs come into a store as observations, with the scores that rbpx gives the items.

The files are made as its 0.4.13 writes them (loggers/evaluation_tracker.py), with sums of a run that rbpx measured.
"""

import math
from pathlib import Path
from typing import Any

import pytest

from rbpx.store.imports.harness_samples import read_samples
from tests.support.imports import bring_words, imported
from tests.support.tables import write_table

NAMES = ("source=lm_eval", "family=theirs", "size=7b", "S=6500000000")


def sample(item: int, answers: list[Any], right: object, texts: list[list[str]], **metrics: Any) -> dict[str, Any]:
    """One row of samples_TASK_TIME.jsonl: every answer as text, as `sanitize_list` leaves it."""
    arguments = {f"gen_args_{at}": {f"arg_{n}": part for n, part in enumerate(text)} for at, text in enumerate(texts)}
    return {
        "doc_id": item,
        "doc": {},
        "target": str(right),
        "arguments": arguments,
        "resps": [[answer] for answer in answers],
        "filtered_resps": answers,
        "filter": "none",
        "metrics": list(metrics),
        **metrics,
    }


def test_sums_and_errors_are_those_of_a_loop(tmp_path: Path, cwd: Path) -> None:
    nats, texts = [3.0, 8.0, 1.0, 2.5], [" ab", " of the", "é", " x"]
    rows = [
        sample(at, [[str(-n), str(at % 2 == 0)]], text, [["A context  ", text]], perplexity=-n, acc=int(at % 2 == 0))
        for at, (n, text) in enumerate(zip(nats, texts, strict=True))
    ]
    file = write_table(tmp_path / "samples_own_task_2026-08-01T10-11-12.345678.jsonl", rows)
    scored = read_samples(file)
    n_bytes = [2 + len(text.encode()) for text in texts]  # the white space before a target is its own
    ratio = sum(nats) / sum(n_bytes)
    assert (scored.task, scored.n_items, scored.metric, scored.accuracy) == ("own_task", 4, "acc", 0.5)
    assert scored.accuracy_stderr == pytest.approx(math.sqrt(4 * 0.25 / 3 / 4))
    assert scored.bits_per_byte == pytest.approx(ratio / math.log(2))
    squares = sum((n - ratio * b) ** 2 for n, b in zip(nats, n_bytes, strict=True))
    assert scored.bits_per_byte_stderr == pytest.approx(math.sqrt(squares / 3 / 4) / (sum(n_bytes) / 4) / math.log(2))
    said = bring_words("samples", file, *NAMES, "--store", tmp_path / "store", cwd=cwd).stderr
    assert "of 4 items: acc " in said
    (row,) = imported(tmp_path / "store")
    names = {"family": "theirs", "size": "7b", "dataset": "own_task", "protocol": "harness", "k": None, "rbp": None}
    assert row == row | names | {"accuracy": 0.5, "bits_per_byte": scored.bits_per_byte}


def test_whole_texts_have_bits_and_generated_answers_a_score_alone(tmp_path: Path) -> None:
    text = "Ten ships."
    rolling = sample(0, ["-12.5"], text, [[text]], bits_per_byte=[-12.5, 10])
    scored = read_samples(write_table(tmp_path / "rolling.jsonl", [rolling]))
    assert (scored.accuracy, scored.bits_per_byte) == (None, pytest.approx(12.5 / 10 / math.log(2)))
    generated = [sample(at, ["42"], "42", [["Q", "{'until': []}"]], exact_match=float(at)) for at in range(2)]
    scored = read_samples(write_table(tmp_path / "generated.jsonl", generated))
    assert (scored.metric, scored.accuracy, scored.bits_per_byte) == ("exact_match", 0.5, None)


def test_the_answers_of_one_filter_of_several_are_those_that_count(tmp_path: Path) -> None:
    """As gsm8k has it: a row for each item and filter, one filter after the other."""
    right = {"strict-match": [1, 0, 0, 0], "flexible-extract": [1, 1, 0, 1]}
    rows = [
        sample(at, ["4"], "4", [["Q", "{}"]], exact_match=float(match)) | {"filter": name}
        for name, matches in right.items()
        for at, match in enumerate(matches)
    ]
    file = write_table(tmp_path / "samples.jsonl", rows)
    for name, matches in right.items():
        scored = read_samples(file, filter_name=name)
        assert (scored.n_items, scored.accuracy) == (4, sum(matches) / 4)


def test_a_target_of_thousands_of_digits_is_no_number_of_a_choice(tmp_path: Path) -> None:
    answers, texts = [["-1.0", "True"], ["-2.0", "False"]], [["Q", " a"], ["Q", " b"]]
    rows = [sample(at, answers, right, texts, acc=1) for at, right in enumerate(("9" * 5000, "1"))]
    assert read_samples(write_table(tmp_path / "samples.jsonl", rows)).bits_per_byte is None
