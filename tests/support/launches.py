"""The processes of a launch without a launcher, each told of the others as torchrun tells it, and what they measure."""

import socket
from pathlib import Path

import numpy as np

from tests.support.checkpoints import TINY_TEXT
from tests.support.stores import columns_of, manifests, write_jsonl
from tests.support.warm import Warm

ARCHITECTURES = ("gpt_neox", "opt", "qwen2")  # gpt2 has no plan to be split
FACTS = ("n_tokens", "n_documents", "n_skipped", "n_bytes", "vocab_size", "total_params", "weights_hash")


def launch(words: list[str], folder: Path, n_processes: int = 2) -> list[Warm]:
    """Processes of one command in an empty directory; none of them is stopped when another one fails."""
    (folder / "cwd").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    of_all = {"WORLD_SIZE": str(n_processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ranks = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(n_processes)]
    return [Warm(*words, cwd=folder / "cwd", env=of_all | rank) for rank in ranks]


def measuring(folder: Path, *checkpoints: Path) -> list[str]:
    """What measures models on 21 documents of different lengths: no share of them is as large as the other."""
    documents = [*TINY_TEXT, *(TINY_TEXT[6][11 * i : 20 * i + 2] for i in range(13))]
    texts = write_jsonl(folder / "texts.jsonl", *documents)
    models = f"model.id=[{','.join(map(str, checkpoints))}]"
    return ["measure", "model=hub", "model.family=tiny", models, "dataset=file", f"dataset.path={texts}"]


def assert_same_runs(store: Path, alone: Path, n_processes: int) -> None:
    """Runs that several processes made are those that one made, but for one token in a thousand."""
    expected, found = manifests(alone), manifests(store)
    n_rows = n_moved = 0
    for run_id, facts in found.items():
        assert (facts["n_processes"], expected[run_id]["n_processes"]) == (n_processes, 1)
        assert {fact: facts[fact] for fact in FACTS} == {fact: expected[run_id][fact] for fact in FACTS}
        ours, of_one = (columns_of(each / "runs" / run_id, "tokens") for each in (store, alone))
        for name in ("doc_id", "position", "token_id"):
            np.testing.assert_array_equal(ours[name], of_one[name], err_msg=name)
        assert ours["ties"].max() > 0, "twins in different parts of the vocabulary tie"
        moved = (ours["greater"] != of_one["greater"]) | (ours["ties"] != of_one["ties"])
        n_moved, n_rows = n_moved + int(moved.sum()), n_rows + len(moved)
        np.testing.assert_allclose(ours["logprob"], of_one["logprob"], rtol=0, atol=1e-4)
    assert n_rows > 500
    assert n_moved <= n_rows / 1000
