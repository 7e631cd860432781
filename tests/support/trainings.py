"""Trainings that take moments: a text of one installed package, a recipe of one tiny model, what they leave behind."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import yaml
from omegaconf import OmegaConf
from safetensors.torch import load_file

from experiments.ladder.train import main, read_recipe

GPT_NEOX = {"hidden": 8, "layers": 1, "heads": 1}
MAMBA_2 = {"architecture": "mamba2", "hidden": 8, "layers": 2, "heads": 2}


def a_site(folder: Path, files: dict[str, str]) -> Path:
    """A site folder with one installed distribution, `corpus 1.0`, that holds these files."""
    info = folder / "corpus-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: corpus\nVersion: 1.0\nLicense-Expression: MIT\n")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def written(n: int, word: str) -> str:
    """Some Python that is in no library, about 60 bytes a line."""
    return "".join(
        f"def {word}_{chr(97 + i % 26)}(self, other_{word}):\n    return self.{word} @ other_{word}\n" for i in range(n)
    )


def recipe_file(folder: Path, site: Path, shape: Mapping[str, Any] = GPT_NEOX, **keys: Any) -> Path:
    """A recipe in a file: that of the ladder, but for one size, `tiny`, steps of 128 tokens, the text `corpus`."""
    recipe: dict[str, Any] = OmegaConf.to_container(read_recipe("ladder"))  # type: ignore[assignment]
    recipe["text"] |= {"site": str(site), "packages": {"corpus": "1.0"}}
    recipe |= {"device": "cpu", "threads": 1, "vocab_size": 300, "context": 32, "windows_per_step": 4}
    recipe |= {"tokens": 1280, "budgets": None, "checkpoints": None, "seeds": None, "warmup_steps": 4}
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(recipe | {"learning_rate": 0.04, "shapes": {"tiny": dict(shape)}} | keys))
    return path


def trained(*words: object, check: int = 0) -> None:
    """Train in this process; `check` is the exit status that it must have."""
    assert main([str(word) for word in words]) == check


def weights_of(folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    """The weights of each model below a folder, by its place there."""
    return {str(f.parent.relative_to(folder)): load_file(f) for f in sorted(folder.rglob("model.safetensors"))}


def assert_same(one: Path, other: Path) -> None:
    """Two ladders have the same models, to the bit, and the same records but for the time."""
    weights = weights_of(one), weights_of(other)
    assert weights[0].keys() == weights[1].keys()
    for model, tensors in weights[0].items():
        assert all(torch.equal(tensor, weights[1][model][name]) for name, tensor in tensors.items())
        facts = [json.loads((folder / model / "training.json").read_text()) for folder in (one, other)]
        assert facts[0] | {"wall_s": 0} == facts[1] | {"wall_s": 0}
