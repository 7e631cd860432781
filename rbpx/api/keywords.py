"""Makes requests of keys that are given in Python, the same as of these keys on a command line."""

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from inspect import Parameter, Signature
from itertools import product
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Final

import yaml

from rbpx.config.hydra.compose import compose, names_dataset
from rbpx.config.keys.shown import LOOKS
from rbpx.config.overrides import quoted, searched
from rbpx.config.request import KEYS, Asking, Request
from rbpx.errors import RbpxError
from rbpx.store.imports.kept import dataset_names
from rbpx.store.store import Store

_GROUPS: Final = ("model", "dataset", "protocol")
_GIVEN: Final = r"(?<![\w'\"])([\w.]+)='([\[{].*?[\]}])'"  # a list or a mapping in quotes
_HERE: Final = ("store", "format", "output", "fresh", "details", "spreadsheet")  # not taken: answers are values here


def signature(asking: Asking) -> Signature:
    """The signature of a verb's method: the verb's keys, with their defaults."""
    named = [Parameter(key.name, Parameter.KEYWORD_ONLY, default=_plain(key.default)) for key in taken(asking)]
    rest = Parameter("keys", Parameter.VAR_KEYWORD)  # those of groups, as in **{"model.revision": "step1000"}
    return Signature([Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *named, rest])


def explained(asking: Asking) -> str:
    """A line about each key of a verb, for the docstring of its method."""
    return "\n".join(f"    {key.name}: {as_python(key.narrowing)}" for key in taken(asking))


def taken(asking: Asking) -> list[Any]:
    """The keys of a verb that mean something in Python."""
    return [KEYS[name] for name in asking.names if name not in (*_HERE, *LOOKS) and KEYS[name].help]


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def requests(
    asking: Asking,
    keys: Mapping[str, Any],
    store: str,
    config_dir: Path | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> list[Request]:
    """One request for each combination of the models, datasets and protocols that are listed.

    Args:
        asking: the verb and its keys.
        keys: values by name; keys of a group have a dot: `**{"model.revision": "step1000"}`.
        store: folder of the store.
        config_dir: folder with a user's own model/NAME.yaml and dataset/NAME.yaml.
        fixed: further keys, which the method itself sets.

    Raises:
        RbpxError: a key is unknown, or a value is not what its key takes.
    """
    reserved = next((name for name in keys if name in _HERE), None)
    if reserved is not None:
        raise RbpxError(
            f"{reserved}= is not a key of {asking.verb} in Python; rbpx.open(STORE) names the store, and answers are "
            "values"
        )
    own = [] if config_dir is None else [searched([config_dir])]
    combinations = [[(name, choice) for choice in _choices(name, value)] for name, value in keys.items()]
    base = [f"store={quoted(store)}", *own, *overrides(fixed or {})]
    jobs = [overrides(dict(job)) for job in product(*combinations)]
    narrowed = any(names_dataset(asking.primary, job) for job in jobs)
    held = dataset_names(Store(store)) if narrowed else []
    try:
        return [compose(asking, [*base, *job], held) for job in jobs]
    except RbpxError as problem:
        raise type(problem)(as_python(str(problem))) from None


def overrides(keys: Mapping[str, Any]) -> list[str]:
    """Keys and values as they are typed on a command line."""
    return [f"{name}={written(value)}" for name, value in keys.items()]


def _choices(name: str, value: Any) -> list[Any]:
    if name in _GROUPS and isinstance(value, Iterable) and not isinstance(value, str):
        return list(value)
    return [value]


def written(value: Any) -> str:
    """A value in the grammar of Hydra's overrides.

    Raises:
        RbpxError: no key takes such a value.
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Enum():
            return written(value.value)
        case str() | PathLike():
            text = str(value)
            return text if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", text) and not _is_constant(text) else quoted(text)
        case Integral():
            return str(int(value))
        case Real():
            return repr(float(value))
        case Mapping():
            return "{" + ", ".join(f"{name}: {written(each)}" for name, each in value.items()) + "}"
        case Iterable():
            return "[" + ",".join(written(each) for each in value) + "]"
    raise RbpxError(f"{value!r} is not a value that a key takes; give text, numbers, lists or mappings of them")


def _is_constant(text: str) -> bool:
    """Whether Hydra would read a word as a constant and not as text."""
    return text.lower() in {"null", "true", "false", "nan", "inf"}


# ------------------------------------------------------------------------------------------------------ as Python says


def as_python(text: str) -> str:
    """Rewrite what a message types on a command line as Python: k='[1,10]' as k=[1, 10], store=s as store="s"."""
    text = re.sub(r"-m (\w+)=([\w.,-]+)", lambda found: f"{found[1]}={found[2].split(',')!r}", text)
    text = re.sub(_GIVEN, lambda found: f"{_name(found[1])}={_literal(found[2])}", text)
    text = re.sub(r"'(\w+)=\"(.*?)\"'", r'\1="\2"', text)
    names = "|".join(name for name, key in KEYS.items() if key.help)
    text = re.sub(
        rf"(?<![\w'\".])({names})=([A-Za-z_][\w./-]*)(?![\w(\[{{])",
        lambda found: found[0] if found[2].isupper() else f"{found[1]}={_constant(found[2])}",
        text,
    )
    return re.sub(r"python -m rbpx (\w+) --help", r"help(rbpx.Measurements.\1)", text)


def _name(key: str) -> str:
    return f"**{{{key!r}: ...}}, with {key}" if "." in key else key


def _literal(text: str) -> str:
    """A list or a mapping as Python writes it."""
    try:
        return repr(yaml.safe_load(text))
    except yaml.YAMLError:
        return text


def _constant(word: str) -> str:
    return {"null": "None", "true": "True", "false": "False"}.get(word, f'"{word}"')
