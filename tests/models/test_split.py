"""A model larger than one device: over GPUs, memory and disk it gives the rows that it gives in one piece."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from rbpx.config.model.placement import Split, read_limits
from rbpx.errors import MeasureError, RbpxError
from rbpx.models.load import load_model
from tests.support.commands import here
from tests.support.measuring import check_split
from tests.support.pickles import pickle_weights

CPU = torch.device("cpu")
# Bytes of the CPU's memory that leave everything, a part, or nothing on disk; the tiny models have 45 to 230 KB.
NOTHING, A_PART = 1, 100_000


def measure(folder: Path, text: Path, store: Path, cwd: Path, *words: str, check: int = 0) -> Any:
    common = ["model=hub", f"model.id={folder}", "dataset=file", f"dataset.path={text}", f"store={store}"]
    return here("measure", *common, "limit=4", *words, cwd=cwd, check=check)


def read_run(store: Path) -> tuple[list[str], dict[str, Any], dict[str, np.ndarray]]:
    """Names of what a store holds, the manifest of its only run, and its rows."""
    run = next((store / "runs").glob("[!_]*"))
    table = pq.read_table(run / "tokens.parquet")
    cells = [path.name for path in (store / "cells").iterdir()]
    rows = {name: table[name].to_numpy() for name in table.column_names if name != "run_id"}
    return [run.name, *cells], json.loads((run / "manifest.json").read_text()), rows


def lines(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("rbpx: ")]


# Whose head is tied, narrow, and one of its own; the bytes of the CPU's memory leave a part or nothing there.
@pytest.mark.parametrize(
    ("arch", "dtype", "limit"),
    [("gpt2", "float32", 100_000), ("opt350", "bfloat16", 60_000), ("gpt_neox", "float32", NOTHING)],
)
def test_a_split_model_gives_the_rows_and_the_identity_of_the_whole_one(
    arch: str, dtype: str, limit: int, tiny_checkpoint: Callable[..., Path], tiny_text: list[str], tmp_path: Path
) -> None:
    check_split(tiny_checkpoint(arch), dtype, limit, tiny_text, tmp_path)


def test_a_split_run_is_the_run_of_the_whole_model(
    tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    store, folder = tmp_path / "store", tiny_checkpoint("gpt2")
    measure(folder, tiny_jsonl, store, cwd, "device=split", f"memory={{cpu: {A_PART}}}")
    names, facts, _ = read_run(store)
    assert facts["device"] == "cpu, disk"
    assert not list(store.glob("*.tmp")), "what lay on disk is gone"
    answer = measure(folder, tiny_jsonl, store, cwd, "device=cpu")
    assert "nothing to measure" in answer.stderr
    assert read_run(store)[0] == names


def test_the_head_of_a_split_model_is_fetched_once_and_not_for_every_chunk(
    tiny_checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    for dtype in ("float32", "bfloat16", "float16"):
        loaded = load_model(str(tiny_checkpoint("qwen2")), None, dtype, CPU, split=Split(tmp_path, {"cpu": NOTHING}))
        whole = load_model(str(tiny_checkpoint("qwen2")), None, dtype, CPU)
        assert loaded.model.get_output_embeddings().weight.is_meta
        hidden_ND = torch.randn(7, 32, generator=torch.Generator().manual_seed(0)).to(loaded.model.dtype)
        for model in (loaded.model, loaded.model.get_output_embeddings()):
            model.forward = None  # nothing of the model runs from here on
        with torch.inference_mode():
            logits_NV = loaded.head.logits(hidden_ND)
            assert torch.equal(logits_NV, whole.head.logits(hidden_ND))
        assert logits_NV.dtype == torch.float32


def test_memory_that_runs_out_is_one_line_that_names_the_way_on(
    tiny_checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM

    def full(*args: Any, **kwargs: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 99 GiB.\nmore lines")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", full)
    with pytest.raises(MeasureError) as caught:
        load_model(str(tiny_checkpoint("gpt2")), None, "float32", CPU)
    assert "does not fit into memory" in str(caught.value)
    assert "device=split" in str(caught.value)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------------------------- what is refused


def test_pickled_weights_are_refused(tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder = pickle_weights(Path(shutil.copytree(tiny_checkpoint("gpt2"), tmp_path / "model")))
    with pytest.raises(RbpxError, match="has no safetensors, so it is measured on one device"):
        load_model(str(folder), None, "float32", CPU, pickled=True, split=Split(tmp_path, None))


def test_several_processes_do_not_split_one_model(
    tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    answer = measure(tiny_checkpoint("gpt2"), tiny_jsonl, tmp_path / "s", cwd, "device=split", check=2)
    assert len(lines(answer.stderr)) == 1
    assert "device=split" in answer.stderr
    assert "2 processes were launched" in answer.stderr


def test_amounts_are_read_as_they_are_written() -> None:
    assert read_limits("memory", {0: "20GiB", 1: "1.5 GB", "cpu": 4096}) == {
        0: 20 * 2**30,
        1: 1_500_000_000,
        "cpu": 4096,
    }
    assert read_limits("memory", {"cpu": "3KiB"}) == {"cpu": 3072}
