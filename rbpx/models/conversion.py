"""Pickled weights in, the same tensors as safetensors out, in a folder that transformers can split over devices."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file


def convert(folder: Path, pickles: Sequence[Path], place: Path) -> Path:
    """Write a model folder's tensors anew, a file at a time.

    transformers 5.23 loses weights that are tied when it puts those of a pickle on disk; those of safetensors it keeps.

    Args:
        folder: of the model; its settings are copied.
        pickles: its files of weights; tensors are read from them and no code is run.
        place: where the new folder goes.

    Returns:
        The new folder, with safetensors and an index of them.

    Raises:
        UnpicklingError: a pickle holds more than tensors.
    """
    made = place / "converted"
    made.mkdir()
    for path in folder.glob("*config.json"):
        shutil.copyfile(path, made / path.name)
    weight_map: dict[str, str] = {}
    for number, pickle in enumerate(pickles, 1):
        name = f"model-{number:05}-of-{len(pickles):05}.safetensors"
        tensors = torch.load(pickle, map_location="cpu", weights_only=True)
        # Tied tensors share their memory, which safetensors refuses.
        save_file(
            {key: tensor.clone(memory_format=torch.contiguous_format) for key, tensor in tensors.items()}, made / name
        )
        weight_map |= dict.fromkeys(tensors, name)
    index = {"metadata": {}, "weight_map": weight_map}
    (made / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return made
