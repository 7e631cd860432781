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

from rbpx.config.model.placement import Split
from rbpx.errors import RbpxError
from rbpx.models.load import load_model
from tests.support.checkpoints import ARCHITECTURES
from tests.support.commands import here
from tests.support.pickles import pickle_weights

CPU = torch.device("cpu")
# Bytes of the CPU's memory that leave everything, a part, or nothing on disk; the tiny models have 45 to 230 KB.
NOTHING, A_PART, ALL = 1, {"float32": 100_000, "bfloat16": 60_000}, 10**9


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


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_split_model_gives_the_rows_and_the_identity_of_the_whole_one(
    arch: str, dtype: str, tiny_checkpoint: Callable[..., Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    folder = tiny_checkpoint(arch)
    measure(folder, tiny_jsonl, tmp_path / "whole", cwd, "device=cpu", f"dtype={dtype}")
    names, facts, rows = read_run(tmp_path / "whole")
    assert facts["device"] == "cpu"
    devices = set()
    for limit in (NOTHING, A_PART[dtype], ALL):
        store = tmp_path / f"{limit}"
        memory = f"memory={{cpu: {limit}}}"
        answer = measure(folder, tiny_jsonl, store, cwd, "device=split", memory, f"dtype={dtype}")
        assert "offloaded" not in answer.stderr
        split_names, split_facts, split_rows = read_run(store)
        assert split_names == names
        assert not list(store.glob("*.tmp")), "what lay on disk is gone"
        for key in ("non_embedding_params", "total_params", "head", "weights_hash", "vocab_size"):
            assert split_facts[key] == facts[key], key
        devices.add(split_facts["device"])
        for name in ("doc_id", "position", "token_id", "greater", "ties"):
            np.testing.assert_array_equal(split_rows[name], rows[name], err_msg=name)
        np.testing.assert_allclose(split_rows["logprob"], rows["logprob"], rtol=0, atol=1e-6)
    assert devices == {"cpu", "cpu, disk"}
    loaded = load_model(str(folder), None, dtype, CPU, split=Split(tmp_path, {"cpu": A_PART[dtype]}))
    assert {str(place) for place in loaded.model.hf_device_map.values()} == {"cpu", "disk"}, "a part of it on each"


def test_pickled_weights_are_refused(tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder = pickle_weights(Path(shutil.copytree(tiny_checkpoint("gpt2"), tmp_path / "model")))
    with pytest.raises(RbpxError, match="has no safetensors, so it is measured on one device"):
        load_model(str(folder), None, "float32", CPU, pickled=True, split=Split(tmp_path, None))
