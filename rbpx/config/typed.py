"""What was typed, with all that it is read with: by this an answer that is kept is found before anything is composed.

Two lines that are written differently are two questions, though they may mean the same: each is answered once.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rbpx.config.overrides import config_folders
from rbpx.config.places import folder

__all__ = ["what_was_typed"]

_ENVIRONMENT: Final = "RBPX_"  # how the names begin that a configuration reads
_NOT_ASKED: Final = re.compile(r"\+*(fresh|output)=")  # whether it is computed in any case, and where it goes
_LARGEST_BYTES: Final = 2**20  # of a file of configuration; a larger one is refused when it is read


def what_was_typed(verb: str, words: Sequence[str], overrides: Sequence[str]) -> dict[str, Any]:
    """All that the meaning of a line depends on, as plain values.

    The order of keys is no part of it, except in a sweep, whose jobs come in that order.

    Args:
        verb: what is asked.
        words: its own words beside key=value.
        overrides: key=value, and Hydra's flags.
    """
    asked = [word for word in overrides if not _NOT_ASKED.match(word)]
    if not any(word.startswith("-") for word in asked):
        asked.sort(key=lambda word: word.partition("=")[0])  # of a key that is there twice the last holds
    return {
        "verb": verb,
        "words": list(words),
        "overrides": asked,
        "environment": {name: value for name, value in os.environ.items() if name.startswith(_ENVIRONMENT)},
        "folder": os.getcwd(),
        "files": _digest([folder("conf"), folder("experiments"), *config_folders(overrides)]),
    }


def _digest(places: Iterable[Path]) -> Mapping[str, str]:
    """A digest of the YAML files in each folder."""
    return {str(place): _digest_of(place) for place in places}


def _digest_of(place: Path) -> str:
    contents = hashlib.sha256()
    for path in sorted(place.rglob("*.yaml")):
        with path.open("rb") as file:
            contents.update(f"{path.relative_to(place)}\0".encode() + file.read(_LARGEST_BYTES) + b"\0")
    return contents.hexdigest()
