"""Tokens that other engines scored come into a store as runs, with what the engine told and no more.

The answers of vLLM and SGLang are made from their documented schemas, with the numbers of a drawn run;
none was recorded from a live engine.
"""

from pathlib import Path
from typing import Any

import pytest

from rbpx.errors import RbpxError
from rbpx.store.sql import ask_user, connect
from rbpx.store.store import Store
from rbpx.store.verify import verify
from tests.support.commands import Answer
from tests.support.composed import here
from tests.support.imports import bring_words
from tests.support.stores import runs_by_size
from tests.support.tables import write_table

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


def as_sglang(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """An answer to /generate with return_logprob and logprob_start_len=0."""
    told = [[None, 0, None], *([row["logprob"], row["token_id"], None] for row in rows)]
    return {"text": "", "meta_info": {"prompt_tokens": len(told), "input_token_logprobs": told}}


def bring(file: Path, store: Path, cwd: Path, *words: object, check: int = 0) -> Answer:
    return bring_words("tokens", file, *NAMES, *words, "--store", store, cwd=cwd, check=check)


def asked(store: Path, *queries: str) -> list[list[dict[str, Any]]]:
    with connect(Store(store)) as connection:
        return [ask_user(connection, query).to_pylist() for query in queries]


def test_ranks_that_vllm_tells_are_pessimistic_ones_and_answer_no_other_rule(
    drawn: Path, cwd: Path, tmp_path: Path
) -> None:
    store, tokens = tmp_path / "store", runs_by_size(drawn)["m"]
    file = write_table(tmp_path / "m.jsonl", [as_vllm(rows, 7) for rows in columns_by_document(tokens).values()])
    words = ("engine=vllm", "size=m", "S=1000", f"vocab_size={tokens['vocab_size']}")
    assert "pessimistic ranks" in bring(file, store, cwd, *words).stderr
    query = "SELECT k, rbp, n_tokens FROM observations WHERE ties = 'pessimistic'{} ORDER BY k"
    assert asked(store, query.format("")) == asked(drawn, query.format(f" AND run_id = '{tokens['run_id']}'"))
    (kept,), others = asked(
        store,
        "SELECT any_value(engine) AS engine, count(greater) AS greater, count(ties) AS n "
        "FROM tokens JOIN runs USING (run_id)",
        "FROM observations WHERE ties <> 'pessimistic'",
    )
    assert (kept, others) == ({"engine": "vllm", "greater": 0, "n": len(tokens["ties"])}, [])
    refused = here("fit", "ties=mid", "laws=[rbp]", "--store", store, cwd=cwd, check=2).stderr
    assert "gave no ranks with ties=mid" in refused
    assert refused.count("\n") == 1
    assert "it was there already" in bring(file, store, cwd, *words).stderr


def test_logprobs_without_ranks_are_kept_and_no_rank_is_made_of_them(drawn: Path, cwd: Path, tmp_path: Path) -> None:
    store, tokens = tmp_path / "store", runs_by_size(drawn)["m"]
    file = write_table(tmp_path / "s.jsonl", [as_sglang(rows) for rows in columns_by_document(tokens).values()])
    said = bring(file, store, cwd, "engine=sglang", "size=m", "S=1000", f"vocab_size={tokens['vocab_size']}").stderr
    assert "not the rank of every token" in said
    (run,), none = asked(store, "SELECT n_tokens, cross_entropy_nats FROM runs", "FROM observations")
    assert run["n_tokens"] == len(tokens["logprob"])
    assert run["cross_entropy_nats"] == pytest.approx(-float(tokens["logprob"].astype(float).mean()), rel=1e-6)
    assert none == []
    assert verify(Store(store)).faults == []
    with pytest.raises(RbpxError, match="rank untold"):
        asked(store, "SELECT rank_under(greater, ties, 'pessimistic') AS rank FROM tokens")


def test_a_table_with_ties_apart_answers_every_rule(drawn: Path, cwd: Path, tmp_path: Path) -> None:
    store, tokens = tmp_path / "store", runs_by_size(drawn)["l"]
    rows = [row for of in columns_by_document(tokens).values() for row in of]
    file = write_table(tmp_path / "t.jsonl", rows)
    bring(file, store, cwd, "engine=mine", "size=l", "S=1000", f"vocab_size={tokens['vocab_size']}")
    rules = [f"SELECT rbp, n_tokens FROM rbp_at(3, '{rule}')" for rule in ("pessimistic", "optimistic", "mid")]
    ours = [f"{query} WHERE run_id = '{tokens['run_id']}'" for query in rules]
    assert asked(store, *rules) == asked(drawn, *ours)


def test_half_a_character_of_a_token_is_kept_as_its_escape(cwd: Path, tmp_path: Path) -> None:
    told = [None, {"3": {"logprob": -1.0, "rank": 2, "decoded_token": "a\ud83d"}}]
    file = write_table(tmp_path / "rows.jsonl", [{"prompt_logprobs": told, "prompt_token_ids": [0, 3]}])
    bring(file, tmp_path / "store", cwd, "engine=vllm", "size=s", "S=10", "vocab_size=5")
    ((row,),) = asked(tmp_path / "store", "SELECT text FROM vocab WHERE token_id = 3")
    assert row["text"] == r"a\ud83d"
