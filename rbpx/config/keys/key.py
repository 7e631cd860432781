"""Keys as fields of dataclasses: type and default of the field, and its check and help as metadata.

`--help`, completion, Hydra's schemas, the methods of the Python interface and the reference are made of these fields.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Final, Self, TypeVar, cast, dataclass_transform, get_args, get_type_hints

from rbpx.config.options import did_you_mean
from rbpx.errors import RbpxError
from rbpx.files.cells import large_number
from rbpx.spelling import typed

LARGEST_COUNT: Final = 2**31 - 1  # a k, a document or a token in the columns of the store
LARGEST_NUMBER: Final = 1e60  # of tokens, or of FLOPs

Reader = Callable[[str, Any], Any]  # name of a key, what was typed -> the checked value; raises RbpxError
Files = Mapping[str, str | None]  # group -> the file of conf/ that it begins from


@dataclass(frozen=True)
class Key:
    """The declaration of one key.

    Attributes:
        kind: for Hydra: the field's type, or Any where a reader accepts several.
        optional: whether null is a value.
        help: with {models}, {datasets}, {experiments} and {example}; empty for keys that only studies set.
        shown: behind the name in help, as in k=K.
        values: that completion offers.
        text: whether it takes text only, although its reader also takes lists or shorthands.
    """

    name: str
    kind: Any
    default: Any
    optional: bool
    help: str
    read: Reader | None = None
    shown: str = ""
    values: Sequence[str] = ()
    text: bool = False
    example: Any = None

    @property
    def is_text(self) -> bool:
        """Whether its values stay as typed."""
        return self.text or self.kind in (str, str | None) or self.read in (name_of, names_of)

    @property
    def group(self) -> Any:
        """The dataclass of its values, whose keys stand behind a dot; None for others."""
        return next((each for each in (*get_args(self.kind), self.kind) if is_dataclass(each)), None)

    @property
    def told(self) -> str:
        """Its help with its example."""
        return self.help if self.example is None else self.help.replace("{example}", typed(**{self.name: self.example}))

    def meaning(self, given: Any) -> Any:
        """What a value means; raises RbpxError where the key does not take it."""
        if given in ("", []) and self.default not in ("", []):
            raise RbpxError(f"{self.name}={given} is empty; give what is meant, or leave it out")
        if given is None and self.default is not None and not self.optional:
            raise RbpxError(f"{self.name}=null is no value; give one, or leave it out for its default")
        return given if self.read is None else self.read(self.name, given)


def key(default: Any, help: str = "", read: Reader | None = None, shown: str = "", **more: Any) -> Any:
    """Declares a field that is a key; see `Key`."""
    told = {"help": help, "read": read, "shown": shown, **more}
    if default.__hash__ is None:
        return field(default_factory=lambda: deepcopy(default), metadata=told)
    return field(default=default, metadata=told)


def keys_of(schema: type) -> Mapping[str, Key]:
    """The keys of a dataclass by name."""
    return _keys_of(schema)


@cache
def _keys_of(schema: type) -> Mapping[str, Key]:
    kinds = get_type_hints(schema)
    own = [each for each in fields(schema) if each.name not in getattr(schema, "WITHOUT", ())]
    return {each.name: _key(each, kinds[each.name]) for each in own if "help" in each.metadata}


def text_or_list(help: str = "", shown: str = "") -> Any:
    """Declares a field of a group that holds one text, several, or None."""
    return key(None, help, None, shown, text=True)


def _key(each: Any, kind: Any) -> Key:
    told = dict(each.metadata)
    kinds = [one for one in (get_args(kind) if isinstance(kind, UnionType) else (kind,)) if one is not NoneType]
    default = each.default_factory() if callable(each.default_factory) else each.default
    named = [str(one.value) for enum in kinds if isinstance(enum, type) and issubclass(enum, Enum) for one in enum]
    # A reader may accept more types than the field: one name for a list of them, or 20B for a number.
    is_typed = told["read"] is None or isinstance(told["read"], Within) or kinds == [int]
    known = (*told["read"].known, "all") if isinstance(told["read"], AnyOf) else ()
    told["values"] = told.get("values") or (*named, *known)
    return Key(each.name, kind if is_typed else Any, default, NoneType in get_args(kind), **told)


K = TypeVar("K", bound="Keys")


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
@dataclass(kw_only=True, eq=False)
class Keys:
    """The meanings of the keys of a verb. Each subclass is a dataclass; verbs combine them.

    Of a field that several bases have, the first one counts. A plain value, no field, is that of verbs without the key.

    Attributes:
        WITHOUT: inherited keys that it does not take.
        others: values, as typed, of the keys of questions that the verb asks.
    """

    FILES: ClassVar[Files] = dict.fromkeys(("model", "dataset", "protocol"))
    WITHOUT: ClassVar[Sequence[str]] = ()
    typed: dict[str, Any] = field(init=False, repr=False)
    others: dict[str, Any] = field(default_factory=dict, repr=False)

    def __init_subclass__(cls) -> None:
        dataclass(kw_only=True, eq=False)(cls)

    def __post_init__(self) -> None:
        """Reads the values; raises RbpxError where a key does not take its own, or two contradict each other."""
        self.typed = {name: getattr(self, name) for name in keys_of(type(self))}
        for name, each in keys_of(type(self)).items():
            setattr(self, name, each.meaning(self.typed[name]))
        self.check()

    def check(self) -> None:
        """Refuses values that contradict each other; classes extend it."""

    def but(self, **typed: Any) -> Self:
        """The same with other values of some keys."""
        own = {name: typed.pop(name) for name in keys_of(type(self)) if name in typed}
        return replace(self, **{**self.typed, **own}, others={**self.others, **typed})

    def to(self, kind: type[K], **typed: Any) -> K:
        """The keys of another verb, which takes those that it has."""
        given = {**self.others, **self.typed, **typed}
        return kind(**{name: given[name] for name in keys_of(kind) if name in given})


# ----------------------------------------------------------------------------------------------------------- readers


@dataclass(frozen=True)
class Within:
    """Reads a number from `least` to `most`, or null; `says` is said of another."""

    least: float
    most: float
    says: str

    def __call__(self, key: str, value: Any) -> Any:
        """The number."""
        if value is not None and not self.least <= value <= self.most:
            told = f"{value:g}" if isinstance(value, float) else value
            raise RbpxError(f"{key}={told} {self.says}")
        return value


def whole(least: int, most: int = LARGEST_COUNT) -> Reader:
    """A reader of whole numbers."""
    return Within(least, most, f"is not a whole number from {least} to {most:,}; give one")


def positive(what: str) -> Reader:
    """A reader of one positive number, as 20B; `what` completes the error's advice."""
    return lambda key, value: None if value is None else positive_numbers(key, [value], what)[0]


