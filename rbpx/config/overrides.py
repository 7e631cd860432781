"""Overrides as they were typed: quoted for Hydra's grammar, the store and the folders that they name."""

import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

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
