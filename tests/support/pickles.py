"""Weights as pickles: those that `torch.save` makes of a checkpoint, and a trap that writes a file when opened."""

import json
import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file


class Trap:
    """Its pickle writes a file when it is opened."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.marker,))


def plant_pickle(path: Path, marker: Path) -> None:
    """A trap at this place, which writes that file."""
    with path.open("wb") as file:
        pickle.dump(Trap(marker), file)


def pickle_weights(folder: Path, n_files: int = 1) -> Path:
    """Replace the safetensors of a folder by pickles, as `torch.save` and an index make them."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    if n_files == 1:
        torch.save(weights, folder / "pytorch_model.bin")
        return folder
    names = {key: f"pytorch_model-{n % n_files + 1:05}-of-{n_files:05}.bin" for n, key in enumerate(weights)}
    for name in set(names.values()):
        torch.save({key: weights[key] for key, place in names.items() if place == name}, folder / name)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    return folder
