"""Several processes: real ones on the CPU, whose runs are those that a single process makes; or nothing."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.commands import here
from tests.support.launches import launch
from tests.support.stores import columns_of, manifests, write_jsonl

ARCHITECTURES = ("gpt_neox", "opt", "qwen2")  # gpt2 has no plan to be split


@pytest.fixture(scope="module")
def words(
    tiny_checkpoint: Callable[..., Path], tiny_text: list[str], tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """What measures three models on 21 documents of different lengths, so that no share is as large as the other."""
    long, models = tiny_text[6], ",".join(str(tiny_checkpoint(arch, twins=8)) for arch in ARCHITECTURES)
    documents = [*tiny_text, *(long[11 * i : 20 * i + 2] for i in range(13))]
    texts = write_jsonl(tmp_path_factory.mktemp("texts") / "texts.jsonl", *documents)
    asked = ["measure", "model=hub", "model.family=tiny", f"model.id=[{models}]", "device=cpu"]
    return [*asked, "dataset=file", f"dataset.path={texts}"]


@pytest.fixture(scope="module")
def alone(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of one process."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "cwd").mkdir()
    here(*words, "--store", folder / "store", cwd=folder / "cwd", check=0)
    return folder / "store"


@pytest.mark.parametrize("parallel", [(), ("parallel=tensor",)], ids=["texts shared out", "model shared out"])
def test_two_processes_make_the_runs_of_one(
    parallel: tuple[str, ...], words: list[str], alone: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    processes = launch([*words, *parallel, "--store", str(store)], tmp_path)
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert [stdout for stdout, _ in outputs] == ["", ""], "nothing but results goes to stdout"
    assert not list((tmp_path / "cwd").iterdir())
    expected, found = manifests(alone), manifests(store)
    assert set(found) == set(expected), "the number of processes is no part of a run's identity"
    assert len(found) == len(ARCHITECTURES)
    n_rows = n_moved = 0
    for run_id, facts in found.items():
        assert (facts["n_processes"], expected[run_id]["n_processes"]) == (2, 1)
        for fact in ("n_tokens", "n_documents", "n_skipped", "n_bytes", "vocab_size", "total_params", "weights_hash"):
            assert facts[fact] == expected[run_id][fact], fact
        assert facts["cross_entropy_nats"] == pytest.approx(expected[run_id]["cross_entropy_nats"], abs=1e-5)
        ours, of_one = (columns_of(each / "runs" / run_id, "tokens") for each in (store, alone))
        for name in ("doc_id", "position", "token_id"):
            np.testing.assert_array_equal(ours[name], of_one[name])
        assert ours["ties"].max() > 0, "twins in different parts of the vocabulary tie"
        moved = (ours["greater"] != of_one["greater"]) | (ours["ties"] != of_one["ties"])
        n_moved, n_rows = n_moved + int(moved.sum()), n_rows + len(moved)
        np.testing.assert_allclose(ours["logprob"], of_one["logprob"], rtol=0, atol=1e-4)
    assert n_rows > 1500
    assert n_moved <= n_rows / 1000


def test_where_one_process_is_killed_the_other_ends_and_keeps_no_run(
    tiny_checkpoint: Callable[..., Path], tiny_text: list[str], tmp_path: Path
) -> None:
    store, text = tmp_path / "store", write_jsonl(tmp_path / "t.jsonl", *(f"{n} {tiny_text[6]}" for n in range(250)))
    asked = ["measure", "model=hub", f"model.id={tiny_checkpoint('gpt2')}", "device=cpu", "tokens_per_batch=1"]
    one, other = launch([*asked, "dataset=file", f"dataset.path={text}", "--store", str(store)], tmp_path)
    while not [*store.glob("running/*.json")]:
        assert one.poll() is None, one.communicate()[1]
        time.sleep(0.01)
    other.send_signal(signal.SIGKILL)
    stderr = one.communicate()[1]
    other.communicate()
    assert other.returncode == -signal.SIGKILL
    assert one.returncode == 1, stderr
    assert not [*store.glob("runs/[!_.]*"), *store.glob("cells/*")]


@pytest.mark.parametrize(
    ("parallel", "told"),
    [
        (["parallel=tensor"], "parallel.tensor=all splits a model over processes, but there is one"),
        (["parallel=tensor", "best=5"], "best=5 needs all logits in one process"),
        (["parallel.tensor=0"], "parallel.tensor=0 is not a number of processes"),
    ],
)
def test_what_cannot_be_shared_out_is_told_in_one_line(
    parallel: list[str], told: str, words: list[str], cwd: Path, tmp_path: Path
) -> None:
    done = here(*words, *parallel, "--store", tmp_path / "store", cwd=cwd)
    assert done.returncode != 0
    assert told in done.stderr
    assert not list((tmp_path / "store").glob("runs/[!_]*"))
