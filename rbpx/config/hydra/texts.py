"""A key of text holds what was typed: OmegaConf would write a number or a constant anew, 3e-4 as 0.0003; refused."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from rbpx.config.keys.key import read_as
from rbpx.errors import RbpxError

__all__ = ["check_file", "check_override"]


def check_override(schema: type, word: str, key: str, values: list[Any]) -> None:
    """Refuse text that would not be stored as typed.

    Args:
        schema: of the verb's keys.
        word: KEY=VALUE, as typed.
        key: its name, with dots.
        values: what Hydra's grammar reads of it, several in a sweep.

    Raises:
        RbpxError: a value was read as something else, whose text is another.
    """
    typed = word.partition("=")[2]
    for value in values:
        node = value
        for name in reversed(key.split(".")):
            node = {name: node}
        for _, read in _changed(schema, node, typed):
            if len(values) > 1 or read is not value:
                raise RbpxError(f"{word}: {read} was read as {read_as(read)}; quote texts to keep them as typed")
            raise RbpxError(f"{word} was read as {read_as(read)}; quote it to keep it as typed: '{key}=\"{typed}\"'")


def check_file(schema: type, path: Path, place: str, values: Any, text: str) -> None:
    """Refuse text of a file that would not be stored as it is written there.

    Args:
        schema: of the verb's keys.
        path: the file.
        place: where its values go, such as `dataset`; empty for the top.
        values: what YAML reads of it.
        text: of the file.

    Raises:
        RbpxError: a value was read as something else, whose text is another.
    """
    for name in reversed(place.split(".") if place else []):
        values = {name: values}
    for found, read in _changed(schema, values, text):
        raise RbpxError(f"{path}: {found}: {read} was read as {read_as(read)}; put it in quotes to keep it as written")


def _changed(schema: type, values: Any, written: str) -> Iterator[tuple[str, Any]]:
    """The keys of text whose value is none, and stands nowhere in what was written."""
    words = set(re.split(r"[\s\[\]{}(),:=\"']+", written))
    return ((key, value) for key, value in _no_texts(schema, values, "") if str(value) not in words)


def _no_texts(kind: Any, value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if get_origin(kind) in (Union, UnionType):
        kind = next(each for each in get_args(kind) if each is not NoneType)
    if kind is str and isinstance(value, int | float):
        yield key, value
    elif isinstance(value, Mapping):
        of_all = get_args(kind)[-1] if get_args(kind) else Any
        kinds = get_type_hints(kind) if is_dataclass(kind) else dict.fromkeys(value, of_all)
        for name, each in value.items():
            if name in kinds:
                yield from _no_texts(kinds[name], each, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and get_origin(kind) is list:
        for each in value:
            yield from _no_texts(get_args(kind)[0], each, key)
