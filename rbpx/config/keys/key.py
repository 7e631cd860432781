"""Keys as fields of dataclasses: type and default of the field, and its check and help as metadata.

`--help`, completion, Hydra's schemas, the methods of the Python interface and the reference are made of these fields.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_type_hints

from rbpx.config.options import did_you_mean
from rbpx.errors import RbpxError
from rbpx.files.cells import large_number
from rbpx.spelling import typed

LARGEST_COUNT: Final = 2**31 - 1  # a k, a document or a token in the columns of the store
_LARGEST_NUMBER: Final = 1e60  # of tokens, or of FLOPs

Reader = Callable[[str, Any], Any]
"""What a key means: its name and what was typed in, the checked value out; raises RbpxError."""


@dataclass(frozen=True)
class Key:
    """The declaration of one key.

    Attributes:
        kind: type of what is typed, for Hydra: that of the field, or Any where a reader accepts several types.
        optional: whether null is a value.
        read: checks what was typed and returns the value.
        shown: placeholder behind the name in help, as in k=K.
        help: what it means; {models}, {datasets} and {experiments} are replaced by the known names. Empty for keys that
            only studies set.
        narrows: its help for a question, which reads what a store holds.
        alone: its help for a verb that is neither a question nor the report.
        values: that completion offers.
        path: whether its value is a file or a folder.
        text: whether it takes text only, although its reader also takes lists or shorthands.
        example: a value that replaces {example} in its help.
    """

    name: str
    kind: Any
    default: Any
    optional: bool
    read: Reader | None
    shown: str
    help: str
    narrows: str
    alone: str
    values: tuple[str, ...]
    path: bool
    text: bool
    example: Any

    @property
    def is_text(self) -> bool:
        """Whether its values are text only and stay as typed."""
        return self.text or self.kind in (str, str | None) or self.read in (name_of, names_of)

    def told(self, narrows: bool, alone: bool = False) -> str:
        """Returns its help for a question (narrows), for a verb that asks nothing (alone), or for measuring."""
        text = (self.alone if alone else "") or (self.narrows if narrows else self.help)
        return text if self.example is None else text.replace("{example}", typed(**{self.name: self.example}))

    def meaning(self, given: Any) -> Any:
        """Checks a value and returns what it means.

        Raises:
            RbpxError: the key does not take this value.
        """
        if given in ("", []) and self.default not in ("", []):
            raise RbpxError(f"{self.name}={given} is empty; give what is meant, or leave it out")
        if given is None and self.default is not None and not self.optional:
            raise RbpxError(f"{self.name}=null is no value; give one, or leave it out for its default")
        return given if self.read is None else self.read(self.name, given)


def key(
    default: Any,
    help: str = "",
    read: Reader | None = None,
    shown: str = "",
    narrows: str = "",
    alone: str = "",
    values: Sequence[str] = (),
    path: bool = False,
    text: bool = False,
    example: Any = None,
) -> Any:
    """Declares a field that is a key; see `Key`."""
    told: dict[str, Any] = {"help": help, "narrows": narrows or help, "alone": alone, "shown": shown}
    told |= {"read": read, "values": tuple(values), "path": path, "text": text}
    told["example"] = example
    if default.__hash__ is None:
        return field(default_factory=lambda: deepcopy(default), metadata=told)
    return field(default=default, metadata=told)


def keys_of(schema: type) -> Mapping[str, Key]:
    """Returns the keys of a dataclass by name."""
    kinds = get_type_hints(schema)
    return {each.name: _key(each, kinds[each.name]) for each in fields(schema) if "help" in each.metadata}


def text_or_list() -> Any:
    """Declares a field of a group that holds one text, several, or None; its type for Hydra is Any."""
    return field(default=None, metadata={"is_text": True})


def _key(each: Any, kind: Any) -> Key:
    told = dict(each.metadata)
    optional = NoneType in get_args(kind)
    kinds = [one for one in (get_args(kind) if isinstance(kind, UnionType) else (kind,)) if one is not NoneType]
    if told["read"] is not None and not {*kinds} & {int, float}:  # a reader may accept more types than the field names
        kind = Any
    default = each.default_factory() if callable(each.default_factory) else each.default
    named = [str(one.value) for enum in kinds if isinstance(enum, type) and issubclass(enum, Enum) for one in enum]
    return Key(each.name, kind, default, optional, **{**told, "values": told["values"] or tuple(named)})


# ----------------------------------------------------------------------------------------------------------- readers


def whole(least: int, most: int = LARGEST_COUNT) -> Reader:
    """Returns a reader of whole numbers from `least` to `most`; null passes where the key is optional."""

    def read(key: str, value: Any) -> Any:
        if value is not None and not least <= value <= most:
            raise RbpxError(f"{key}={value} is not a whole number from {least} to {most:,}; give one")
        return value

    return read


def number_within(least: float, most: float, what: str) -> Reader:
    """Returns a reader of numbers from `least` to `most`, in the unit `what`; null passes where the key is optional."""

    def read(key: str, value: Any) -> Any:
        if value is not None and not least <= value <= most:
            raise RbpxError(f"{key}={value:g} is not between {least} and {most} {what}; give one that is")
        return value

    return read


def positive(what: str) -> Reader:
    """Returns a reader of positive numbers; `what` completes the error's advice, as in "seconds"."""

    def read(key: str, value: Any) -> Any:
        positive_numbers(key, value, what)
        return value

    return read


