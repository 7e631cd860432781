"""Keeps text as text: quotes overrides that Hydra would read as numbers, and refuses files in which YAML did so.

Paths in a file start at the folder of that file.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_args, get_type_hints

from rbpx.config.folders import GROUPS
from rbpx.config.keys.key import keys_of, read_as
from rbpx.config.request import EVERY
from rbpx.errors import RbpxError

_QUOTED: Final = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""
_VALUE: Final = re.compile(rf"{_QUOTED}|[^,\[\]'\"]+")
# what Hydra's grammar reads as a number or as true or false
_NO_TEXT: Final = re.compile(r"[-+]?(\d[\d_]*(\.[\d_]*)?|\.\d[\d_]*)(e[-+]?\d[\d_]*)?|[-+]?inf|nan|true|false", re.I)
_BRACKETED: Final = re.compile(r"[^\['\"][^'\"]*(?<=[^,])\[[^'\"]*")  # dir/[ab].txt; but not 3k,[7k,25k], a sweep
_FUNCTION: Final = re.compile(r"(?!choice\b)\w+\(|\{")
# a folder, or ORG/NAME of the hub
_MODELS: Final = re.compile(r"model\.(id(\.\d+)?|sizes\..+\.id)")
_FILES: Final = re.compile(r"dataset\.(fewshot_)?path|imports\.\d+\.file")


def quoted(value: str) -> str:
    """Quotes a value so that Hydra takes it literally."""
    return '"' + re.sub(r'(\\*)("|$)', lambda m: m[1] * 2 + ('\\"' if m[2] else ""), value) + '"'


def texts_quoted(schema: type, overrides: Sequence[str]) -> list[str]:
    """Quotes values of text keys that Hydra would read as numbers or, as a glob with brackets, as lists."""
    texts, words = text_keys(schema), []
    for override in overrides:
        key, is_given, value = override.partition("=")
        is_text = is_given and _of_any(key.lstrip("+")) in (*texts, *GROUPS) and not _FUNCTION.match(value)
        if is_text and _BRACKETED.fullmatch(value):
            value = ",".join(map(quoted, value.split(",")))
        as_text = quoted(value) if value == "," else _VALUE.sub(_quote, value)  # a comma alone divides no list
        words.append(f"{key}={as_text}" if is_text else override)
    return words


def _quote(found: re.Match[str]) -> str:
    bare = found[0].strip().removeprefix("choice(").removesuffix(")")
    return found[0].replace(bare, quoted(bare)) if _NO_TEXT.fullmatch(bare) else found[0]


@cache
def text_keys(schema: type, within: str = "") -> frozenset[str]:
    """The keys of a schema that hold text, dotted, with * for the label of a size."""
    hints, keys, found = get_type_hints(schema), keys_of(schema), set[str]()
    for each in fields(schema):
        name, kinds = f"{within}{each.name}", [of for of in get_args(hints[each.name]) if of is not NoneType]
        kind = kinds[-1] if kinds else hints[each.name]  # the type within an option, a list, or the values of a mapping
        if (each.name in keys and keys[each.name].is_text) or kind is str:
            found.add(name)
        elif is_dataclass(kind):
            found |= text_keys(kind, f"{name}.*." if len(kinds) > 1 else f"{name}.")  # type: ignore[arg-type]
    return frozenset(found)


def _of_any(key: str) -> str:
    return re.sub(r"\.\d+$", "", re.sub(r"(?<=\.sizes)\.[^.]+", ".*", key))


# --------------------------------------------------------------------------------------------------- files of the user


def said_in(path: Path, place: str) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    """The relative paths in a file: the keys that lead to each, its value, and the absolute path.

    `place` is the group under which Hydra puts the values, empty for a study.

    Raises:
        RbpxError: a text was read as a number.
    """
    from omegaconf import OmegaConf

    written = path.read_text(encoding="utf-8")
    values = OmegaConf.to_container(OmegaConf.create(written), resolve=False) if written.strip() else {}
    texts, words = text_keys(EVERY), set(re.split(r"[\s\[\]{}(),:=\"']+", written))
    for keys, value in _leaves({place: values} if place else values):
        key = ".".join(str(each).replace(".", "_") for each in keys)
        if isinstance(value, bool | int | float) and str(value) not in words and _of_any(key) in texts:
            raise RbpxError(f"{path}: {key}: {value} was read as {read_as(value)}; put it in quotes to keep it")
        is_model = _MODELS.fullmatch(key) is not None
        if isinstance(value, str) and (is_model or _FILES.fullmatch(key)):
            absolute = _absolute(value, path, is_model)
            if absolute is not None:
                yield keys, value, absolute


def _leaves(values: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    inner = values.items() if isinstance(values, Mapping) else enumerate(values) if isinstance(values, list) else ()
    for name, each in inner:
        yield from _leaves(each, (*keys, name))
    if not inner:
        yield keys, values


def _absolute(value: str, path: Path, is_model: bool) -> str | None:
    here = path.absolute().parent
    if not value or re.match(r"rbpx:|\w+://|.*\$\{", value) or Path(value).is_absolute():
        return None
    if is_model and value.count("/") == 1 and not value.startswith(".") and not (here / value).exists():
        return None
    return os.path.abspath(here / os.path.expanduser(value))
