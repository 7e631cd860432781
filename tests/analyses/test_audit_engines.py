"""Audits of engines: how far a run of another engine is from rbpx's float32, and when that refuses it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import Answer, here
from tests.support.engine_server import Engine, serving
from tests.support.stores import Family, Measured, columns_of, run_folders, runs_by_size, snapshot, write_jsonl

Tokens = dict[str, Any]


def by_engine(family: Family, store: Path, cwd: Path, dtype: str = "float32", **options: Any) -> Tokens:
    """The tokens of a run by an engine."""
    with serving(Engine(family.folders["m"], str(family.folders["m"]), dtype=dtype, **options)) as engine:
        words = (*family.words("m"), "engine=vllm", f"engine.url={engine.url}", f"dtype={dtype}")
        here("measure", *words, "--store", store, cwd=cwd, check=0)
    (run,) = run_folders(store).values()
    return columns_of(run, "tokens")


def audited(store: Path, cwd: Path, *words: str, check: int = 0) -> tuple[dict[str, Any], Answer]:
    """The row of cross-entropy of the one run."""
    words = ("audit", "resamples=50", "k=1", *words)
    answer = here(*words, "--store", store, "--format", "json", cwd=cwd, check=check)
    (row,) = [row for row in json.loads(answer.stdout) if row["law"] == "cross_entropy"]
    return row, answer


def pessimistic(tokens: Tokens) -> Any:
    return np.nan_to_num(tokens["greater"].astype(float)) + tokens["ties"].astype(float)


def differences(one: Tokens, other: Tokens) -> tuple[float, float]:
    """The share of tokens of another pessimistic rank, and the largest difference of a logprob."""
    apart = np.abs(one["logprob"].astype(float) - other["logprob"].astype(float))
    return float(np.mean(pessimistic(one) != pessimistic(other))), float(apart.max())


def test_an_engine_that_is_right_passes_with_what_a_loop_counts(measured: Measured, cwd: Path, tmp_path: Path) -> None:
    store, ours = tmp_path / "store", runs_by_size(measured.store)["m"]
    theirs = by_engine(measured.family, store, cwd)
    before = snapshot(store)
    row, _ = audited(store, cwd)
    assert snapshot(store) == before
    share, nats = differences(theirs, ours)
    assert (row["engine"], row["dtype"], row["n_tokens"]) == ("vllm 0.32.0", "float32", len(ours["logprob"]))
    # Our run is measured again in other batches, so that it may differ from the stored one by rounding.
    assert row["n_changed"] / row["n_tokens"] == pytest.approx(share, abs=1e-3)
    assert row["largest_logprob_move"] == pytest.approx(nats, abs=1e-4)
    assert (row["allowed_share"], row["allowed_nats"], row["is_same"]) == (2e-3, 2e-4, True)
    assert row["stored"] == pytest.approx(-np.mean(theirs["logprob"].astype(float)), rel=1e-9)


def test_an_engine_that_is_wrong_is_refused_beyond_the_tolerance(measured: Measured, cwd: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    share, nats = differences(
        by_engine(measured.family, store, cwd, temperature=1.05), runs_by_size(measured.store)["m"]
    )
    row, answer = audited(store, cwd, check=1)
    assert row["is_same"] is False
    assert nats > 0.01
    assert row["largest_logprob_move"] == pytest.approx(nats, rel=0.01)
    assert share < 1e-3  # a temperature keeps the order, so that only logprobs give it away
    (line,) = [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]
    assert "mine m on file (float32, vllm 0.32.0) failed: vllm 0.32.0 is refused: " in line
    assert f"off by up to {row['largest_logprob_move']:.2g} nats (0.0002 allowed)" in line
    assert "Traceback" not in answer.stderr
    shown = here("audit", "resamples=50", "tolerance=1e6", "--store", store, cwd=cwd, check=0).stdout
    assert "tolerance= times as much" in " ".join(shown.split())


def test_a_16_bit_engine_may_be_as_far_off_as_our_own_run_in_16_bits(
    measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    family, exact = measured.family, runs_by_size(measured.store)["m"]
    here("measure", *family.words("m"), "dtype=bfloat16", "--store", tmp_path / "ours", cwd=cwd, check=0)
    (run,) = run_folders(tmp_path / "ours").values()
    share, nats = differences(columns_of(run, "tokens"), exact)
    assert share > 1e-3
    assert nats > 1e-3
    by_engine(family, tmp_path / "right", cwd, "bfloat16")
    row, _ = audited(tmp_path / "right", cwd)
    assert row["is_same"] is True
    assert row["allowed_nats"] == pytest.approx(2 * nats, rel=0.1)
    assert row["allowed_share"] == pytest.approx(2 * share, rel=0.1)
    by_engine(family, tmp_path / "wrong", cwd, "bfloat16", temperature=1.2)
    assert audited(tmp_path / "wrong", cwd, check=1)[0]["is_same"] is False


def test_tokens_that_were_imported_have_no_model_to_be_audited_with(cwd: Path, tmp_path: Path) -> None:
    token = {"doc_id": 0, "position": 1, "token_id": 5, "rank": 3, "logprob": -1.5}
    file, store = write_jsonl(tmp_path / "rows.jsonl"), tmp_path / "store"
    file.write_text(json.dumps(token) + "\n")
    names = (
        "engine=e",
        "engine_version=1.0.0",
        "family=f",
        "size=s",
        "S=10",
        "dataset=d",
        "vocab_size=69",
        "dtype=float32",
    )
    here("import", "tokens", file, *names, "ties=pessimistic", "--store", store, cwd=cwd, check=0)
    told = here("audit", "--store", store, cwd=cwd, check=1).stderr
    assert "its tokens were imported, so rbpx knows no model that could measure them; measure with engine=" in told
