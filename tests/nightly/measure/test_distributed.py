"""Several processes: real launches of two on CPU, whose run is the one that a single process makes; or nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.commands import here
from tests.support.launches import launch
from tests.support.places import PROJECT

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
ACCELERATE = [
    sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_machines", "1", "--num_processes", "2",
    "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0",
]  # fmt: skip
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}
_OF_A_LAUNCH = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "ACCELERATE_USE_CPU", "RBPX_STORE"}


class Stored(NamedTuple):
    """The only run of a store."""

    manifest: dict[str, Any]
    tokens: pa.Table


def rbpx(launcher: Sequence[str], folder: Path, *overrides: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`LAUNCHER -m rbpx ...` in an empty working directory, so that a file that should not appear is seen there."""
    where = folder / "cwd"
    where.mkdir(exist_ok=True)
    kept = {key: value for key, value in os.environ.items() if key not in _OF_A_LAUNCH}
    return subprocess.run(
        [*launcher, "-m", "rbpx", *overrides],
        env=kept | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "home")} | variables,
        cwd=where,
        capture_output=True,
        text=True,
        timeout=300,
    )


THREADS_AT_THE_END = """
import atexit, os, pathlib, sys

def tell():
    names = sorted(path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm"))
    print("threads at the end:", *names, file=sys.stderr)

if "LOCAL_RANK" in os.environ:
    atexit.register(tell)
"""


def measuring(checkpoint: Path, texts: Path, store: Path) -> list[str]:
    return [
        "measure",
        "model=hub",
        f"model.id={checkpoint}",
        "dataset=file",
        f"dataset.path={texts}",
        "--store",
        str(store),
    ]


def only_run(store: Path) -> Stored:
    (folder,) = (store / "runs").glob("[!_]*")
    return Stored(json.loads((folder / "manifest.json").read_text()), pq.read_table(folder / "tokens.parquet"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory, tiny_text: list[str]) -> Path:
    """21 documents of different lengths: not an even number, so that no share is as large as the other."""
    path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    long = tiny_text[6]
    documents = [*tiny_text, *(long[11 * i : 11 * i + 9 * i + 2] for i in range(13))]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Callable[..., Path]) -> Path:
    return tiny_checkpoint("gpt2", twins=8)


@pytest.fixture(scope="module")
def alone(checkpoint: Path, texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "cwd").mkdir()
    here(*measuring(checkpoint, texts, folder / "store"), cwd=folder / "cwd", check=0)
    stored = only_run(folder / "store")
    assert stored.manifest["n_processes"] == 1
    return stored


@pytest.mark.parametrize(
    "launcher",
    [pytest.param(TORCHRUN, id="torchrun"), pytest.param(ACCELERATE, id="accelerate")],
)
def test_two_processes_make_the_run_of_one(
    launcher: list[str], checkpoint: Path, texts: Path, alone: Stored, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(THREADS_AT_THE_END)
    variables = NO_GPU | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(PROJECT)])}
    done = rbpx(launcher, tmp_path, *measuring(checkpoint, texts, tmp_path / "store"), **variables)
    assert done.returncode == 0, done.stderr
    ends = [line for line in done.stderr.splitlines() if "threads at the end:" in line]
    assert len(ends) == 2
    assert not any("gloo" in line for line in ends), "threads that outlive the interpreter abort it now and then"
    two = only_run(tmp_path / "store")
    assert two.manifest["n_processes"] == 2
    assert two.manifest["run_id"] == alone.manifest["run_id"]
    for fact in ("n_tokens", "n_documents", "n_skipped", "n_bytes", "text_hash", "tokenizer_hash", "vocab_size"):
        assert two.manifest[fact] == alone.manifest[fact], fact
    assert two.manifest["cross_entropy_nats"] == pytest.approx(alone.manifest["cross_entropy_nats"], abs=1e-5)

    keys = list(zip(*(two.tokens[name].to_pylist() for name in ("doc_id", "position")), strict=True))
    assert len(set(keys)) == len(keys) == two.manifest["n_tokens"] > 500, "no token twice, none missing"
    assert keys == sorted(keys)
    for name in ("run_id", "doc_id", "position", "token_id"):
        assert two.tokens[name].equals(alone.tokens[name]), name
    moved = sum(
        a != b
        for a, b in zip(
            two.tokens.select(["greater", "ties"]).to_pylist(),
            alone.tokens.select(["greater", "ties"]).to_pylist(),
            strict=True,
        )
    )
    assert moved <= len(keys) / 1000
    np.testing.assert_allclose(two.tokens["logprob"], alone.tokens["logprob"], rtol=0, atol=1e-4)

    assert len(list((tmp_path / "store" / "cells").iterdir())) == 1
    assert not list((tmp_path / "cwd").iterdir()), "nothing appears in the working directory"
    assert done.stdout == "", "nothing but results goes to stdout"


def test_accelerate_without_a_gpu_is_told_to_have_started_one_process(
    checkpoint: Path, texts: Path, tmp_path: Path
) -> None:
    plain = [word for word in ACCELERATE if word != "--multi_gpu"]
    done = rbpx(plain, tmp_path, *measuring(checkpoint, texts, tmp_path / "store"), **NO_GPU)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("rbpx: accelerate launch")]
    assert "has started one process, whatever --num_processes says" in line
    assert "torchrun --nproc-per-node 2 -m rbpx" in line
    assert only_run(tmp_path / "store").manifest["n_processes"] == 1


def test_a_failure_that_one_process_meets_ends_all_and_keeps_no_run(
    tiny_checkpoint: Callable[..., Path], texts: Path, tmp_path: Path
) -> None:
    """The last positions have NaN embeddings, so that the only long document fails, in the process that it falls to."""
    from safetensors.torch import load_file, save_file

    folder = tiny_checkpoint("gpt2", folder=tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    weights["transformer.wpe.weight"][62:] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    lines = texts.read_text(encoding="utf-8").splitlines(keepends=True)
    short = [line for line in lines if len(line) < 60]
    longest = max(lines, key=len)
    (tmp_path / "texts.jsonl").write_text("".join([*short, longest]), encoding="utf-8")
    processes = launch([*measuring(folder, tmp_path / "texts.jsonl", tmp_path / "store"), "device=cpu"], tmp_path)
    outputs = [process.communicate()[1] for process in processes]
    assert 0 not in [process.returncode for process in processes]
    complaints = [line for stderr in outputs for line in stderr.splitlines() if line.startswith("rbpx: ")]
    assert len(complaints) == 1, outputs
    assert "non-finite logits" in complaints[0]
    assert "rbpx/measure/extract.py" not in "".join(outputs), "a traceback of ours"
    assert not list((tmp_path / "store").glob("runs/[!_]*"))
    assert not list((tmp_path / "store").glob("cells/*"))
    (failure,) = (tmp_path / "store" / "failures").iterdir()
    assert "non-finite logits" in json.loads(failure.read_text())["error"]
