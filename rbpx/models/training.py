"""What lies beside the weights of a model about its training: `training.json`, as `rbpx train` writes it."""

import json
from pathlib import Path
from typing import Final

from rbpx.config.training import Training, checked_training
from rbpx.errors import RbpxError

__all__ = ["read_training"]

_NAMES: Final = {"training_tokens": "tokens", "training_step": "steps"}  # as `rbpx train` calls them


def read_training(folder: Path) -> Training:
    """The facts in `training.json` of a model's folder; none where there is no such file.

    Raises:
        RbpxError: it cannot be read, or a value is not what its name says.
    """
    path = folder / "training.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Training()
    except (OSError, ValueError) as problem:
        raise RbpxError(f"{path} cannot be read: {problem}; correct it, or remove it") from None
    if not isinstance(values, dict):
        raise RbpxError(f"{path} is not a JSON object; correct it, or remove it")
    also = {fact: values[name] for fact, name in _NAMES.items() if name in values and fact not in values}
    return checked_training(values | also, str(path), _NAMES if also else None)
