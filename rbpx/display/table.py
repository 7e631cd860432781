"""Tables, described once for every format: columns, and records under them."""

import math
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final, NamedTuple

from rbpx.display.vocabulary import AXES, UNKNOWN, number, short, size_name, told_apart, whole, with_interval
from rbpx.laws.names import Axis
from rbpx.status import Status

Row = dict[str, Any]
Format = Callable[[Any], str] | str


def statuses_of(row: Row) -> list[Status]:
    """Every status that a record has: its reasons, or else its status."""
    return [Status(each) for each in row.get("reasons") or [row.get("status") or Status.ok]]


def label(status: str) -> str:
    """A status in words."""
    return Status(status).label


class Column(NamedTuple):
    """A column.

    Attributes:
        name: for people; {x} stands for the symbol of the laws' axis, {c} for their constant.
        key: of its value in a record; two keys of numbers are the ends of an interval; of others the first is that of
            its text, and programs read those behind it.
        format: makes a text of a value, or a format specification such as .3f.
        meaning: for the note under the table.
    """

    name: str
    key: str
    format: Format = str
    meaning: str = ""

    @property
    def keys(self) -> list[str]:
        """The keys of its values for programs."""
        first, *others = self.key.split()
        return [first, *others] if self.is_interval else others or [first]

    @property
    def is_number(self) -> bool:
        """Whether it stands to the right: its format is none of text."""
        return self.format not in (str, size_name, label)

    @property
    def tells_status(self) -> bool:
        """Whether a record's status is told in it."""
        return "status" in self.keys

    @property
    def is_interval(self) -> bool:
        """Whether it has two ends."""
        return self.is_number and self.key.count(" ") == 1

    def values(self, row: Row) -> list[Any]:
        """Its values for programs; None if unknown."""
        return [statuses_of(row)[0].value] if self.format is label else [*map(row.get, self.keys)]

    def text(self, row: Row, between: str = " to ") -> str:
        """Its text, of an interval both ends; a dash if unknown."""
        key = self.key.split()[0]
        values = self.values(row) if self.is_interval or self.format is label else [row.get(key)]
        texts = [self._written(value) for value in values]
        if self.format is with_interval:
            stem = key.removesuffix("_lo")
            number, *ends = told_apart(*map(row.get, (stem, f"{stem}_lo", f"{stem}_hi")))
            texts = ends if self.is_interval else [number]
        return UNKNOWN if {*texts} == {UNKNOWN} else between.join(texts)

    def _written(self, value: Any) -> str:
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return UNKNOWN
        return f"{value:{self.format}}" if isinstance(self.format, str) else self.format(value)

    def along(self, axis: Axis) -> "Column":
        """The column for laws along an axis."""
        return self._replace(**{field: along(getattr(self, field), axis) for field in ("name", "key", "meaning")})


Described = tuple[str, str] | tuple[str, str, Format] | tuple[str, str, Format, str]

STATUS: Final = Column("status", "status", label)
"""The first status of a record; remedies stand below the table."""
SIZE: Final = Column("size", "size", size_name)
PLACE: Final = (Column("S", "non_embedding_params", whole), Column("{x}", "{x}", short))
"""S and, for laws in something else, the position there."""


def interval(name: str, key: str, format: Format = number, meaning: str = "") -> tuple[Column, Column]:
    """The columns of a number and of its 95 % interval: KEY, KEY_lo and KEY_hi."""
    return Column(name, key, format, meaning), Column("95 %", f"{key}_lo {key}_hi", format)


def along(text: str, axis: Axis) -> str:
    """Replaces the placeholders of an axis."""
    return text.replace("{x}", axis.value).replace("{c}", AXES[axis].constant)


