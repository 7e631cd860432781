"""Several processes on the CPU, by the launchers and without: their runs are those of one process, or there is none."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.support.commands import here
from tests.support.launches import ARCHITECTURES, assert_same_runs, launch, measuring
from tests.support.places import PROJECT
from tests.support.stores import manifests

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
ACCELERATE = [
    sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines", "1", "--num_processes", "2",
    "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0",
]  # fmt: skip
_OF_A_LAUNCH = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "ACCELERATE_USE_CPU", "RBPX_STORE"}
THREADS_AT_THE_END = """
import atexit, os, pathlib, sys

def tell():
    names = sorted(path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm"))
    print("threads at the end:", *names, file=sys.stderr)

if "LOCAL_RANK" in os.environ:
    atexit.register(tell)
"""


def launched(launcher: Sequence[str], folder: Path, model: Path) -> subprocess.CompletedProcess[str]:
    """`LAUNCHER -m rbpx measure ...` in an empty working directory, whose processes tell their last threads."""
    (folder / "cwd").mkdir()
    (folder / "sitecustomize.py").write_text(THREADS_AT_THE_END)
    env = {key: value for key, value in os.environ.items() if key not in _OF_A_LAUNCH}
    env |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{folder}{os.pathsep}{PROJECT}"}
    line = [*launcher, "-m", "rbpx", *measuring(folder, model), "--store", str(folder / "store")]
    return subprocess.run(line, env=env, cwd=folder / "cwd", capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def checkpoints(tiny_checkpoint: Callable[..., Path]) -> list[Path]:
    return [tiny_checkpoint(arch, twins=8) for arch in ARCHITECTURES]


@pytest.fixture(scope="module")
def alone(checkpoints: list[Path], place: Path) -> Path:
    """The store of one process."""
    here(*measuring(place.parent, *checkpoints), "--store", place.parent / "store", cwd=place, check=0)
    return place.parent / "store"


@pytest.mark.parametrize("launcher", [TORCHRUN, ACCELERATE], ids=["torchrun", "accelerate"])
def test_two_processes_of_a_launcher_make_the_run_of_one(
    launcher: list[str], checkpoints: list[Path], alone: Path, tmp_path: Path
) -> None:
    done = launched(launcher, tmp_path, checkpoints[0])
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    ends = [line for line in done.stderr.splitlines() if "threads at the end:" in line]
    assert len(ends) == 2
    assert not any("gloo" in line for line in ends), "threads that outlive the interpreter abort it now and then"
    assert_same_runs(tmp_path / "store", alone, 2)
    assert not list((tmp_path / "cwd").iterdir()), "nothing appears in the working directory"


def test_accelerate_without_a_gpu_is_told_to_have_started_one_process(checkpoints: list[Path], tmp_path: Path) -> None:
    plain = [word for word in ACCELERATE if word != "--multi_gpu"]
    done = launched(plain, tmp_path, checkpoints[0])
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("rbpx: accelerate launch")]
    assert "has started one process, whatever --num_processes says" in line
    assert "torchrun --nproc-per-node 2 -m rbpx" in line
    assert [facts["n_processes"] for facts in manifests(tmp_path / "store").values()] == [1]


def test_four_processes_that_hold_two_models_make_the_runs_of_one(
    checkpoints: list[Path], alone: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    words = [*measuring(tmp_path, *checkpoints), "device=cpu", "parallel.tensor=2", "--store", str(store)]
    processes = launch(words, tmp_path, 4)
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, outputs
    assert len(manifests(store)) == len(checkpoints)
    assert_same_runs(store, alone, 4)


def spoilt(folder: Path, weights: str, row: slice, value: float) -> Path:
    """A checkpoint with a number that is none."""
    tensors = load_file(folder / "model.safetensors")
    tensors[weights][row] = value
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


CANNOT = {  # an architecture, how many processes, what they are asked, and what one of them says
    "no plan": ("gpt2", 2, "parallel=tensor", "transformers has no plan to split gpt2"),
    "two heads": ("qwen2", 4, "parallel=tensor", "cannot be divided among 4 processes; use parallel.tensor=2"),
    "three of two": ("opt", 2, "parallel.tensor=3", "parallel.tensor=3 does not divide the 2 processes"),
    # the last row of the head lies in the second process; both refuse its logits
    "one part": ("gpt_neox", 2, "parallel=tensor", "non-finite logits at document"),
    # the last positions are NaN, so that the only long document fails, in the process that it falls to
    "one share": ("gpt2", 2, "limit=1000", "non-finite logits at document"),
}


@pytest.mark.parametrize("case", CANNOT)
def test_what_cannot_be_measured_together_is_told_once_and_ends_all_without_a_run(
    case: str, tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    arch, n_processes, word, told = CANNOT[case]
    model, store = tiny_checkpoint(arch, folder=tmp_path / "model"), tmp_path / "store"
    words = [*measuring(tmp_path, model), "device=cpu", word, "--store", str(store)]
    if case == "one part":
        spoilt(model, "embed_out.weight", slice(-1, None), float("inf"))
    elif case == "one share":
        spoilt(model, "transformer.wpe.weight", slice(62, None), float("nan"))
        texts = tmp_path / "texts.jsonl"
        lines = texts.read_text(encoding="utf-8").splitlines(keepends=True)
        texts.write_text("".join([*(line for line in lines if len(line) < 60), max(lines, key=len)]), encoding="utf-8")
    processes = launch(words, tmp_path, n_processes)
    errors = "".join(process.communicate()[1] for process in processes)
    assert 0 not in [process.returncode for process in processes]
    assert errors.count(told) == 1, errors
    assert "rbpx/measure/extract.py" not in errors, "a traceback of ours"
    assert not [*store.glob("runs/[!_]*"), *store.glob("cells/*")]
    assert all(told in json.loads(path.read_text())["error"] for path in store.glob("failures/*.json"))
