"""Overrides as they were typed: quoted for Hydra's grammar, the store and the folders that they name.

By what was typed, with the files that give it its meaning, a kept answer is found before anything is composed. Two
lines that are written differently are two questions, though they may mean the same: each is answered once.
"""

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rbpx.config.places import folder
from rbpx.errors import RbpxError


def quoted(value: str) -> str:
    """A value quoted so that Hydra takes it literally, whatever characters it contains."""
    return '"' + re.sub(r'(\\*)("|$)', lambda m: m[1] * 2 + ('\\"' if m[2] else ""), value) + '"'


def with_condition(override: str) -> str:
    """An override `where=SQL` with its value quoted, unless all of it is; Hydra's grammar has no < and no =."""
    key, _, value = override.partition("=")
    is_bare = key == "where" and re.fullmatch(r'"[^"]*"|null', value) is None
    return f"where={quoted(value)}" if is_bare else override


def store_of(overrides: Sequence[str]) -> str:
    """The store that overrides name, before Hydra has read them; else the environment's, else `store`."""
    stores = [override.partition("=")[2].strip("\"'") for override in overrides if override.startswith("store=")]
    return stores[-1] if stores else os.environ.get("RBPX_STORE", "store")


def searched(places: Sequence[Path]) -> str:
    """The override that lets Hydra look for files in folders too."""
    return f"hydra.searchpath=[{','.join(quoted(f'file://{place.resolve()}') for place in places)}]"


def config_folders(overrides: Sequence[str]) -> list[Path]:
    """The folders of a user's own configuration: of --config-dir, and of hydra.searchpath."""
    named = re.findall(r"file://([^\"',\]]+)", "\n".join(overrides))
    return [*config_dirs(overrides), *map(Path, named)]


def config_dirs(overrides: Sequence[str]) -> list[Path]:
    """The folder that --config-dir names, the last where it is given twice; none where it is not given.

    Raises:
        RbpxError: it is not there.
    """
    named = re.findall(r"(?:^|\n)(?:--config-dir|-cd)[=\n](.+)", "\n".join(overrides))[-1:]
    for name in named:
        if not Path(name).is_dir():
            raise RbpxError(f"--config-dir {name} is not a folder; name the one with your model/ and dataset/")
    return [Path(name) for name in named]


def without_flags(words: Sequence[str]) -> list[str]:
    """Overrides alone; the folder behind --config-dir is none."""
    named = [at + 1 for at, word in enumerate(words) if word in ("--config-dir", "-cd")]
    return [word for at, word in enumerate(words) if not word.startswith("-") and at not in named]


def retyped(verb: str, words: Sequence[str], trusts_config: bool, without: Callable[[str], bool]) -> str:
    """The command that asks a verb with the words that were typed for another one.

    Args:
        verb: the verb.
        words: key=value, and Hydra's flags.
        trusts_config: whether files of configuration may name code.
        without: whether a key is left out.
    """
    dropped = [word for word in without_flags(words) if without(word.partition("=")[0].lstrip("+"))]
    trust = ["--trust-config"] if trusts_config else []
    return shlex.join(["python", "-m", "rbpx", verb, *trust, *(word for word in words if word not in dropped)])


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
