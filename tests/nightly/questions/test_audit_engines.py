"""Audits of engines that compute in 16 bits, which may be as far off as rbpx's own run in 16 bits."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import Answer, here
from tests.support.engine_server import Engine, serving
from tests.support.stores import Family, Measured, columns_of, run_folders, runs_by_size

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
    (row,) = [row for row in json.loads(answer.stdout) if row.get("law") == "cross_entropy"]
    return row, answer


def pessimistic(tokens: Tokens) -> Any:
    return np.nan_to_num(tokens["greater"].astype(float)) + tokens["ties"].astype(float)


def differences(one: Tokens, other: Tokens) -> tuple[float, float]:
    """The share of tokens of another pessimistic rank, and the largest difference of a logprob."""
    apart = np.abs(one["logprob"].astype(float) - other["logprob"].astype(float))
    return float(np.mean(pessimistic(one) != pessimistic(other))), float(apart.max())


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
