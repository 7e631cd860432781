"""Tables, described once for every format: a view names the columns, a column makes a cell of a row.

Terminal, page, Markdown, LaTeX, the values of figures and frames of a notebook are made from them.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, Final, Generic, Never, Protocol, TypeVar

from rbpx.display.vocabulary import AXES, UNKNOWN, number, percent, short, size_name, spoken
from rbpx.laws.names import Axis
from rbpx.status import Status

Value = float | str | None
Row = TypeVar("Row", contravariant=True)
Of = Callable[[Row], float | None]
Written = Callable[[float | None], str]
_FAR = 1e3  # nats behind, from where decimals say nothing


class Bounded(Protocol):
    """A number with its 95 % interval; None if unknown."""

    @property
    def value(self) -> float | None:
        """The number."""

    @property
    def lo(self) -> float | None:
        """The lower end."""

    @property
    def hi(self) -> float | None:
        """The upper end."""


@dataclass(frozen=True)
class TableCell:
    """The contents of a table in one row and column.

    Attributes:
        texts: for people: one text, or the two ends of an interval; a dash if unknown.
        values: for programs: one for each key of the column; None if unknown.
        is_number: whether it is aligned to the right.
        doubts: the statuses in it that are not ok.
    """

    texts: tuple[str, ...]
    values: tuple[Value, ...]
    is_number: bool = True
    doubts: tuple[Status, ...] = ()

    @property
    def text(self) -> str:
        """Its text on a page."""
        return self.joined(" to ")

    def joined(self, between: str) -> str:
        """Returns its text, with `between` between the ends of an interval."""
        return UNKNOWN if set(self.texts) == {UNKNOWN} else between.join(self.texts)


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column over rows, which are records unless a function returns their values.

    Attributes:
        heading: for people; {x} stands for the symbol of the laws' axis, {c} for their constant.
        keys: names of its values for programs, and in records; {x} as in the heading.
        cell: makes the cell of a row.
        means: its meaning, for the note under the table; empty if the heading suffices.
        spare: 0 if it is always shown; a narrow terminal leaves out columns with larger numbers first.
        form: format of its number in a tooltip (d3); empty for texts.
        beside_S: whether the column exists only for laws that are not in S.
        folds: whether its texts may be long, so that a terminal folds them.
    """

    heading: str
    keys: tuple[str, ...]
    cell: Callable[[Row], TableCell]
    means: str = ""
    spare: int = 0
    form: str = ""
    beside_S: bool = False
    folds: bool = False

    def without_rows(self) -> "Column[Never]":
        """Returns the column of a table with finished cells, which can be sent to another process."""
        return Column(self.heading, self.keys, given, self.means, self.spare, self.form, self.beside_S, self.folds)


def given(row: Never) -> TableCell:
    """A placeholder for `cell` in a column whose cells exist already."""
    raise NotImplementedError


def value_of(row: Any, key: str) -> Any:
    """Returns a value of a record by its key, also from the params of a law."""
    return row[key] if key in row else (row.get("params") or {}).get(key)


def text(
    heading: str, key: str, of: Callable[[Row], str | None] | None = None, means: str = "", spare: int = 0
) -> Column[Row]:
    """Returns a column of names and words."""

    def cell(row: Row) -> TableCell:
        value = value_of(row, key) if of is None else of(row)
        return TableCell((UNKNOWN if value is None else str(value),), (value,), is_number=False)

    return Column(heading, (key,), cell, means, spare)


def _size(row: Any) -> TableCell:
    size = value_of(row, "size")
    return TableCell((UNKNOWN if size is None else size_name(size),), (size,), is_number=False)


SIZE: Final[Column[Any]] = Column("size", ("size",), _size)
"""The name of a size."""


def written(
    heading: str,
    key: str,
    of: Of[Row] | None = None,
    how: Written = number,
    means: str = "",
    spare: int = 0,
    form: str = ".4~g",
) -> Column[Row]:
    """Returns a column of numbers in the format `how`."""

    def cell(row: Row) -> TableCell:
        value = value_of(row, key) if of is None else of(row)
        return TableCell((how(value),), (value,))

    return Column(heading, (key,), cell, means, spare, form)


def decimal(
    heading: str, key: str, of: Of[Row] | None = None, digits: int = 4, means: str = "", spare: int = 0
) -> Column[Row]:
    """Returns a column of numbers with so many decimals."""
    return written(heading, key, of, lambda value: number(value, digits), means, spare, f".{digits}f")


def whole(heading: str, key: str, of: Of[Row] | None = None, means: str = "", spare: int = 0) -> Column[Row]:
    """Returns a column of counts, or of an imported S, which may be any positive number."""
    return written(heading, key, of, _whole, means, spare, ",")


