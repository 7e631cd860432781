"""Several processes: real ones on the CPU, whose runs are those that a single process makes; or nothing."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import here
from tests.support.launches import ARCHITECTURES, assert_same_runs, launch, measuring
from tests.support.stores import manifests, write_jsonl


@pytest.fixture(scope="module")
def words(tiny_checkpoint: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What measures three models on the CPU."""
    models = [tiny_checkpoint(arch, twins=8) for arch in ARCHITECTURES]
    return [*measuring(tmp_path_factory.mktemp("texts"), *models), "device=cpu"]


@pytest.fixture(scope="module")
def alone(words: list[str], place: Path) -> Path:
    """The store of one process."""
    here(*words, "--store", place.parent / "store", cwd=place, check=0)
    return place.parent / "store"


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
    assert manifests(store).keys() == manifests(alone).keys(), "the number of processes is no part of a run's identity"
    assert_same_runs(store, alone, 2)


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
