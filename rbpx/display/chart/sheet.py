"""A table before layout: values with the texts that people read, for a page, Markdown, LaTeX and CSV."""

from collections.abc import Sequence
from dataclasses import dataclass

from rbpx.display.numbers import UNKNOWN, number, percent, short
from rbpx.laws.names import Axis
from rbpx.status import Status

__all__ = [
    "Entry",
    "Sheet",
    "decimal",
    "error",
    "ids",
    "magnitude",
    "magnitudes",
    "named",
    "place",
    "place_column",
    "span",
    "state",
    "whole",
]

Value = float | str | None


@dataclass(frozen=True)
class Entry:
    """What a sheet says in one row and column.

    Attributes:
        text: as people read it; a dash where unknown.
        values: the raw values, one for each name of its column; None where unknown.
        is_number: whether it is aligned to the right.
        doubt: the remedy, where it is a status other than ok.
    """

    text: str
    values: tuple[Value, ...]
    is_number: bool = True
    doubt: str | None = None


@dataclass(frozen=True)
class Sheet:
    """One table.

    Attributes:
        name: in plain characters, unique within its section; part of the names of CSV files.
        title: what it shows.
        columns: headings, each with the names of its values in a CSV file.
        rows: an entry for each column.
        note: what its columns mean.
    """

    name: str
    title: str
    columns: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[tuple[Entry, ...], ...]
    note: str = ""

    @classmethod
    def of(
        cls, name: str, title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Entry]], note: str = ""
    ) -> "Sheet":
        """A table whose columns are given as (heading, names separated by blanks)."""
        headed = tuple((heading, tuple(names.split())) for heading, names in columns)
        return cls(name, title, headed, tuple(map(tuple, rows)), note)


def named(text: str | None) -> Entry:
    """A name."""
    return Entry(UNKNOWN if text is None else text, (text,), is_number=False)


def decimal(value: float | None, digits: int = 4) -> Entry:
    """A number with so many decimals."""
    return Entry(number(value, digits), (value,))


def magnitude(value: float | None) -> Entry:
    """A number of any magnitude."""
    return Entry(short(value), (value,))


def whole(value: float | None) -> Entry:
    """A count, or an imported S, which may be any positive number."""
    return Entry(UNKNOWN if value is None else f"{value:,}", (value,))


def place(axis: Axis, x: float | None) -> Entry:
    """Where a run lies on what laws are in."""
    return whole(x) if axis is Axis.S else magnitude(x)


def place_column(axis: Axis) -> tuple[str, str]:
    """The heading of such places, and their name for programs."""
    return axis.value, "non_embedding_params" if axis is Axis.S else axis.value


def error(value: float | None) -> Entry:
    """A relative error."""
    return Entry(percent(value), (value,))


def span(lo: float | None, hi: float | None, digits: int = 4) -> Entry:
    """An interval, with a dash for an unknown end."""
    if lo is None and hi is None:
        return Entry(UNKNOWN, (None, None))
    return Entry(f"{number(lo, digits)} to {number(hi, digits)}", (lo, hi))


def magnitudes(lo: float | None, hi: float | None) -> Entry:
    """An interval of any magnitude, with a dash for an unknown end."""
    if lo is None and hi is None:
        return Entry(UNKNOWN, (None, None))
    return Entry(f"{short(lo)} to {short(hi)}", (lo, hi))


def state(status: Status) -> Entry:
    """A status, with its remedy unless it is ok."""
    doubt = None if status is Status.ok else status.remedy
    return Entry(status.label, (status.value,), is_number=False, doubt=doubt)


def ids(run_ids: Sequence[str]) -> Entry:
    """Ids of runs."""
    return Entry(" ".join(run_ids), (" ".join(run_ids),), is_number=False)
