"""Tokens that other engines scored come into a store as runs, with what the engine told and no more.

The answers of vLLM and SGLang are made from their documented schemas, with the numbers of a run that rbpx measured;
none was recorded from a live engine.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.stores import RESAMPLES, Measured, runs_by_size

NAMES = ("family=theirs", "dataset=letters", "dtype=bfloat16", "engine_version=0.11.0")


def columns_by_document(tokens: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
    """The tokens of each document, in order of position."""
    names = ("doc_id", "position", "token_id", "greater", "ties", "logprob")
    rows = [dict(zip(names, values, strict=True)) for values in zip(*(tokens[n].tolist() for n in names), strict=True)]
    documents = sorted({row["doc_id"] for row in rows})
    return {d: sorted((row for row in rows if row["doc_id"] == d), key=lambda row: row["position"]) for d in documents}


def as_vllm(rows: list[dict[str, Any]], extra: int) -> dict[str, Any]:
    """An answer to /v1/completions with prompt_logprobs and return_token_ids, of one prompt."""
    told: list[dict[str, Any] | None] = [None]
    for row in rows:
        of_token = {"logprob": row["logprob"], "rank": row["greater"] + row["ties"] + 1, "decoded_token": "x"}
        best = {"logprob": -0.1, "rank": 1, "decoded_token": "y"}
        told.append({str((row["token_id"] + 1) % extra): best, str(row["token_id"]): of_token})
    choice = {"index": 0, "text": "", "prompt_logprobs": told, "prompt_token_ids": [0, *(r["token_id"] for r in rows)]}
    return {"id": "cmpl-1", "object": "text_completion", "model": "m", "choices": [choice]}


def write(path: Path, *values: object) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def bring(file: Path, store: Path, cwd: Path, *words: object, check: int = 0) -> Answer:
    return here("import", "tokens", file, *NAMES, *words, "--store", store, cwd=cwd, check=check)


def asked(query: str, store: Path, cwd: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(
        here("sql", query, "--format", "json", "--store", store, cwd=cwd, check=0).stdout
    )
    return rows


def test_laws_of_what_vllm_answers_are_those_of_the_same_ranks_measured_here(
    measured: Measured, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    for size, tokens in runs_by_size(measured.store).items():
        answers = [as_vllm(rows, 7) for rows in columns_by_document(tokens).values()]
        V, S = tokens["vocab_size"], tokens["non_embedding_params"]
        said = bring(
            write(tmp_path / f"{size}.jsonl", *answers), store, cwd, "engine=vllm", f"size={size}", f"S={S}",
            f"vocab_size={V}",
        ).stderr  # fmt: skip
        assert "pessimistic ranks" in said
    words = (RESAMPLES, "k=[1,10]", "--format", "json")
    ours = json.loads(here("fit", *words, "--store", measured.store, cwd=cwd, check=0).stdout)
    theirs = json.loads(here("fit", *words, "--store", store, cwd=cwd, check=0).stdout)
    laws = {(row["law"], row["k"]): row for row in ours}
    compared = [row for row in theirs if row["law"] in ("rbp", "cross_entropy")]
    assert len(compared) == 3
    for row in compared:
        assert row["alpha"] == pytest.approx(laws[row["law"], row["k"]]["alpha"], rel=1e-6)
    for rule in ("optimistic", "mid"):
        refused = here("fit", f"ties={rule}", *words, "--store", store, cwd=cwd, check=2)
        assert f"gave no ranks with ties={rule}" in refused.stderr
        assert "Traceback" not in refused.stderr
        assert asked(f"FROM observations WHERE ties = '{rule}'", store, cwd) == []
    here("store", "verify", "--store", store, cwd=cwd, check=0)
    engines = asked("SELECT DISTINCT engine, engine_version, dtype, protocol FROM runs", store, cwd)
    assert engines == [{"engine": "vllm", "engine_version": "0.11.0", "dtype": "bfloat16", "protocol": "engine"}]
    greater = asked("SELECT count(greater) AS greater, count(ties) = count(*) AS told FROM tokens", store, cwd)
    assert greater == [{"greater": 0, "told": True}]
    again = bring(
        tmp_path / f"{size}.jsonl", store, cwd, "engine=vllm", f"size={size}", f"S={S}", f"vocab_size={V}"
    )  # fmt: skip
    assert "it was there already" in again.stderr
