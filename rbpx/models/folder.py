"""Finds a model's folder or GGUF file, the files that hold its weights, and the hash that identifies them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rbpx.config.model.family import is_gguf
from rbpx.errors import AbsentModelError, RbpxError
from rbpx.files.digest import digest, hash_files
from rbpx.models.gguf import read_header

BUNDLED = "rbpx:"
PICKLE = "pytorch_model.bin"  # a single file; `PICKLE_INDEX` names several
PICKLE_INDEX = f"{PICKLE}.index.json"
_SAFE_INDEX = "model.safetensors.index.json"
PACKAGE = Path(__file__).resolve().parents[1]
# Keys of config.json that do not change what the model computes.
_IGNORED_KEYS = {"transformers_version", "_name_or_path", "dtype", "torch_dtype", "architectures"}


def local_folder(model: str, pickled: bool = False) -> Path | None:
    """The folder on this machine that a model id names, or the GGUF file; None for a hub id.

    Raises:
        AbsentModelError: the id looks like a path, but there is no model at it.
    """
    if model.startswith(BUNDLED):
        return _checked(PACKAGE / model.removeprefix(BUNDLED), model, pickled)
    path = Path(model).expanduser()
    if path.is_file() and is_gguf(path):
        read_header(path, model)
        return path.resolve()
    if path.exists():
        return _checked(path, model, pickled)
    if is_gguf(model):
        raise AbsentModelError(
            f"model.id={model} is missing: there is no file {path}; one of the hub is fetched with "
            "`hf download ORG/NAME FILE.gguf --local-dir FOLDER`"
        )
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") != 1:
        hint = "" if "/" in model else f", or conf/model/ for a family named '{model}'"
        raise AbsentModelError(f"model.id={model} is neither a folder nor a hub id ORG/NAME; check the path{hint}")
    return None


def _checked(path: Path, model: str, pickled: bool) -> Path:
    if not path.is_dir():
        what = "is a file, not a model folder" if path.exists() else f"is missing: there is no folder {path}"
        raise AbsentModelError(f"model.id={model} {what}; give the folder that holds config.json, or a .gguf file")
    if not (path / "config.json").is_file():
        raise RbpxError(f"model.id={model} is not a model: {path} has no config.json; give a Hugging Face model folder")
    weight_files(path, model, pickled)
    return path.resolve()


def weight_files(folder: Path, model: str, pickled: bool = False) -> list[Path]:
    """The files that hold a model's weights, in the order of their names: safetensors if there are any.

    Args:
        folder: of the model, or its GGUF file, which holds all of it.
        model: as requested, for errors.
        pickled: whether pytorch_model.bin is allowed if there are no safetensors.

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
    if not pickled:
        raise RbpxError(f"model.id={model} needs weights in safetensors, but {folder} has {only_pickles(pickles)}")
    if PICKLE in pickles:
        return [folder / PICKLE]
    if (folder / PICKLE_INDEX).is_file():
        return _indexed_files(folder, PICKLE_INDEX, pickles, model)
    files = f"only {pickles[0]}" if pickles else "neither"
    raise RbpxError(f"model.id={model} needs safetensors or {PICKLE}, {folder} has {files}; give a Hugging Face folder")


def only_pickles(names: Sequence[str]) -> str:
    """Which pickles there are instead of safetensors, and what to do about it."""
    if not names:
        return "none; give a folder or a revision that has them"
    return (
        f"only {names[0]}, a pickle; model.pickled=true reads the tensors in it and runs no code, and on the hub "
        "model.revision=refs/pr/N may name a conversion to safetensors"
    )


def _indexed_files(folder: Path, index: str, present: Sequence[str], model: str) -> list[Path]:
    """The files that an index names, in the order of their names; none without an index."""
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
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise RbpxError(f"model.id={model} has a {path.name} that cannot be read: {problem}") from None
    if not isinstance(value, dict):
        raise RbpxError(
            f"model.id={model} has a {path.name} that is not a JSON object; copy it from the model's source"
        )
    return value


def hash_model(folder: Path, name: str, cache: Path | None = None, pickled: bool = False) -> str:
    """The identity of a model: a hash of its configuration and of the bytes of its weight files; a GGUF file has both.

    Raises:
        RbpxError: one of them cannot be read.
    """
    config = {} if is_gguf(folder) else _read_json(folder / "config.json", name)
    settings = {key: value for key, value in config.items() if key not in _IGNORED_KEYS}
    files = weight_files(folder, name, pickled)
    try:
        return digest([settings, hash_files(files, cache)])
    except OSError as problem:
        raise RbpxError(f"model.id={name} cannot be read: {problem.filename}: {problem.strerror}") from None
