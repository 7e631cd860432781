"""Trainings that take moments: a text of one installed package, a recipe of one tiny model, what they leave behind."""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from rbpx.config.recipe import LadderSize, Recipe, TextConfig

KEYS = (
    "~experiment", "+text.packages.corpus='1.0'", "+shapes.tiny={hidden: 8, layers: 1, heads: 1}",
    "vocab_size=300", "context=32", "windows_per_step=4", "warmup_steps=4",
    "device=cpu", "threads=1",
)  # fmt: skip


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


def recipe_for(site: Path, version: str = "") -> Recipe:
    """A recipe of one model, 8 wide."""
    shapes = {"tiny": LadderSize(8, 1, 1)}
    small = {"vocab_size": 300, "tokens": 2048, "context": 32, "windows_per_step": 4, "warmup_steps": 4}
    return Recipe("test", TextConfig(str(site), {"corpus": version}), shapes, **small)


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