def positive_numbers(key: str, value: Any, what: str, most: float = _LARGEST_NUMBER) -> list[float]:
    """Returns the numbers of a key that takes one or several, such as 2e10 or 20B, in order; an empty list for None.

    `what` completes the error's advice, as in "training FLOPs".

    Raises:
        RbpxError: a number is not positive, or is larger than `most`.
    """
    numbers = []
    for each in [] if value is None else map(in_digits, as_list(value)):
        if isinstance(each, bool) or not isinstance(each, int | float) or not 0 < each <= most:
            raise RbpxError(f"{key}={each} is not a positive number up to {most:g}; give {what}")
        numbers.append(float(each))
    return numbers


def in_digits(value: Any) -> Any:
    """Returns 1.2B or 60M as a number; any other value unchanged."""
    exact = large_number(value) if isinstance(value, str) else None
    return value if exact is None else float(exact)


def name_of(key: str, value: Any) -> Any:
    """Returns a name, or None.

    Raises:
        RbpxError: YAML read the value as something other than text.
    """
    if value is not None and not isinstance(value, str):
        raise RbpxError(f"{key}={value} was read as {read_as(value)}; give a text, in quotes in a file")
    return value


def read_as(value: Any) -> str:
    """Names the type as which YAML read a value that should be text."""
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "a list" if isinstance(value, list) else "a mapping"


def names_of(key: str, value: Any) -> list[str] | None:
    """Returns the listed names without repetitions, in order; None for None.

    Raises:
        RbpxError: YAML read a name as something other than text.
    """
    return None if value is None else list(dict.fromkeys(name_of(key, each) for each in as_list(value)))


def checked_names(key: str, value: Any, known: Sequence[str], about: str = "") -> list[Any]:
    """Returns the names asked for, in order; `all` is always valid.

    Raises:
        RbpxError: a name is unknown; `about` ends the error's text.
    """
    names = as_list(value)
    for name in names:
        if name not in (*known, "all"):
            hint = did_you_mean(str(name), known)
            raise RbpxError(f"{key}={name} is unknown; {hint}known: all, {', '.join(known)}{about}")
    return names


def one_of(known: Sequence[str], about: str = "") -> Reader:
    """Returns a reader of lists of known names without repetitions; "all" means every name."""

    def read(key: str, value: Any) -> list[str]:
        names = checked_names(key, value, known, about)
        return list(known) if "all" in names else list(dict.fromkeys(names))

    return read


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def as_list(value: Any) -> list[Any]:
    """Returns a list unchanged, and any other value as a list of one."""
    return value if isinstance(value, list) else [value]