@dataclass(frozen=True)
class Table:
    """Records under columns; `table_of` makes one without records.

    Attributes:
        name: unique within its section, and part of the names of files and anchors.
        first: keys of the columns that are always shown, all if empty; then those of others, which a terminal without
            room keeps or leaves out together, and last those that are not named. An interval goes with its number
            unless its lower end is named.
        about: its group of runs; empty for several.
        is_wide: whether only pages have room for it.
        brief: indices of the rows that a terminal shows without details, None for all; `briefly` left out n_left_out.
    """

    name: str
    columns: tuple[Column, ...]
    first: tuple[str, ...] = ()
    title: str = ""
    rows: Sequence[Row] = ()
    note: str = ""
    about: str = ""
    is_wide: bool = False
    brief: tuple[int, ...] | None = None
    n_left_out: int = 0

    def of(
        self,
        title: str,
        rows: Iterable[Row],
        about: str = "",
        axis: Axis = Axis.S,
        note: str = "",
        brief: Sequence[bool] | bool = True,
    ) -> "Table":
        """The table of some rows; `brief` says which a terminal shows without details."""
        rows = list(rows)
        has_S = axis is Axis.S and PLACE[0] in self.columns
        columns = tuple(each.along(axis) for each in self.columns if not has_S or each.name != "{x}")
        is_shown = [brief] * len(rows) if isinstance(brief, bool) else brief
        some = tuple(at for at, (_, shown) in enumerate(zip(rows, is_shown, strict=True)) if shown)
        first = tuple(along(each, axis) for each in self.first)
        return Table(
            self.name, columns, first, title, rows, note, about, self.is_wide, some if len(some) < len(rows) else None
        )

    def briefly(self) -> "Table":
        """The table that a terminal shows without details."""
        if self.brief is None:
            return self
        rows = [self.rows[at] for at in self.brief]
        return replace(self, rows=rows, brief=None, n_left_out=len(self.rows) - len(rows))

    def ranks(self) -> list[int]:
        """For each column 0 if it is always shown; larger ones are left out first."""
        of = {key: rank for rank, keys in enumerate(self.first) for key in keys.split()}
        keys = [column.key.split()[0] for column in self.columns]
        return [of.get(key, of.get(key.removesuffix("_lo"), len(self.first))) for key in keys]

    def notes(self, shown: Container[str] | None = None) -> list[str]:
        """Its note, and the meanings of its columns, or of those in `shown`."""
        meant = [each for each in self.columns if each.meaning and (shown is None or each.name in shown)]
        return [*([self.note] if self.note else []), *(f"{each.name}: {each.meaning}." for each in meant)]

    def without_empty(self) -> "Table":
        """The table without empty columns, but for those that are always shown."""
        told = [rank == 0 or any(map(self._tells(at), self.rows)) for at, rank in enumerate(self.ranks())]
        return self.only([at for at, is_told in enumerate(told) if is_told])

    def _tells(self, at: int) -> Callable[[Row], bool]:
        return lambda row: self.columns[at].text(row) not in (UNKNOWN, "")

    def only(self, kept: Sequence[int]) -> "Table":
        """The table with some of its columns."""
        return replace(self, columns=tuple(self.columns[at] for at in kept))

    def records(self) -> list[dict[str, Any]]:
        """Its values for programs, a record for each row."""
        return [
            {key: of for each in self.columns for key, of in zip(each.keys, each.values(row), strict=True)}
            for row in self.rows
        ]

    def shown_doubts(self) -> set[Status]:
        """The statuses other than ok that its rows show."""
        return {statuses_of(row)[0] for row in self.rows if self._tells_status} - {Status.ok}

    @property
    def _tells_status(self) -> bool:
        return any(each.tells_status for each in self.columns)

    def doubts(self) -> dict[Status, list[str]]:
        """These statuses, each with the names of the rows that have it."""
        found: dict[Status, list[str]] = {}
        names = [*takewhile(lambda column: not column.is_number, self.columns)]
        told = [", ".join(text for each in names if (text := each.text(row)) != UNKNOWN) for row in self.rows]
        for row, of in zip(self.rows, told, strict=True) if self._tells_status else ():
            if told.count(of) > 1 or not of:  # its first number tells it from others of its name
                known = [each for each in self.columns[len(names) :] if of and each.text(row) != UNKNOWN]
                at = (known or self.columns)[0]
                of = ", ".join([*filter(None, [of]), f"{at.name} = {at.text(row)}"])
            for status in dict.fromkeys(statuses_of(row)):
                if status is not Status.ok:
                    found.setdefault(status, []).append(of)
        return found


def table_of(name: str, *columns: Described, first: str = "", is_wide: bool = False) -> Table:
    """A table without records; commas separate keys that `first` keeps together."""
    groups = tuple(filter(None, first.split(", ")))
    return Table(name, tuple(Column(*each) for each in columns), groups, is_wide=is_wide)