def magnitude(heading: str, key: str, of: Of[Row] | None = None, means: str = "", spare: int = 0) -> Column[Row]:
    """Returns a column of numbers of any magnitude, in three digits."""
    return written(heading, key, of, short, means, spare, ".3~g")


def amount(heading: str, key: str, of: Of[Row] | None = None, means: str = "", spare: int = 0) -> Column[Row]:
    """Returns a column of parameters or tokens, as 41M or 3.5B."""
    return written(heading, key, of, partial(spoken, digits=3), means, spare, ".3~g")


def error(heading: str, key: str, of: Of[Row] | None = None, means: str = "", spare: int = 0) -> Column[Row]:
    """Returns a column of relative errors, in percent with their sign."""
    return written(heading, key, of, percent, means, spare, "+.2%")


def share(
    heading: str, key: str, of: Of[Row] | None = None, digits: int = 1, means: str = "", spare: int = 0
) -> Column[Row]:
    """Returns a column of parts of a whole, in percent without a sign."""

    def in_percent(value: float | None) -> str:
        return UNKNOWN if value is None else f"{value:.{digits}%}"

    return written(heading, key, of, in_percent, means, spare, f".{digits}%")


def ends(
    keys: str,
    of: Callable[[Row], tuple[float | None, float | None]] | None = None,
    how: Written = number,
    heading: str = "95 %",
    means: str = "",
    spare: int = 0,
) -> Column[Row]:
    """Returns a column of intervals, by the names of their two ends."""

    def cell(row: Row) -> TableCell:
        lo, hi = (value_of(row, key) for key in keys.split()) if of is None else of(row)
        return TableCell((how(lo), how(hi)), (lo, hi))

    return Column(heading, tuple(keys.split()), cell, means, spare, ".4~g")


def with_ends(
    heading: str,
    key: str,
    of: Callable[[Row], Bounded | None] | None = None,
    how: Written = number,
    means: str = "",
    spare: int = 0,
    ends_spare: int = 0,
) -> Sequence[Column[Row]]:
    """Returns columns of numbers and of their 95 % intervals, which may be spared alone; empty without a number.

    In a record they are KEY, KEY_lo and KEY_hi.
    """
    if of is None:
        pair = f"{key}_lo {key}_hi"
        return written(heading, key, None, how, means, spare), ends(pair, None, how, spare=ends_spare or spare)
    bounded_of = of

    def end(row: Row) -> tuple[float | None, float | None]:
        bounded = bounded_of(row)
        return (None, None) if bounded is None else (bounded.lo, bounded.hi)

    def value(row: Row) -> float | None:
        bounded = bounded_of(row)
        return None if bounded is None else bounded.value

    return (
        written(heading, key, value, how, means, spare),
        ends(f"{key}_lo {key}_hi", end, how, spare=ends_spare or spare),
    )


def behind(
    key: str, of: Callable[[Row], Bounded | None] | None = None, means: str = "", ends_spare: int = 0
) -> Sequence[Column[Row]]:
    """Returns columns of the loss relative to the best one, whose cell reads "best", with the 95 % interval."""
    value, _ = with_ends("behind", key, of, _behind, means)
    return value, with_ends("behind", key, of, ends_spare=ends_spare)[1]


def _behind(value: float | None) -> str:
    return "best" if value == 0 else number(value) if value is None or value < _FAR else short(value)


def state(of: Callable[[Row], Status | Sequence[Status]] | None = None) -> Column[Row]:
    """Returns the column of statuses, the first of several by its label; remedies stand below the table.

    Args:
        of: returns every status that holds; for a record, by default, its reasons or else its status.
    """

    def cell(row: Row) -> TableCell:
        found = _statuses(row) if of is None else of(row)
        statuses = (found,) if isinstance(found, Status) else tuple(found)
        doubts = tuple(status for status in statuses if status is not Status.ok)
        return TableCell((statuses[0].label,), (statuses[0].value,), is_number=False, doubts=doubts)

    return Column("status", ("status",), cell)


def _statuses(row: Any) -> list[Status]:
    reasons = value_of(row, "reasons") or [value_of(row, "status") or Status.ok]
    return [Status(each) for each in reasons]


def place(spare: int = 0, x_spare: int = 0) -> Sequence[Column[Row]]:
    """Returns the columns of S and, for laws in something else, of the position there, x in a record."""
    S: Column[Row] = whole("S", "non_embedding_params", spare=spare)
    x: Column[Row] = magnitude("{x}", "{x}", lambda row: value_of(row, "x"), spare=x_spare)
    return S, replace(x, beside_S=True)