def positive_numbers(key: str, value: Any, what: str, most: float = LARGEST_NUMBER) -> list[float]:
    """The numbers of a key that takes one or several; none for None; `what` as above."""
    numbers = []
    for each in [] if value is None else as_list(value):
        exact = large_number(each)
        if exact is None or not 0 < float(exact) <= most:
            raise RbpxError(f"{key}={each} is not a positive number up to {most:g}; give {what}")
        numbers.append(float(exact))
    return numbers


def name_of(key: str, value: Any) -> Any:
    """A name, or None; raises RbpxError for what YAML read as something else."""
    if value is not None and not isinstance(value, str):
        raise RbpxError(f"{key}={value} was read as {read_as(value)}; give a text, in quotes in a file")
    return value


def read_as(value: Any) -> str:
    """Names what YAML read a text as."""
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "a list" if isinstance(value, list) else "a mapping"


def names_of(key: str, value: Any) -> list[str] | None:
    """One or several names without repetitions, as `name_of`; None for None."""
    return None if value is None else list(dict.fromkeys(name_of(key, each) for each in as_list(value)))


@dataclass(frozen=True)
class Choice:
    """Names that were chosen; `by_name` by the user, who did not take the default or `all`."""

    names: tuple[str, ...]
    by_name: bool


@dataclass(frozen=True)
class AnyOf:
    """Reads known names or `all` as a `Choice`, or a list of `kind`; null is `default`, `about` ends the error."""

    known: Sequence[str]
    default: Choice | str | None = None
    kind: Callable[[str], Any] | None = None
    about: str = ""

    def __call__(self, key: str, value: Any) -> Any:
        """What was chosen."""
        if value is None and isinstance(self.default, Choice):
            return self.default
        names = as_list(self.default if value is None else value)
        for name in names:
            if name not in (*self.known, "all"):
                known = f"{did_you_mean(str(name), self.known)}known: all, {', '.join(self.known)}"
                raise RbpxError(f"{key}={name} is unknown; {known}{self.about}")
        found = tuple(self.known if "all" in names else dict.fromkeys(names))
        return Choice(found, "all" not in names) if self.kind is None else [*map(self.kind, found)]


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def as_list(value: Any) -> list[Any]:
    """A list unchanged, and any other value as a list of one."""
    return value if isinstance(value, list) else [value]


class Stored(Keys):
    """The store that a verb reads or writes."""

    store: str = key(
        "${oc.env:RBPX_STORE,store}", "folder of the store (--store DIR), default $RBPX_STORE or store/", shown="DIR"
    )
    sql_timeout_s = cast("float | None", 60.0)
    sql_memory_mib = cast("int | None", None)
