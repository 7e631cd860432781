"""Files come in as tools write them: results of lm-evaluation-harness, a trainer's state, lists in rows."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support import imports
from tests.support.commands import Answer
from tests.support.imports import found

RESULTS: dict[str, Any] = {  # as EvaluationTracker.save_results_aggregated of 0.4.13 writes it
    "results": {
        "arc_easy": {
            "alias": "arc_easy", "acc,none": 0.25, "acc_stderr,none": 0.01, "acc_norm,none": 0.5,
            "acc_norm_stderr,none": 0.02,
        },
        "gsm8k": {
            "alias": "gsm8k", "exact_match,strict-match": 0.125, "exact_match_stderr,strict-match": 0.003,
            "exact_match,flexible-extract": 0.75, "exact_match_stderr,flexible-extract": 0.004,
        },
        "triviaqa": {"alias": "triviaqa", "exact_match,none": 0.375, "exact_match_stderr,none": "N/A"},
        "wikitext": {"alias": "wikitext", "word_perplexity,none": 26.0, "bits_per_byte,none": 0.9,
                     "bits_per_byte_stderr,none": "N/A"},
    },
    "configs": {"arc_easy": {"task": "arc_easy"}},
    "n-shot": {"arc_easy": 0},
    "n-samples": {"arc_easy": {"original": 2376, "effective": 2376}},
    "config": {"model": "hf", "model_num_parameters": 124439808},
    "model_name": "openai-community/gpt2",
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A place for a store that is not there yet."""
    return tmp_path / "store"


def bring(file: Path, content: object, store: Path, cwd: Path, *words: str, check: int = 0) -> Answer:
    if isinstance(content, pa.Table):
        pq.write_table(content, file)
    else:
        file.write_text(json.dumps(content))
    return imports.bring(file, store, cwd, "source=me", "family=lab", *words, check=check)


def test_results_of_the_harness_are_an_observation_for_each_task(store: Path, cwd: Path, tmp_path: Path) -> None:
    said = bring(tmp_path / "results_2026.json", RESULTS, store, cwd, "S=85M", "size=small").stderr
    assert "left out 1 row of" in said  # gsm8k, of which none of two filters goes before the other
    facts = "dataset, model, size, non_embedding_params, total_params, protocol"
    of = ("openai-community/gpt2", "small", 85e6, 124439808, "harness")
    assert found(store, facts) == [("arc_easy", *of), ("triviaqa", *of), ("wikitext", *of)]
    assert found(store, "dataset, accuracy, accuracy_stderr, bits_per_byte, bits_per_byte_stderr") == [
        ("arc_easy", 0.25, 0.01, None, None),
        ("triviaqa", 0.375, None, None, None),
        ("wikitext", None, None, 0.9, None),
    ]


@pytest.mark.parametrize(
    ("metric", "scores"),
    [("acc_norm", ("arc_easy", 0.5, 0.02)), ("exact_match,strict-match", ("gsm8k", 0.125, 0.003))],
)
def test_another_metric_comes_with_its_own_standard_error(
    metric: str, scores: tuple[str, float, float], store: Path, cwd: Path, tmp_path: Path
) -> None:
    bring(tmp_path / "a.json", RESULTS, store, cwd, "S=85M", f'columns={{accuracy: "{metric}"}}')
    assert found(store, "dataset, accuracy, accuracy_stderr")[0] == scores


def test_without_S_it_is_said_what_to_give(store: Path, cwd: Path, tmp_path: Path) -> None:
    (line,) = bring(tmp_path / "a.json", RESULTS, store, cwd, check=2).stderr.splitlines()
    assert "has no column S" in line
    assert "or S=6.5B of a file of one model" in line


def test_S_beside_a_column_of_it_is_refused(store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = [{"S": 10**7, "dataset": "c", "loss": 3}]
    (line,) = bring(tmp_path / "a.json", rows, store, cwd, "S=10M", check=2).stderr.splitlines()
    assert "has a column S, and S=10000000 was given; leave it out" in line


LOG = [
    {"epoch": 0.1, "grad_norm": 1.5, "learning_rate": 1e-3, "loss": 4.5, "step": 10},
    {"epoch": 0.1, "eval_loss": 4.25, "eval_runtime": 1.0, "step": 10},
    {"epoch": 0.2, "learning_rate": 1e-4, "loss": 3.5, "step": 20},
    {"epoch": 0.2, "eval_loss": 3.25, "step": 20},
    {"epoch": 0.2, "step": 20, "total_flos": 1e15, "train_loss": 4.0, "train_runtime": 9.0},
]


@pytest.mark.parametrize(("of", "losses"), [("eval_loss", [4.25, 3.25]), ("loss", [4.5, 3.5])])
def test_the_state_of_a_trainer_is_a_curve_of_its_validation_else_of_its_training(
    of: str, losses: list[float], store: Path, cwd: Path, tmp_path: Path
) -> None:
    log = [row for row in LOG if of == "eval_loss" or "eval_loss" not in row]
    words = ("dataset=c4", "S=85M", "tokens_per_step=1M")
    said = bring(tmp_path / "trainer_state.json", {"log_history": log, "max_steps": 20}, store, cwd, *words).stderr
    assert f"{of!r} as loss_nats (nats per token)" in said
    rows = found(store, "training_step, training_tokens, cross_entropy_nats, lr")
    assert rows == [(10, 10**7, losses[0], None), (20, 2 * 10**7, losses[1], None)]


LISTS = {"model": ["a", "b"], "S": [60_000_000, 120_000_000], "betas": [[0.9, 0.95], [0.9, 0.99]]}


def test_a_row_for_each_run_with_lists_is_a_row_for_each_element(store: Path, cwd: Path, tmp_path: Path) -> None:
    table = pa.table(LISTS | {"step": [[1, 2, 3], [5]], "loss": [[4.0, 3.5, None], [3.0]]})
    said = bring(tmp_path / "a.parquet", table, store, cwd, "dataset=c4").stderr
    assert "left out 1 row" in said
    assert found(store, "model, training_step, cross_entropy_nats") == [("a", 1, 4), ("a", 2, 3.5), ("b", 5, 3)]
    chosen = imports.bring(
        tmp_path / "a.parquet", store, cwd, "source=x", "family=lab", "dataset=c4", "where=step > 2"
    ).stderr
    assert "left out 2 rows" in chosen


def test_lists_of_two_lengths_are_refused(store: Path, cwd: Path, tmp_path: Path) -> None:
    rows = [{"S": 10**8, "step": [1, 2], "loss": [3.0]}]
    (line,) = bring(tmp_path / "a.json", rows, store, cwd, "dataset=c4", check=2).stderr.splitlines()
    assert "row 1: its lists have several lengths (step 2, loss 1)" in line
    assert not store.exists()
