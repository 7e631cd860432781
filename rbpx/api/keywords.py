"""Keys as keyword arguments of Python: signatures and docstrings of methods, and requests from values."""

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from inspect import Parameter, Signature
from itertools import product
from pathlib import Path
from typing import Any, Final

from rbpx.config.compose import compose_values
from rbpx.config.keys.key import Key
from rbpx.config.keys.output import LOOKS
from rbpx.config.keys.runs import GridKeys
from rbpx.config.request import Asking
from rbpx.errors import RbpxError


class MeasuringKeys(GridKeys):
    """Keys of measuring from Python."""

    WITHOUT = ("shard",)


MEASURING: Final = Asking("measure", MeasuringKeys)
_SWEPT: Final = ("model", "dataset", "protocol")
_HERE: Final = ("store", "format", "output", "details", "spreadsheet")  # not accepted: answers are values here


def signature(asking: Asking) -> Signature:
    """Returns the signature of a verb's method: its keys with their defaults."""
    named = [Parameter(key.name, Parameter.KEYWORD_ONLY, default=_plain(key.default)) for key in taken(asking)]
    rest = Parameter("keys", Parameter.VAR_KEYWORD)  # keys of groups, as in **{"model.revision": "step1000"}
    return Signature([Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *named, rest])


def explained(asking: Asking) -> str:
    """Returns a sentence about each key of a verb, for the docstring of its method."""
    texts = [(key.name, re.sub(r"^\{\w+\}", "a name", key.told)) for key in taken(asking)]
    return "\n".join(f"    {name}: {text[:1].upper()}{text[1:].removesuffix('.')}." for name, text in texts)


def taken(asking: Asking) -> list[Key]:
    """Returns the keys of a verb that are meaningful in Python."""
    return [key for name, key in asking.keys.items() if name not in (*_HERE, *LOOKS) and key.help]


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def requests(
    asking: Asking,
    keys: Mapping[str, Any],
    store: str,
    config_dir: Path | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Returns one request for each combination of the models, datasets and protocols that are listed.

    Keys of a group have a dot: `**{"model.revision": "step1000"}`; `fixed` are those that the method itself sets.
    """
    reserved = next((name for name in keys if name in _HERE), None)
    if reserved is not None:
        raise RbpxError(
            f"{reserved}= is not a key of {asking.verb} in Python; rbpx.open(STORE) names the store, and answers are "
            "values"
        )
    for name, value in keys.items():
        refuse_half_pairs(name, value)
    combinations = [[(name, choice) for choice in _choices(name, value)] for name, value in keys.items()]
    given = {"store": store, **(fixed or {})}
    return [compose_values(asking, given | dict(job), config_dir) for job in product(*combinations)]


def refuse_half_pairs(name: str, value: Any) -> None:
    """Refuses text that no file and no database can hold: half of a surrogate pair."""
    if isinstance(value, str | Path):
        half = re.search("[\ud800-\udfff]", str(value))
        if half is not None:
            raise RbpxError(
                f"{name}={str(value)!a} holds half of a surrogate pair, which is no text; give the whole character"
            )
    elif isinstance(value, Mapping):
        refuse_half_pairs(name, list(value.items()))
    elif isinstance(value, list | tuple | set):
        for each in value:
            refuse_half_pairs(name, each)


def _choices(name: str, value: Any) -> list[Any]:
    if name in _SWEPT and isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return list(value)
    return [value]
