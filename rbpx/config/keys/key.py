"""A key that users type is a field of a dataclass: its type, its default, and as metadata its check and its help.

`--help`, completion, the schemas that Hydra has of each verb, the methods of a notebook and the reference are made of
these fields.
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
    """What is known of one key.

    Attributes:
        name: as typed.
        kind: type of what is typed, for Hydra: that of its field, or Any where several types are taken.
        default: what is typed where nothing is.
        optional: whether it may be none.
        read: checks what was typed and returns what it means.
        shown: what stands behind its name in help, as in k=K.
        help: what it means; {models}, {datasets} and {experiments} are the names there are. Empty for what only
            studies say.
        narrows: what it means to a question, which looks at what a store holds.
        alone: what it means to a verb that is neither a question nor the report.
        values: names that it takes, for completion.
        path: whether its value is a file or a folder.
        text: whether it takes text alone, though its reader takes lists or shorthands too.
        example: a value, as {example} of its help.
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
        """Whether it takes text alone, which stays as it was typed."""
        return self.text or self.kind in (str, str | None) or self.read in (name_of, names_of)

    def told(self, narrows: bool, alone: bool = False) -> str:
        """Its line of help: to a question (narrows), to a verb that asks nothing (alone), or to what measures."""
        text = (self.alone if alone else "") or (self.narrows if narrows else self.help)
        return text if self.example is None else text.replace("{example}", typed(**{self.name: self.example}))

    def meaning(self, given: Any) -> Any:
        """What a value means.

        Raises:
            RbpxError: it is not one that the key takes.
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
    """A field that is a key; see `Key`."""
    told: dict[str, Any] = {"help": help, "narrows": narrows or help, "alone": alone, "shown": shown}
    told |= {"read": read, "values": tuple(values), "path": path, "text": text}
    told["example"] = example
    if default.__hash__ is None:
        return field(default_factory=lambda: deepcopy(default), metadata=told)
    return field(default=default, metadata=told)


def keys_of(schema: type) -> Mapping[str, Key]:
    """The keys that a dataclass has, by name."""
    kinds = get_type_hints(schema)
    return {each.name: _key(each, kinds[each.name]) for each in fields(schema) if "help" in each.metadata}


def text_or_list() -> Any:
    """A field of a group that holds a text, or several, none by default; it has any type to Hydra."""
    return field(default=None, metadata={"is_text": True})


def _key(each: Any, kind: Any) -> Key:
    told = dict(each.metadata)
    optional = NoneType in get_args(kind)
    kinds = [one for one in (get_args(kind) if isinstance(kind, UnionType) else (kind,)) if one is not NoneType]
    if told["read"] is not None and not {*kinds} & {int, float}:  # a reader of its own takes more than a type says
        kind = Any
    default = each.default_factory() if callable(each.default_factory) else each.default
    named = [str(one.value) for enum in kinds if isinstance(enum, type) and issubclass(enum, Enum) for one in enum]
    return Key(each.name, kind, default, optional, **{**told, "values": told["values"] or tuple(named)})


# ----------------------------------------------------------------------------------------------------------- readers


def whole(least: int, most: int = LARGEST_COUNT) -> Reader:
    """A whole number from `least` to `most`, or none where the key may be null."""

    def read(key: str, value: Any) -> Any:
        if value is not None and not least <= value <= most:
            raise RbpxError(f"{key}={value} is not a whole number from {least} to {most:,}; give one")
        return value

    return read


def number_within(least: float, most: float, what: str) -> Reader:
    """A number from `least` to `most`, or none where the key may be null; `what` is its unit."""

    def read(key: str, value: Any) -> Any:
        if value is not None and not least <= value <= most:
            raise RbpxError(f"{key}={value:g} is not between {least} and {most} {what}; give one that is")
        return value

    return read


def positive(what: str) -> Reader:
    """A positive number, or none where the key may be null; `what` is the advice, as in "seconds"."""

    def read(key: str, value: Any) -> Any:
        positive_numbers(key, value, what)
        return value

    return read


def positive_numbers(key: str, value: Any, what: str, most: float = _LARGEST_NUMBER) -> list[float]:
    """The numbers of a key that takes one or several, 2e10 or 20B, in order; none where it is not given.

    Args:
        key: its name.
        value: what was given.
        what: the rest of the advice, as in "training FLOPs".
        most: the largest of them.

    Raises:
        RbpxError: one of them is not positive, or larger than anything that is trained.
    """
    numbers = []
    for each in [] if value is None else map(in_digits, as_list(value)):
        if isinstance(each, bool) or not isinstance(each, int | float) or not 0 < each <= most:
            raise RbpxError(f"{key}={each} is not a positive number up to {most:g}; give {what}")
        numbers.append(float(each))
    return numbers


def in_digits(value: Any) -> Any:
    """A number for one that is written as people write large ones, 1.2B or 60M; anything else as it is."""
    exact = large_number(value) if isinstance(value, str) else None
    return value if exact is None else float(exact)


def name_of(key: str, value: Any) -> Any:
    """A name, or none.

    Raises:
        RbpxError: YAML read it as a number.
    """
    if value is not None and not isinstance(value, str):
        raise RbpxError(f"{key}={value} was read as {read_as(value)}; give a text, in quotes in a file")
    return value


def read_as(value: Any) -> str:
    """What was read in place of a text, in words."""
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "a list" if isinstance(value, list) else "a mapping"


def names_of(key: str, value: Any) -> list[str] | None:
    """The names that are listed, each once, in order; None where none are.

    Raises:
        RbpxError: YAML read one of them as a number.
    """
    return None if value is None else list(dict.fromkeys(name_of(key, each) for each in as_list(value)))


def checked_names(key: str, value: Any, known: Sequence[str], about: str = "") -> list[Any]:
    """The names asked for, in order; `all` is one of them.

    Args:
        key: that lists them.
        value: one name, or a list.
        known: the names there are beside `all`.
        about: what else an error says of them.

    Raises:
        RbpxError: one of them is unknown.
    """
    names = as_list(value)
    for name in names:
        if name not in (*known, "all"):
            hint = did_you_mean(str(name), known)
            raise RbpxError(f"{key}={name} is unknown; {hint}known: all, {', '.join(known)}{about}")
    return names


def one_of(known: Sequence[str], about: str = "") -> Reader:
    """Names of a list, in order, each once; `all` of them for "all"."""

    def read(key: str, value: Any) -> list[str]:
        names = checked_names(key, value, known, about)
        return list(known) if "all" in names else list(dict.fromkeys(names))

    return read


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def as_list(value: Any) -> list[Any]:
    """A list as it is, one value as the list of it."""
    return value if isinstance(value, list) else [value]
