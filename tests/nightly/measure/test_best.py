"""The best tokens of each place: those of the whole logits, beside runs of which no bit changes."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.support.commands import here
from tests.support.damage import faults, flip
from tests.support.stores import Family, rank_by_hand, runs_by_size, snapshot


def test_the_five_best_tokens_are_those_of_the_whole_logits_and_ranks_stay(
    own_store: Path, family: Family, cwd: Path
) -> None:
    before = {name: kept for name, kept in snapshot(own_store).items() if name.startswith("runs/")}
    here("measure", *family.words("s"), "best=5", "--store", own_store, cwd=cwd, check=0)
    after = {name: kept for name, kept in snapshot(own_store).items() if name.startswith("runs/")}
    assert after == before
    tokens = runs_by_size(own_store)["s"]
    best = pq.read_table(own_store / "best" / f"{tokens['run_id']}.parquet").to_pydict()
    assert best["doc_id"] == tokens["doc_id"].tolist()
    assert best["position"] == tokens["position"].tolist()
    ids_N5, logprobs_N5 = np.array(best["token_ids"]), np.array(best["logprobs"])
    is_best_N = rank_by_hand(tokens, "pessimistic") == 1
    assert is_best_N.any()
    assert (ids_N5[is_best_N, 0] == tokens["token_id"][is_best_N]).all()
    among_N = (ids_N5 == tokens["token_id"][:, None]).any(axis=1)
    assert (rank_by_hand(tokens, "optimistic")[among_N] <= 5).all()
    assert (rank_by_hand(tokens, "pessimistic")[~among_N] > 5).all()
    at_N, place_N = np.nonzero(ids_N5 == tokens["token_id"][:, None])
    np.testing.assert_allclose(logprobs_N5[at_N, place_N], tokens["logprob"][at_N], atol=1e-5)
    # the longest document by itself, through the whole model
    doc_id = int(np.bincount(tokens["doc_id"]).argmax())
    mine_N = tokens["doc_id"] == doc_id
    read = tokens["token_id"][mine_N].tolist()
    tokenizer = AutoTokenizer.from_pretrained(family.folders["s"])
    ids = [tokenizer(json.loads(line)["text"])["input_ids"] for line in family.text.read_text().splitlines()]
    (whole,) = (each[: len(read) + 1] for each in ids if each[1 : len(read) + 1] == read)
    with torch.inference_mode():
        model = AutoModelForCausalLM.from_pretrained(family.folders["s"], dtype=torch.float32)
        logits_NV = model(torch.tensor([whole])).logits[0, :-1]
    expected_N5 = logits_NV.log_softmax(1).topk(5).values.numpy()
    np.testing.assert_allclose(logprobs_N5[mine_N], expected_N5, atol=1e-5)

    doc_id = int(tokens["doc_id"][is_best_N][0])
    shown = here("view", "size=s", f"doc={doc_id}", "--store", own_store, "--format", "json", cwd=cwd, check=0)
    rows = json.loads(shown.stdout)
    assert [len(row["best"]) for row in rows] == [5] * len(rows)
    of_doc = logprobs_N5[tokens["doc_id"] == doc_id, 0]
    np.testing.assert_allclose([row["best"][0]["nats"] for row in rows], -of_doc, rtol=1e-6)
    hits = [row for row in rows if row["rank"] == 1]
    assert hits
    assert [row["best"][0]["text"] for row in hits] == [row["text"] for row in hits]
    printed = here("view", "size=s", f"doc={doc_id}", "--store", own_store, cwd=cwd, check=0).stdout
    assert "most surprising places, and what mine/s thought best there" in printed

    assert (
        "nothing to measure"
        in here("measure", *family.words("s"), "best=5", "--store", own_store, cwd=cwd, check=0).stderr
    )
    assert faults(own_store) == []
    path = own_store / "best" / f"{tokens['run_id']}.parquet"
    flip(path, path.stat().st_size // 3)
    (fault,) = faults(own_store)
    assert (fault.kind, fault.name) == ("best", tokens["run_id"])
    assert "make it again" in fault.remedy
