"""A request without Hydra: overrides that set plain values of known keys in, the request that Hydra would compose out.

Hydra, OmegaConf and the composition take a third of a second, as long as many a question. Most command lines need none
of it: their keys are those of the request, their values numbers, names and lists, their groups files of conf/. Whatever
is more than that, or is wrong, is left to Hydra (`NotPlain`), which says what is wrong. Nothing is converted: a value
is taken only where it is of the type that its key has, so a line means here what it means there or nothing. Files of a
user are never read here, so what these may say (`rbpx.config.trust`) is asked in one place alone.
"""

import dataclasses
import re
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Final

from rbpx.config.overrides import store_of
from rbpx.config.places import folder
from rbpx.config.request import Request
from rbpx.config.yaml_files import plain_values

__all__ = ["NotPlain", "plain_request"]

_GROUPS: Final = ("model", "dataset", "protocol", "parallel", "engine")
_KEY: Final = re.compile(r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)?", re.ASCII)
_OPTION: Final = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)
_WHOLE: Final = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
_REAL: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+|(\.\d+)?[eE][+-]?\d{1,2})", re.ASCII)
_WORD: Final = re.compile(
    r"(\.{1,2}/)?[A-Za-z_/][\w./-]*|(0|[1-9]\d*)(\.\d+)?[a-df-zA-DF-Z]\w*", re.ASCII
)  # names, 3k, 1.2m
_QUOTED: Final = re.compile(r'"([^"\\$\'\n]+)"')
_NO_WORDS: Final = ("null", "true", "false", "nan", "inf")  # in any case
_NAMED: Final = {"null": None, "true": True, "false": False}
_MISSING: Final = "???"  # OmegaConf's


class NotPlain(Exception):
    """Hydra has to read this."""


def plain_request(primary: str, overrides: Sequence[str]) -> Request:
    """The request that overrides make.

    Args:
        primary: the file of conf/ that it begins from.
        overrides: key=value, with the groups that they need, as `with_groups` returns them.

    Raises:
        NotPlain: they are for Hydra to read.
        RbpxError: a value is refused by its request, with the line that says why.
    """
    options, values = _beginning(primary)
    inner: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or key in seen or not _KEY.fullmatch(key):
            raise NotPlain
        seen.add(key)
        group, _, name = key.partition(".")
        if key in _GROUPS:
            if key not in options or not _OPTION.fullmatch(text):
                raise NotPlain
            options[key] = text
        elif name:
            inner.setdefault(group, {})[name] = _value(text)
        else:
            values[key] = _value(text)
    for group, option in options.items():
        values[group] = None if option is None else dict(_option(group, option))
    for group, changes in inner.items():
        of_group = values.get(group)
        if group not in _GROUPS or of_group is None or any(isinstance(of_group.get(key), dict) for key in changes):
            raise NotPlain
        of_group |= changes
    values.setdefault("store", store_of([]))
    request: Request = _typed(Request, values)
    return request


@cache
def _file(primary: str) -> Mapping[str, Any]:
    values = plain_values(folder("conf") / f"{primary}.yaml", without="hydra")  # which is for its main
    if values is None:
        raise NotPlain
    return values


def _beginning(primary: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the file of a verb chooses of each group, and the values that it sets."""
    values = dict(_file(primary))
    options: dict[str, Any] = {}
    for entry in values.pop("defaults"):
        if isinstance(entry, str):
            if entry not in ("request", "_self_"):
                raise NotPlain
            continue
        ((group, option),) = entry.items()
        if group.startswith("override hydra/") or (group == "experiment" and option is None):
            continue
        if group not in _GROUPS:
            raise NotPlain
        options[group] = option
    return options, values


@cache
def _option(group: str, name: str) -> Mapping[str, Any]:
    """The values of one file of conf/."""
    path = folder("conf") / group / f"{name}.yaml"
    values = plain_values(path) if path.is_file() else None
    if values is None:
        raise NotPlain
    return values


def _value(text: str) -> Any:
    """What Hydra's grammar makes of a value; lists hold values that are no lists."""
    if text.startswith("[") and text.endswith("]") and text[1:-1].strip():
        return [_scalar(item.strip(" ")) for item in text[1:-1].split(",")]
    return _scalar(text)


def _scalar(text: str) -> Any:
    if text in _NAMED:
        return _NAMED[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    quoted = _QUOTED.fullmatch(text)
    if quoted and quoted[1] != _MISSING:
        return quoted[1]
    if _WORD.fullmatch(text) and text.lower() not in _NO_WORDS:
        return text
    raise NotPlain


# ------------------------------------------------------------------------------------------------------------- types


def _typed(kind: type, values: Mapping[str, Any]) -> Any:
    """An instance of a dataclass, its fields in their order, so that what is wrong first is refused first."""
    kinds = _kinds(kind)
    if not values.keys() <= kinds.keys():
        raise NotPlain
    return kind(**{name: _of_kind(of, values[name]) for name, of in kinds.items() if name in values})


@cache
def _kinds(kind: type) -> Mapping[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _of_kind(kind: Any, value: Any) -> Any:
    """A value of an annotation; nothing is converted but a whole number where any number is meant."""
    if kind is Any:
        return value
    if isinstance(kind, types.UnionType):
        if value is None and types.NoneType in kind.__args__:
            return None
        (kind,) = (each for each in kind.__args__ if each is not types.NoneType)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is list and isinstance(value, list):
        return [_of_kind(inner[0], each) for each in value]
    if origin is dict and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _of_kind(inner[1], each) for key, each in value.items()}
    if dataclasses.is_dataclass(kind) and isinstance(value, dict):
        return _typed(typing.cast(type, kind), value)
    if isinstance(kind, type) and issubclass(kind, Enum) and isinstance(value, str) and value in kind.__members__:
        return kind[value]
    if kind is float and type(value) is int:
        return float(value)
    if kind in (bool, int, float, str) and type(value) is kind:
        return value
    raise NotPlain
