"""The best tokens of each place: those of the whole logits, beside runs of which no bit changes."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.support.commands import here
from tests.support.damage import faults, flip
from tests.support.stores import Family, manifests, rank_by_hand, runs_by_size, snapshot, write_jsonl

TEXT = "The letters are read twice: once by the one who writes them, and once by the one who waits."


def test_the_five_best_tokens_are_those_of_the_whole_logits_and_ranks_stay(
    family: Family, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    words = ["measure", *family.words("s", text=write_jsonl(tmp_path / "text.jsonl", TEXT)), "--store", store]
    here(*words, cwd=cwd, check=0)
    before = {name: kept for name, kept in snapshot(store).items() if name.startswith("runs/")}
    (run,) = manifests(store).values()
    own_mib = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
    assert 0.7 * own_mib < run["peak_mib"] <= own_mib
    here(*words, "best=5", cwd=cwd, check=0)
    assert {name: kept for name, kept in snapshot(store).items() if name.startswith("runs/")} == before
    tokens = runs_by_size(store)["s"]
    best = pq.read_table(store / "best" / f"{tokens['run_id']}.parquet").to_pydict()
    assert best["position"] == tokens["position"].tolist() == list(range(1, len(tokens["position"]) + 1))
    ids_N5, logprobs_N5 = np.array(best["token_ids"]), np.array(best["logprobs"])
    among_N = (ids_N5 == tokens["token_id"][:, None]).any(axis=1)
    assert among_N.any()
    assert (rank_by_hand(tokens, "optimistic")[among_N] <= 5).all()
    assert (rank_by_hand(tokens, "pessimistic")[~among_N] > 5).all()
    ids = AutoTokenizer.from_pretrained(family.folders["s"])(TEXT)["input_ids"][: len(ids_N5) + 1]
    assert ids[1:] == tokens["token_id"].tolist()
    with torch.inference_mode():
        model = AutoModelForCausalLM.from_pretrained(family.folders["s"], dtype=torch.float32)
        logprobs_NV = model(torch.tensor([ids])).logits[0, :-1].log_softmax(1)
    np.testing.assert_allclose(logprobs_N5, logprobs_NV.topk(5).values.numpy(), atol=1e-5)
    np.testing.assert_allclose(logprobs_N5, logprobs_NV.gather(1, torch.from_numpy(ids_N5).long()).numpy(), atol=1e-5)
    shown = here("view", "size=s", "doc=0", "--store", store, "--format", "json", cwd=cwd, check=0)
    nats_N5 = [[each["nats"] for each in row["best"]] for row in json.loads(shown.stdout)]
    np.testing.assert_allclose(nats_N5, -logprobs_N5, rtol=1e-6)
    assert faults(store) == []
    path = store / "best" / f"{tokens['run_id']}.parquet"
    flip(path, path.stat().st_size // 3)
    (fault,) = faults(store)
    assert (fault.kind, fault.name) == ("best", tokens["run_id"])
    assert "make it again" in fault.remedy
