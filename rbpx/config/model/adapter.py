"""Reads the folder of an adapter without peft: its base model and the name of its runs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rbpx.errors import RbpxError

ADAPTER_CONFIG: Final = "adapter_config.json"
_WHOLE: Final = ("model*.safetensors", "pytorch_model*.bin")  # weights of a model that needs no base


def is_adapter(name: str) -> bool:
    """Whether a folder holds an adapter and no weights of a model that needs no base."""
    folder = Path(name).expanduser()
    return (folder / ADAPTER_CONFIG).is_file() and not any(any(folder.glob(each)) for each in _WHOLE)


def adapter_config(name: str) -> dict[str, Any]:
    """The configuration of the adapter in a folder; raises RbpxError where there is none."""
    path = Path(name).expanduser() / ADAPTER_CONFIG
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError:
        raise RbpxError(
            f"model.adapter={name} is no folder with {ADAPTER_CONFIG}, as peft saves one; check the path, and fetch an "
            "adapter of the hub with `hf download ORG/NAME --local-dir FOLDER`"
        ) from None
    except (TypeError, ValueError) as problem:
        raise RbpxError(f"{path} is not a JSON object ({problem}); copy it from the adapter's source") from None


def base_of(name: str) -> tuple[str, str | None]:
    """The id and revision of an adapter's base model; raises RbpxError if it names none, or a wrong path."""
    config = adapter_config(name)
    base = config.get("base_model_name_or_path")
    is_path = isinstance(base, str) and (base.startswith(("/", ".", "~")) or base.count("/") != 1)
    if not base or not isinstance(base, str) or (is_path and not Path(base).expanduser().exists()):
        of = f"is an adapter of {base}, which is not here" if base else "is an adapter that does not name its base"
        raise RbpxError(f"model.id={name} {of}; give the base: model.id=BASE model.adapter={name}")
    return base, config.get("revision")


def variants_of(adapters: Sequence[str | None]) -> dict[str | None, str | None]:
    """A variant for each adapter: the name of its folder, or its path where names repeat."""
    names = {each: None if each is None else Path(each).expanduser().resolve().name for each in adapters}
    return names if len(set(names.values())) == len(names) else {each: each for each in adapters}
