"""Convert pickled weights to safetensors, in a new folder, so that transformers can split the model over devices."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file


def convert(folder: Path, pickles: Sequence[Path], parent: Path) -> Path:
    """Write the tensors of a model folder as safetensors, one file at a time.

    transformers 5.23 loses tied weights when it offloads those of a pickle to disk, but not those of safetensors.

    Args:
        folder: of the model; its configuration files are copied.
        pickles: its weight files; only tensors are read, no code is run.
        parent: where the new folder is made.

    Returns:
        The new folder, with safetensors and an index of them.

    Raises:
        UnpicklingError: a pickle contains more than tensors.
    """
    converted = parent / "converted"
    converted.mkdir()
    for path in folder.glob("*config.json"):
        shutil.copyfile(path, converted / path.name)
    weight_map: dict[str, str] = {}
    for number, pickle in enumerate(pickles, 1):
        name = f"model-{number:05}-of-{len(pickles):05}.safetensors"
        tensors = torch.load(pickle, map_location="cpu", weights_only=True)
        # Tied tensors share memory, which safetensors does not accept.
        save_file(
            {key: tensor.clone(memory_format=torch.contiguous_format) for key, tensor in tensors.items()},
            converted / name,
        )
        weight_map |= dict.fromkeys(tensors, name)
    index = {"metadata": {}, "weight_map": weight_map}
    (converted / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return converted
