"""Finds a model's folder or GGUF file, its weight files, and the hash that identifies it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rbpx.config.model.adapter import adapter_config
from rbpx.config.model.family import is_gguf
from rbpx.errors import AbsentModelError, RbpxError
from rbpx.files.digest import digest, hash_files
from rbpx.models.gguf import read_header

BUNDLED = "rbpx:"
PICKLE = "pytorch_model.bin"  # a single file; `PICKLE_INDEX` names several
PICKLE_INDEX = f"{PICKLE}.index.json"
_SAFE_INDEX = "model.safetensors.index.json"
PACKAGE = Path(__file__).resolve().parents[1]
# Keys of config.json that do not affect the computation.
_IGNORED_KEYS = {"transformers_version", "_name_or_path", "dtype", "torch_dtype", "architectures"}
# The same of adapter_config.json: base model and training.
_OF_TRAINING = {"base_model_name_or_path", "revision", "inference_mode", "task_type", "auto_mapping", "peft_version"}


def local_folder(model: str, pickled: bool = False) -> Path | None:
    """The folder or GGUF file on this machine that a model id names; None for a hub id.

    Raises:
        AbsentModelError: the id looks like a path, but there is no model at it.
    """
    is_bundled = model.startswith(BUNDLED)
    path = PACKAGE / model.removeprefix(BUNDLED) if is_bundled else Path(model).expanduser()
    if path.is_file() and is_gguf(path):
        read_header(path, model)
        return path.resolve()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise RbpxError(f"model.id={model} is no model: {path} has no config.json; give a Hugging Face folder")
        weight_files(path, model, pickled)
        return path.resolve()
    if path.exists() or is_bundled or is_gguf(path) or model.startswith(("/", ".", "~")) or model.count("/") != 1:
        raise AbsentModelError(
            f"model.id={model} is neither a folder that holds config.json, nor a .gguf file, nor a hub id ORG/NAME; "
            "check the path, or fetch a .gguf file of the hub with `hf download`"
        )
    return None


def weight_files(folder: Path, model: str, pickled: bool = False) -> list[Path]:
    """The files of a model's weights, sorted by name: safetensors if there are any, else `pickled` ones.

    Raises:
        RbpxError: there are none, or only pickles that are not allowed, or an index names files that do not exist.
    """
    if is_gguf(folder):
        return [folder]
    safetensors = sorted(folder.glob("*.safetensors"))
    if safetensors:
        _indexed_files(folder, _SAFE_INDEX, [path.name for path in safetensors], model)
        return safetensors
    pickles = sorted(path.name for path in folder.glob("*.bin"))
    if pickled and PICKLE in pickles:
        return [folder / PICKLE]
    if pickled and (folder / PICKLE_INDEX).is_file():
        return _indexed_files(folder, PICKLE_INDEX, pickles, model)
    raise without_safetensors(model, str(folder), pickles)


def without_safetensors(model: str, place: str, pickles: Sequence[str]) -> RbpxError:
    """The error for weights without safetensors: the pickles that exist, and what to do."""
    has = "none; give a folder or a revision that has them"
    if pickles:
        has = (
            f"only {pickles[0]}, a pickle; model.pickled=true reads the tensors of {PICKLE} and runs no code, and on "
            "the hub model.revision=refs/pr/N may name a conversion to safetensors"
        )
    return RbpxError(f"model.id={model} needs weights in safetensors, but {place} has {has}")


def _indexed_files(folder: Path, index: str, present: Sequence[str], model: str) -> list[Path]:
    if not (folder / index).is_file():
        return []
    named = sorted({str(name) for name in _read_json(folder / index, model).get("weight_map", {}).values()})
    missing = [name for name in named if name not in present]
    if missing:
        raise RbpxError(
            f"model.id={model} is incomplete: {index} names {missing[0]}, which is not in {folder}; "
            "copy it there, or run again when the hub answers if the model is from the hub"
        )
    return [folder / name for name in named]


def _read_json(path: Path, model: str) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (RecursionError, TypeError, ValueError) as problem:
        why = "it is nested too deeply" if isinstance(problem, RecursionError) else problem
        raise RbpxError(
            f"model.id={model} has a {path.name} that is not a JSON object ({why}); copy it from the model's source"
        ) from None


def hash_model(folder: Path, name: str, cache: Path | None = None, pickled: bool = False) -> str:
    """The identity of a model: a hash of its configuration and of the bytes of its weight files."""
    config = {} if is_gguf(folder) else _read_json(folder / "config.json", name)
    settings = {key: value for key, value in config.items() if key not in _IGNORED_KEYS}
    return digest([settings, hash_files(weight_files(folder, name, pickled), cache)])


def adapter_files(name: str, pickled: bool = False) -> list[Path]:
    """The weight file of an adapter; safetensors if there is one; raises as `weight_files`."""
    folder = Path(name).expanduser()
    for file in ("adapter_model.safetensors", *(["adapter_model.bin"] if pickled else [])):
        if (folder / file).is_file():
            return [folder / file]
    has = "no adapter_model.safetensors"
    if (folder / "adapter_model.bin").is_file():
        has = "only adapter_model.bin, a pickle; model.pickled=true reads its tensors and runs no code"
    raise RbpxError(f"model.adapter={name} needs its weights, but the folder has {has}")


def hash_adapter(name: str, cache: Path | None = None, pickled: bool = False) -> str:
    """The identity of an adapter: a hash of its weights and of the configuration that affects the computation."""
    settings = {key: value for key, value in adapter_config(name).items() if key not in _OF_TRAINING}
    return digest([settings, hash_files(adapter_files(name, pickled), cache)])
