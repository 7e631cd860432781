"""Where a model lies: a hub id, a folder or a bundled name in, a local folder of safetensors and its hash out."""

import json
from pathlib import Path
from typing import Any

from rbpx.content import digest, hash_files
from rbpx.errors import MeasureError, RbpxError

BUNDLED = "rbpx:"
_PACKAGE = Path(__file__).resolve().parent
# Keys of config.json that say who wrote it, not what it computes.
_NOT_COMPUTED = {"transformers_version", "_name_or_path", "dtype", "torch_dtype", "architectures"}
_HUB_TIMEOUT_S = 5
_TOP_LEVEL = ["*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]


def local_folder(model: str) -> Path | None:
    """The folder that a model id names on this machine; None for a hub id.

    Raises:
        RbpxError: the id looks like a path, and there is no model in it.
    """
    if model.startswith(BUNDLED):
        return _checked(_PACKAGE / model.removeprefix(BUNDLED), model)
    path = Path(model).expanduser()
    if path.exists():
        return _checked(path, model)
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") != 1:
        hint = "" if "/" in model else f", or conf/model/ for a family named '{model}'"
        raise RbpxError(f"model.id={model} is neither a folder nor a hub id ORG/NAME; check the path{hint}")
    return None


def _checked(path: Path, model: str) -> Path:
    if not path.is_dir():
        what = "is a file, not a model folder" if path.exists() else f"is missing: there is no folder {path}"
        raise RbpxError(f"model.id={model} {what}; give the folder that holds config.json")
    if not (path / "config.json").is_file():
        raise RbpxError(f"model.id={model} is no model: {path} has no config.json; give a Hugging Face model folder")
    weight_files(path, model)
    return path.resolve()


def weight_files(folder: Path, model: str) -> list[Path]:
    """The safetensors files of a model folder, in name order.

    Raises:
        RbpxError: there are none; pickled weights are not opened, since they can run code.
    """
    found = sorted(folder.glob("*.safetensors"))
    if not found:
        others = sorted(p.name for p in folder.glob("*.bin"))
        have = f"only {others[0]}, a pickle, which is never opened" if others else "none"
        raise RbpxError(f"model.id={model} needs weights in safetensors, {folder} has {have}; convert them first")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        named = set(_read_json(index, model).get("weight_map", {}).values())
        strange = sorted(str(name) for name in named if folder / str(name) not in found)
        if strange:
            raise RbpxError(f"model.id={model}: {index.name} names {strange[0]}, no safetensors file of {folder}")
    return found


def _read_json(path: Path, model: str) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise RbpxError(f"model.id={model} has a {path.name} that cannot be read: {problem}") from None
    if not isinstance(value, dict):
        raise RbpxError(f"model.id={model} has a {path.name} that holds no settings; it should be one JSON object")
    return value


def hash_model(folder: Path, name: str, cache: Path | None = None) -> str:
    """Identity of a model folder's weights: configuration and bytes of the safetensors."""
    config = _read_json(folder / "config.json", name)
    computed = {key: value for key, value in config.items() if key not in _NOT_COMPUTED}
    return digest([computed, hash_files(weight_files(folder, name), cache)])


def fetch(model: str, revision: str | None) -> tuple[Path, str | None]:
    """The local folder of a model and, for a hub id, the commit that `revision` names.

    Raises:
        RbpxError: no such repository or revision, or it holds no safetensors.
        MeasureError: the hub does not answer and its cache here does not hold the model.
    """
    folder = local_folder(model)
    if folder is not None:
        return folder, None
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    def download(local_only: bool) -> Path:
        return Path(
            snapshot_download(
                model,
                revision=revision,
                allow_patterns=_TOP_LEVEL,
                ignore_patterns=["*/*"],
                etag_timeout=_HUB_TIMEOUT_S,
                local_files_only=local_only,
            )
        )

    try:
        try:
            # Asked first because it takes a timeout: a hub that accepts and never answers would hang the download.
            HfApi().model_info(model, revision=revision or "main", timeout=_HUB_TIMEOUT_S)
            snapshot = download(local_only=False)
        except OfflineModeIsEnabled:
            snapshot = download(local_only=True)
    except GatedRepoError:
        raise RbpxError(f"model.id={model} is gated; accept its terms on the hub and run `hf auth login`") from None
    except RevisionNotFoundError:
        raise RbpxError(f"model.revision={revision} does not exist in {model}; check the branch or commit") from None
    except (RepositoryNotFoundError, HFValidationError):
        raise RbpxError(f"model.id={model} is unknown to the hub; check its spelling, or log in if private") from None
    except Exception as problem:  # whatever a network does; a copy in the hub's cache serves as well
        try:
            snapshot = download(local_only=True)
        except Exception:
            at = f" at revision {revision}" if revision else ""
            reason = str(problem).split("\n")[0][:160]
            raise MeasureError(
                f"the hub did not deliver {model}{at} ({type(problem).__name__}: {reason}); "
                "check the network, or give a local folder as model.id"
            ) from None
    weight_files(snapshot, model)
    return snapshot, snapshot.name
