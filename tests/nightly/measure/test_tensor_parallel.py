"""One model held by several processes: real ones on the CPU, whose run is the one that a single process makes."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.commands import here
from tests.support.launches import launch

SPLIT = ("gpt_neox", "opt", "qwen2")  # gpt2 has no plan


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory, tiny_text: list[str]) -> Path:
    path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    long = tiny_text[6]
    documents = [*tiny_text, *(long[11 * i : 20 * i + 2] for i in range(13))]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents), encoding="utf-8")
    return path


def asked(checkpoints: Sequence[Path], texts: Path, store: Path) -> list[str]:
    models = f"model.id=[{','.join(map(str, checkpoints))}]"
    where = ["dataset=file", f"dataset.path={texts}", "--store", str(store), "device=cpu"]
    return ["measure", "model=hub", "model.family=tiny", models, *where]


def runs(store: Path) -> dict[str, tuple[dict[str, Any], Any]]:
    """The manifest and the rows of each run."""
    return {
        folder.name: (json.loads((folder / "manifest.json").read_text()), pq.read_table(folder / "tokens.parquet"))
        for folder in (store / "runs").glob("[!_]*")
    }


@pytest.fixture(scope="module")
def checkpoints(tiny_checkpoint: Callable[..., Path]) -> list[Path]:
    return [tiny_checkpoint(arch, twins=8) for arch in SPLIT]


@pytest.fixture(scope="module")
def alone(checkpoints: list[Path], texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    (folder / "cwd").mkdir()
    here(*asked(checkpoints, texts, folder / "store"), cwd=folder / "cwd", check=0)
    return folder / "store"


@pytest.mark.parametrize(
    ("n_processes", "parallel"),
    [(2, "parallel=tensor"), (4, "parallel.tensor=2")],
)
def test_processes_that_share_a_model_make_the_run_of_one(
    n_processes: int, parallel: str, checkpoints: list[Path], texts: Path, alone: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    processes = launch([*asked(checkpoints, texts, store), parallel], tmp_path, n_processes)
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * n_processes, outputs
    expected, found = runs(alone), runs(store)
    assert set(found) == set(expected), "the number of processes is no part of a run's identity"
    assert len(found) == len(SPLIT)
    n_rows = n_moved = 0
    for run_id, (facts, rows) in found.items():
        of_one, rows_of_one = expected[run_id]
        assert facts["n_processes"] == n_processes
        for fact in ("n_tokens", "vocab_size", "non_embedding_params", "total_params", "weights_hash", "head"):
            assert facts[fact] == of_one[fact], fact
        for name in ("doc_id", "position", "token_id"):
            assert rows[name].equals(rows_of_one[name]), name
        assert max(rows["ties"].to_pylist()) > 0, "twins in different parts of the vocabulary tie"
        differs = [np.asarray(rows[name]) != np.asarray(rows_of_one[name]) for name in ("greater", "ties")]
        n_moved, n_rows = n_moved + int(np.sum(differs[0] | differs[1])), n_rows + len(rows)
        np.testing.assert_allclose(rows["logprob"], rows_of_one["logprob"], rtol=0, atol=1e-4)
    assert n_rows > 1500
    assert n_moved <= n_rows / 1000


@pytest.mark.parametrize(
    ("arch", "n_processes", "told"),
    [
        ("gpt2", 2, "transformers has no plan to split gpt2"),
        ("qwen2", 4, "num_key_value_heads=2 of qwen2 cannot be divided among 4 processes; use parallel.tensor=2"),
    ],
)
def test_a_model_that_cannot_be_split_fails_in_one_line(
    arch: str, n_processes: int, told: str, tiny_checkpoint: Callable[..., Path], texts: Path, tmp_path: Path
) -> None:
    words = [*asked([tiny_checkpoint(arch)], texts, tmp_path / "store"), "parallel=tensor"]
    processes = launch(words, tmp_path, n_processes)
    errors = "".join(process.communicate()[1] for process in processes)
    assert 0 not in [process.returncode for process in processes]
    assert errors.count(told) == 1
    assert "Traceback" not in errors
    assert not list((tmp_path / "store").glob("runs/[!_]*"))


def test_an_error_in_one_part_alone_ends_every_process(
    tiny_checkpoint: Callable[..., Path], texts: Path, tmp_path: Path
) -> None:
    """A row of the head that is not finite lies in the second process; both refuse its logits, and nothing is kept."""
    from safetensors.torch import load_file, save_file

    folder = tiny_checkpoint("gpt_neox", folder=tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    weights["embed_out.weight"][-1] = float("inf")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    processes = launch([*asked([folder], texts, tmp_path / "store"), "parallel=tensor"], tmp_path)
    errors = "".join(process.communicate()[1] for process in processes)
    assert 0 not in [process.returncode for process in processes]
    assert errors.count("non-finite logits at document") == 1
    assert "Traceback" not in errors
    assert not list((tmp_path / "store").glob("runs/[!_]*"))


def test_groups_that_do_not_fill_the_launch_are_refused(checkpoints: list[Path], texts: Path, tmp_path: Path) -> None:
    processes = launch([*asked(checkpoints[:1], texts, tmp_path / "store"), "parallel.tensor=3"], tmp_path)
    errors = "".join(process.communicate()[1] for process in processes)
    assert 0 not in [process.returncode for process in processes]
    assert "parallel.tensor=3 does not divide the 2 processes" in errors


@pytest.mark.parametrize(
    ("parallel", "told"),
    [
        ("parallel.tensor=0", "parallel.tensor=0 is not a number of processes"),
        ("parallel.tensor=two", "parallel.tensor=two is not a number of processes"),
        ("parallel=tensr", "did you mean tensor"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(
    parallel: str, told: str, checkpoints: list[Path], texts: Path, tmp_path: Path
) -> None:
    done = here(*asked(checkpoints[:1], texts, tmp_path / "store"), *parallel.split(), cwd=tmp_path)
    assert done.returncode != 0
    assert told in done.stderr
    assert not (tmp_path / "store").exists() or not list((tmp_path / "store").glob("runs/[!_]*"))
