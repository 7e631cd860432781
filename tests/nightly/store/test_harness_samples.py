"""Samples that lm-evaluation-harness logs come into a store as observations, with the scores that rbpx gives the items.

The files are made as its 0.4.13 writes them (loggers/evaluation_tracker.py), with sums of a run that rbpx measured.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.composed import here
from tests.support.stores import Family, run_folders

ITEMS = [
    {"q": "A letter left", "choices": ["the harbour", "sun"], "right": 0},
    {"q": "Seven ships came ", "choices": ["late", "out of the sea", "over"], "right": 2},
    {"q": "In the morning", "choices": ["a storm", "snow in the harbour"], "right": 1},
]
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


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def asked(query: str, store: Path, cwd: Path) -> list[dict[str, Any]]:
    answer = here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0)
    return list(json.loads(answer.stdout))


def test_the_scores_are_those_of_the_same_items_measured_here(family: Family, cwd: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "task.jsonl", ITEMS)
    words = [*family.words("m")[:3], "dataset=file", f"dataset.path={data}", "dataset.context=q"]
    words += ["dataset.choices=choices", "dataset.right=right"]
    here("measure", *words, "--store", tmp_path / "ours", cwd=cwd, check=0)
    items = here("items", "resamples=50", "--store", tmp_path / "ours", "--format", "json", cwd=cwd, check=0)
    (ours,) = [row for row in json.loads(items.stdout) if row["kind"] == "items"]
    (run,) = run_folders(tmp_path / "ours").values()
    sums: dict[tuple[int, int], float] = {}
    for row in pq.read_table(run / "tokens.parquet").to_pylist():
        key = (row["item"], row["choice"])
        sums[key] = sums.get(key, 0.0) + row["logprob"]
    lengths: dict[int, dict[int, int]] = {}  # items are drawn in an order of their own
    for row in pq.read_table(run / "documents.parquet").to_pylist():
        lengths.setdefault(row["item"], {})[row["choice"]] = row["n_characters"]
    drawn = {tuple(of[choice] for choice in sorted(of)): item for item, of in lengths.items()}
    rows = []
    for at, item in enumerate(ITEMS):
        choices: list[str] = item["choices"]  # type: ignore[assignment]
        nats = [sums[drawn[tuple(map(len, choices))], choice] for choice in range(len(choices))]
        # Its best choice as numpy's argmax finds it.
        acc, acc_norm = (
            float(max(range(len(choices)), key=scores.__getitem__) == item["right"])
            for scores in (nats, [n / len(text) for n, text in zip(nats, choices, strict=True)])
        )
        texts = [[str(item["q"]), choice] for choice in choices]
        rows.append(sample(at, [[str(n), "False"] for n in nats], item["right"], texts, acc=acc, acc_norm=acc_norm))
    file = write(tmp_path / "samples_own_task_2026-08-01T10-11-12.345678.jsonl", rows)
    store = tmp_path / "store"
    said = here("import", "samples", file, *NAMES, "--store", store, cwd=cwd, check=0).stderr
    assert "of 3 items: acc " in said
    (row,) = asked("FROM observations", store, cwd)
    assert (row["family"], row["size"], row["dataset"], row["protocol"]) == ("theirs", "7b", "own_task", "harness")
    assert (row["k"], row["rbp"], row["cross_entropy_nats"], row["n_tokens"]) == (None, None, None, None)
    assert row["accuracy"] == pytest.approx(ours["acc"])
    assert row["bits_per_byte"] == pytest.approx(ours["bits_per_byte"], rel=1e-6)
    norm = ("columns={accuracy: acc_norm}", "dataset=own_norm")
    here("import", "samples", file, *NAMES, *norm, "--store", store, cwd=cwd, check=0)
    (row,) = asked("FROM observations WHERE dataset = 'own_norm'", store, cwd)
    assert row["accuracy"] == pytest.approx(ours["acc_norm"])
