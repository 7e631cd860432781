"""Text stays text: overrides quoted for Hydra, whose grammar reads 3e-4 as 0.0003; files refused that YAML reads so.

Paths in a file start at the folder of that file.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_args, get_type_hints

from rbpx.config.keys.key import keys_of, read_as
from rbpx.errors import RbpxError

_QUOTED: Final = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""
_VALUE: Final = re.compile(rf"{_QUOTED}|[^,\[\]'\"]+")
# What Hydra's grammar reads as a number or as true or false.
_NO_TEXT: Final = re.compile(r"[-+]?(\d[\d_]*(\.[\d_]*)?|\.\d[\d_]*)(e[-+]?\d[\d_]*)?|[-+]?inf|nan|true|false", re.I)
_FUNCTION: Final = re.compile(r"(?!choice\b)\w+\(|\{")
# A folder, or ORG/NAME of the hub.
_MODELS: Final = re.compile(r"model\.(id(\.\d+)?|sizes\..+\.id)")
_FILES: Final = re.compile(r"dataset\.(fewshot_)?path|imports\.\d+\.file|study\.file")


def quoted(value: str) -> str:
    """A value quoted so that Hydra takes it literally, whatever characters it contains."""
    return '"' + re.sub(r'(\\*)("|$)', lambda m: m[1] * 2 + ('\\"' if m[2] else ""), value) + '"'


def texts_quoted(schema: type, overrides: Sequence[str]) -> list[str]:
    """Overrides whose values of text are quoted where Hydra would read a number; each element of a list or a sweep."""
    texts, words = {name for name, of in _leaves(schema, "") if of is str}, []
    for override in overrides:
        key, is_given, value = override.partition("=")
        name = re.sub(r"\.sizes\.[^.]+\.", ".sizes.*.", key.lstrip("+"))
        is_text = is_given and name in texts and not _FUNCTION.match(value)
        words.append(f"{key}={_VALUE.sub(_quote, value)}" if is_text else override)
    return words


def _quote(found: re.Match[str]) -> str:
    bare = found[0].strip()
    inner = bare.removeprefix("choice(").removesuffix(")")
    return found[0].replace(inner, quoted(inner)) if _NO_TEXT.fullmatch(inner) else found[0]


def _leaves(schema: type, within: str) -> Iterator[tuple[str, Any]]:
    """The keys of a schema with dots, and their types; names that may be one or several are text too."""
    hints, keys = get_type_hints(schema), keys_of(schema)
    for each in fields(schema):
        name, kind = f"{within}{each.name}", hints[each.name]
        kind = (
            next((one for one in get_args(kind) if one is not NoneType), kind) if NoneType in get_args(kind) else kind
        )
        if (each.name in keys and keys[each.name].is_text) or each.metadata.get("is_text") or kind == list[str]:
            yield name, str
        elif is_dataclass(kind):
            yield from _leaves(kind, f"{name}.")  # type: ignore[arg-type]
        elif get_args(kind) and is_dataclass(get_args(kind)[-1]):
            yield from _leaves(get_args(kind)[-1], f"{name}.*.")
        else:
            yield name, kind


# --------------------------------------------------------------------------------------------------- files of the user


def said_in(path: Path, place: str, schema: type) -> Iterator[tuple[str, str, str]]:
    """The relative paths in a file: key, what it says, and the absolute path that it means.

    Args:
        path: the file.
        place: the group where Hydra puts its values; empty for a study.
        schema: of the verb's keys.

    Raises:
        RbpxError: a text in it was read as a number.
    """
    from omegaconf import OmegaConf

    values = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    texts = {name for name, of in _leaves(schema, "") if of is str}
    for key, value in _flat({place: values} if place else values):
        if re.sub(r"\.sizes\.[^.]+\.|\.\d+$", lambda m: ".sizes.*." if "sizes" in m[0] else "", key) in texts:
            if isinstance(value, bool | float) or (isinstance(value, int) and str(value) not in path.read_text()):
                raise RbpxError(f"{path}: {key}: {value} was read as {read_as(value)}; put it in quotes to keep it")
        if isinstance(value, str) and (_MODELS.fullmatch(key) or _FILES.fullmatch(key)):
            absolute = _absolute(value, path, _MODELS.fullmatch(key) is not None)
            if absolute is not None:
                yield key, value, absolute


def _flat(values: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    inner = values.items() if isinstance(values, Mapping) else enumerate(values) if isinstance(values, list) else ()
    for name, each in inner:
        yield from _flat(each, f"{key}.{name}" if key else str(name))
    if not inner:
        yield key, values


def _absolute(value: str, path: Path, is_model: bool) -> str | None:
    """The absolute path that a value stands for; None where it is no relative path, but the name of something."""
    here = path.absolute().parent
    if not value or re.match(r"rbpx:|\w+://|.*\$\{", value) or Path(value).is_absolute():
        return None
    if is_model and value.count("/") == 1 and not value.startswith(".") and not (here / value).exists():
        return None
    return os.path.abspath(here / os.path.expanduser(value))
