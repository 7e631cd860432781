"""A model that fails in whatever way is a failure of its own cell, kept with its reason; all others are measured."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.census import save_tiny
from tests.support.commands import Answer, here
from tests.support.stores import cell_records, manifests

SHORT = 40  # positions, fewer than the texts have


def rewrite(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def odd_rotary_width(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    save_tiny("stablelm", folder, num_key_value_heads=4, partial_rotary_factor=0.4)


def half_its_weights(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])


# What is done to a checkpoint, and what its one line says.
HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "odd rotary width": (odd_rotary_width, "measuring it failed: RuntimeError"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "needs weights in safetensors"),
    "half its weights": (half_its_weights, "cannot be loaded as a causal language model: SafetensorError"),
    "other vocabulary": (lambda folder: rewrite(folder, vocab_size=100), "weights of other shapes than config.json"),
    "unknown architecture": (lambda folder: rewrite(folder, model_type="warpdrive"), "`warpdrive`"),
    "code of its own": (
        lambda folder: rewrite(folder, model_type="own", auto_map={"AutoConfig": "own.Config"}),
        "needs code of its own, and rbpx runs none",
    ),
}


@pytest.fixture
def members(tiny_checkpoint: Callable[..., Path], tmp_path: Path) -> dict[str, Path]:
    """A model that reads few tokens by a name of its own, one for each harm, and a sound one."""
    folders = {"short": tmp_path / "short"}
    save_tiny("mpt", folders["short"], max_seq_len=SHORT)
    for harm, (harmed, _) in HARMS.items():
        folders[harm] = shutil.copytree(tiny_checkpoint("gpt2"), tmp_path / harm.replace(" ", "-"))
        harmed(folders[harm])
    return folders | {"sound": shutil.copytree(tiny_checkpoint("gpt2"), tmp_path / "sound")}


def told(answer: Answer) -> list[str]:
    assert "Traceback" not in answer.stderr
    return [line for line in answer.stderr.splitlines() if line.startswith("rbpx: ")]


def test_models_that_fail_are_told_and_kept_and_the_others_are_measured(
    members: dict[str, Path], tiny_jsonl: Path, cwd: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    ids = ",".join(map(str, members.values()))
    words = ["model=hub", f"model.id=[{ids}]", "model.family=all", "dataset=file", f"dataset.path={tiny_jsonl}"]
    answer = here("measure", *words, "--store", store, cwd=cwd, check=1)
    windows = {cell["size"]: manifests(store)[cell["run_id"]]["window"] for cell in cell_records(store)}
    assert windows == {"short": SHORT, "sound": 64}
    lines = [line for line in told(answer) if " failed: " in line]
    assert len(lines) == len(HARMS)
    query = ["sql", "SELECT size, error, traceback FROM failures", "--store", store, "--format", "json"]
    failures = {row["size"]: row for row in json.loads(here(*query, cwd=cwd, check=0).stdout)}
    assert set(failures) == {harm.replace(" ", "-") for harm in HARMS}
    for line, (harm, (_, reason)) in zip(lines, HARMS.items(), strict=True):
        kept = failures[harm.replace(" ", "-")]
        assert reason in line
        assert reason in kept["error"]
        assert "\n" not in kept["error"]
        unexpected = harm == "odd rotary width"
        assert ("modeling_stablelm.py" in (kept["traceback"] or "")) == unexpected, "where a model's code failed"
