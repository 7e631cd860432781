"""A key that users type: its name, type, default, check and line of help, said once.

`--help`, completion, each verb's own schema for Hydra, the methods of a notebook and the reference are made of these.
"""

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import field
from enum import Enum
from types import NoneType
from typing import Any, Final, Generic, Self, TypeVar, get_args, overload

from rbpx.config.options import did_you_mean
from rbpx.errors import RbpxError
from rbpx.files.cells import large_number

__all__ = [
    "LARGEST_COUNT", "Asked", "Key", "as_list", "as_typed", "checked_names", "explained", "in_digits", "is_number",
    "name_of", "names_of", "number_within", "one_of", "positive", "positive_numbers", "read_as", "whole",
]  # fmt: skip

T = TypeVar("T")

LARGEST_COUNT: Final = 2**31 - 1  # a k, a document or a token in the columns of the store
_LARGEST_NUMBER: Final = 1e60  # of tokens, or of FLOPs

Reader = Callable[[str, Any], T]
"""What a key means: its name and what was typed in, the checked value out; raises RbpxError."""


class Key(Generic[T]):
    """One key, an attribute of the requests of all verbs; where a verb does not have it, it has its default.

    Attributes:
        name: as typed.
        kind: type of what is typed, for Hydra: `int`, `float | None`, an Enum, or Any where several are taken.
        default: what is typed where nothing is.
        read: checks what was typed and returns what it means.
        shown: what stands behind its name in help, as in k=K.
        help: what it means; {models}, {datasets} and {experiments} are the names there are. Empty for what only
            studies say.
        narrowing: what it means to a question, which looks at what a store holds.
        alone: what it means to a verb that is neither a question nor the report; empty where it means no less to it.
        values: names that it takes, for completion; an Enum's come from its type.
        takes_path: whether its value is a file or a folder.
    """

    def __init__(
        self,
        kind: Any,
        default: Any,
        read: Reader[T],
        shown: str,
        values: Sequence[str] = (),
        takes_path: bool = False,
    ) -> None:
        """Declare it; its name is that of the attribute it becomes."""
        self.name = ""
        self.kind, self.default, self.read = kind, default, read
        self.shown, self.takes_path = shown, takes_path
        self.help = self.narrowing = self.alone = ""
        enums = [each for each in (kind, *get_args(kind)) if isinstance(each, type) and issubclass(each, Enum)]
        self.values = tuple(values) or tuple(str(each.value) for kind in enums for each in kind)

    def says(self, help: str, narrowing: str = "", alone: str = "") -> Self:
        """The key with its line of help, one where it narrows what a store holds, and one of verbs that ask nothing."""
        self.help, self.narrowing, self.alone = help, narrowing or help, alone
        return self

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the name of the attribute."""
        self.name = name

    @overload
    def __get__(self, asked: None, owner: type) -> "Key[T]": ...

    @overload
    def __get__(self, asked: "Asked", owner: type) -> T: ...

    def __get__(self, asked: "Asked | None", owner: type) -> "Key[T] | T":
        """What it means in a request; the key itself on the class of requests."""
        return self if asked is None else self.of(asked)

    def of(self, asked: "Asked") -> T:
        """What it means in a request."""
        return self.meaning(asked.typed.get(self.name, self.default))

    def meaning(self, typed: Any) -> T:
        """What a value means.

        Raises:
            RbpxError: it is not one that the key takes.
        """
        if typed in ("", []) and self.default not in ("", []):
            raise RbpxError(f"{self.name}={typed} is empty; give what is meant, or leave it out")
        if typed is None and not self.may_be_null:
            raise RbpxError(f"{self.name}=null is no value; give one, or leave it out for its default")
        return self.read(self.name, typed)

    @property
    def may_be_null(self) -> bool:
        """Whether null is one of its values."""
        return self.default is None or NoneType in get_args(self.kind)


class Asked:
    """What was asked of a verb: the values of its keys, as typed.

    Attributes:
        typed: name -> value, as Hydra read it.
    """

    def __init__(self, **typed: Any) -> None:
        """Keep what was typed.

        Raises:
            RbpxError: a value is not one that its key takes, or there is no such key.
        """
        self.typed = typed
        for name, value in typed.items():
            getattr(type(self), name).meaning(value)

    def __eq__(self, other: object) -> bool:
        """Whether the same was asked."""
        return isinstance(other, Asked) and self.typed == other.typed

    __hash__ = None  # type: ignore[assignment]


def explained(default: Any, shown: str, help: str, name: str = "") -> Any:
    """A field of a request that is a dataclass of its own, with its line of help.

    Args:
        default: its default; a list or a mapping is copied.
        shown: what stands behind its name in help.
        help: what it means.
        name: in help, where that is another one.
    """
    told = {"shown": shown, "help": help, "name": name}
    if default.__hash__ is None:
        return field(default_factory=lambda: deepcopy(default), metadata=told)
    return field(default=default, metadata=told)


# ----------------------------------------------------------------------------------------------------------- readers


def as_typed(key: str, value: Any) -> Any:
    """Any value of the type that Hydra checked."""
    return value


def whole(least: int, most: int = LARGEST_COUNT) -> Reader[Any]:
    """A whole number from `least` to `most`, or none where the key may be null."""

    def read(key: str, value: Any) -> Any:
        if value is not None and not least <= value <= most:
            raise RbpxError(f"{key}={value} is not a whole number from {least} to {most:,}; give one")
        return value

    return read


def number_within(least: float, most: float, what: str) -> Reader[Any]:
    """A number from `least` to `most`, or none where the key may be null; `what` is its unit."""

    def read(key: str, value: Any) -> Any:
        if value is not None and not least <= value <= most:
            raise RbpxError(f"{key}={value:g} is not between {least} and {most} {what}; give one that is")
        return value

    return read


def positive(what: str) -> Reader[Any]:
    """A positive number, or none where the key may be null; `what` is the advice, as in "seconds"."""

    def read(key: str, value: Any) -> Any:
        positive_numbers(key, value, what)
        return value

    return read


def positive_numbers(key: str, value: Any, what: str) -> list[float]:
    """The numbers of a key that takes one or several, 2e10 or 20B, in order; none where it is not given.

    Args:
        key: its name.
        value: what was given.
        what: the rest of the advice, as in "training FLOPs, as in budgets='[1e18,1e20]'".

    Raises:
        RbpxError: one of them is not positive, or larger than anything that is trained.
    """
    numbers = []
    for each in [] if value is None else map(in_digits, as_list(value)):
        if isinstance(each, bool) or not isinstance(each, int | float) or not 0 < each <= _LARGEST_NUMBER:
            raise RbpxError(f"{key}={each} is not a positive number up to {_LARGEST_NUMBER:g}; give {what}")
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
        raise RbpxError(f"{key}={value} was read as {read_as(value)}; quote it to keep it as typed: '{key}=\"...\"'")
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


def one_of(known: Sequence[str], about: str = "") -> Reader[list[str]]:
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
