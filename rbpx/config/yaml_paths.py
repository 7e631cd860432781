"""Paths in a YAML file start at the folder of that file: its values in, the same with absolute paths out."""

import os
import re
from pathlib import Path
from typing import Any, Final

from rbpx.config.overrides import quoted
from rbpx.errors import RbpxError

__all__ = ["file_at", "given_by", "with_absolute_paths"]

_FILES: Final = re.compile(r"dataset\.(fewshot_)?path|imports\.\d+\.file|study\.file|text\.site|output|store")
_MODELS: Final = re.compile(r"model\.(id(\.\d+)?|sizes\..+\.id)")  # a folder, or ORG/NAME of the hub
_SWEPT: Final = "hydra.sweeper.params."
_ELSEWHERE: Final = re.compile(r"rbpx:|\w+://|.*\$\{")

_given: Final[dict[str, Path]] = {}  # absolute path -> the file that gave it; for errors alone


def with_absolute_paths(values: Any, path: Path, key: str = "") -> Any:
    """The values of a file, its relative paths made absolute.

    Args:
        values: of the file, or a part of them.
        path: the file.
        key: where Hydra puts the values, such as `dataset`; empty for the top.
    """
    if isinstance(values, dict):
        return {
            name: with_absolute_paths(each, path, f"{key}.{name}" if key else str(name))
            for name, each in values.items()
        }
    if isinstance(values, list):
        return [with_absolute_paths(each, path, f"{key}.{at}") for at, each in enumerate(values)]
    if not isinstance(values, str):
        return values
    if key.startswith(_SWEPT):  # as typed: a list without brackets
        each = [_absolute(name, path, key.removeprefix(_SWEPT)) for name in values.split(",")]
        return values if re.search(r"[\[({'\"]", values) or None in each else ",".join(quoted(str(one)) for one in each)
    return _absolute(values, path, key) or values


def _absolute(value: str, path: Path, key: str) -> str | None:
    """The absolute path that a value stands for; None where it is no relative path."""
    here = path.absolute().parent
    is_model = _MODELS.fullmatch(key) is not None
    if not value or not (is_model or _FILES.fullmatch(key)) or _ELSEWHERE.match(value) or Path(value).is_absolute():
        return None
    if is_model and value.count("/") == 1 and not value.startswith(".") and not (here / value).exists():
        return None
    absolute = os.path.abspath(here / os.path.expanduser(value))
    _given[absolute] = path
    return absolute


def file_at(name: str) -> Path:
    """The file that a study names.

    Raises:
        RbpxError: there is none.
    """
    path = Path(name).expanduser().absolute()
    if not path.is_file():
        raise RbpxError(f"{path} is not a file; {given_by(path) or 'give the path of one'}")
    return path


def given_by(path: str | Path) -> str | None:
    """Which file gave a path that is not there, as the end of an error; None where the path was typed."""
    file = _given.get(os.path.abspath(path))
    return None if file is None else f"{file} names it, and paths there start at the folder of that file"