def _whole(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"


Columns = Column[Row] | Sequence["Columns[Row]"]


@dataclass(frozen=True)
class Table:
    """Values with the texts that people read.

    Attributes:
        name: in plain characters, unique within its section; part of the names of files and anchors.
        title: what it shows.
        columns: make the cells of a row.
        rows: a cell for each column.
        note: a note besides the meanings of its columns.
        about: its group of runs; empty for several.
        is_wide: whether it is too wide for a terminal and for paper, so that only pages have it.
        brief: indices of the rows that a terminal shows without details; None for all.
        n_left_out: how many rows `briefly` left out.
    """

    name: str
    title: str
    columns: tuple[Column[Never], ...]
    rows: tuple[tuple[TableCell, ...], ...]
    note: str = ""
    about: str = ""
    is_wide: bool = False
    brief: tuple[int, ...] | None = None
    n_left_out: int = 0

    def briefly(self) -> "Table":
        """Returns the table of the rows that a terminal shows without details."""
        if self.brief is None:
            return self
        rows = tuple(self.rows[at] for at in self.brief)
        return replace(self, rows=rows, brief=None, n_left_out=len(self.rows) - len(rows))

    def notes(self, shown: Container[str] | None = None) -> list[str]:
        """Returns its notes: its own, then the meanings of its columns, or of those in `shown`."""
        meant = [column for column in self.columns if column.means and (shown is None or column.heading in shown)]
        return [*([self.note] if self.note else []), *(f"{each.heading}: {each.means}." for each in meant)]

    def without_empty(self) -> "Table":
        """Returns the table without empty spare columns."""
        told = (any({*row[at].texts} - {UNKNOWN, ""} for row in self.rows) for at in range(len(self.columns)))
        return self.only([at for at, is_told in enumerate(told) if is_told or not self.columns[at].spare])

    def only(self, kept: Sequence[int]) -> "Table":
        """Returns the table with some of its columns, by their indices."""
        rows = tuple(tuple(row[at] for at in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[at] for at in kept), rows=rows)

    def records(self) -> list[dict[str, Value]]:
        """Returns its values for programs, a record for each row."""
        keys = [key for column in self.columns for key in column.keys]
        return [dict(zip(keys, (v for cell in row for v in cell.values), strict=True)) for row in self.rows]

    def shown_doubts(self) -> set[Status]:
        """Returns the statuses that its cells show."""
        return {cell.doubts[0] for row in self.rows for cell in row if cell.doubts}

    def doubts(self) -> dict[Status, list[str]]:
        """Returns the statuses that are not ok, each with the names of the rows that have it."""
        found: dict[Status, list[str]] = {}
        for row in self.rows:
            named = [cell.text for cell in takewhile(lambda cell: not cell.is_number, row)]
            of = ", ".join(name for name in named if name != UNKNOWN)
            of = of or f"{self.columns[0].heading} = {row[0].text}"
            for status in dict.fromkeys(status for cell in row for status in cell.doubts):
                found.setdefault(status, []).append(of)
        return found


class View(Generic[Row]):
    """The columns of a table over rows of one kind; a number and its interval are nested in a sequence."""

    def __init__(self, name: str, *columns: "Columns[Row]") -> None:
        self.name, self.columns = name, columns

    def all_columns(self) -> list[Column[Row]]:
        """Returns its columns as one list."""
        return list(_one_by_one(self.columns))

    def table(
        self,
        title: str,
        rows: Iterable[Row],
        about: str = "",
        axis: Axis = Axis.S,
        note: str = "",
        brief: Callable[[Row], bool] | bool = True,
    ) -> Table:
        """Makes the table of some rows.

        `about` is the name of its group of runs, `axis` that of the laws, which headings name; `brief` says which rows
        a terminal shows without details: all, none, or those for which it is true.
        """
        rows = list(rows)
        columns = tuple(
            replace(
                column,
                heading=_named(column.heading, axis),
                means=_named(column.means, axis),
                keys=tuple(_named(key, axis) for key in column.keys),
            )
            for column in self.all_columns()
            if axis is not Axis.S or not column.beside_S
        )
        cells = tuple(tuple(column.cell(row) for column in columns) for row in rows)
        some = tuple(at for at, row in enumerate(rows) if (brief(row) if callable(brief) else brief))
        heads = tuple(column.without_rows() for column in columns)
        return Table(self.name, title, heads, cells, note, about, brief=some if len(some) < len(rows) else None)


def _one_by_one(columns: "Columns[Row]") -> Iterator[Column[Row]]:
    if isinstance(columns, Column):
        yield columns
    else:
        for each in columns:
            yield from _one_by_one(each)


def _named(text: str, axis: Axis) -> str:
    """Replaces the placeholders for the symbols of an axis and of the laws' constant."""
    return text.replace("{x}", axis.value).replace("{c}", AXES[axis].constant)
