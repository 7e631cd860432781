"""Tables whose columns are not described yet: rows of cells in, a table out."""

from collections.abc import Sequence
from typing import Never

from rbpx.display.column import Cell, Column, given
from rbpx.display.numbers import UNKNOWN, number, percent, short
from rbpx.display.view import Table
from rbpx.laws.names import Axis
from rbpx.status import Status

__all__ = [
    "Cell",
    "Sheet",
    "decimal",
    "entry",
    "error",
    "headed_by",
    "ids",
    "magnitude",
    "magnitudes",
    "named",
    "place",
    "place_column",
    "sheet_of",
    "span",
    "state",
    "whole",
]

Value = float | str | None
Sheet = Table  # until all views are described


def entry(text: str, values: tuple[Value, ...], is_number: bool = True) -> Cell:
    """A cell."""
    return Cell((text,), values, is_number)


def headed_by(heading: str, names: Sequence[str]) -> Column[Never]:
    """A column whose cells are given."""
    return Column(heading, tuple(names), given)


def sheet_of(
    name: str, title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Cell]], note: str = ""
) -> Table:
    """A table whose columns are given as (heading, names separated by blanks)."""
    headed = tuple(headed_by(heading, names.split()) for heading, names in columns)
    return Table(name, title, headed, tuple(map(tuple, rows)), note)


def named(text: str | None) -> Cell:
    """A name."""
    return Cell((UNKNOWN if text is None else text,), (text,), is_number=False)


def decimal(value: float | None, digits: int = 4) -> Cell:
    """A number with so many decimals."""
    return Cell((number(value, digits),), (value,))


def magnitude(value: float | None) -> Cell:
    """A number of any magnitude."""
    return Cell((short(value),), (value,))


def whole(value: float | None) -> Cell:
    """A count, or an imported S, which may be any positive number."""
    return Cell((UNKNOWN if value is None else f"{value:,}",), (value,))


def place(axis: Axis, x: float | None) -> Cell:
    """Where a run lies on what laws are in."""
    return whole(x) if axis is Axis.S else magnitude(x)


def place_column(axis: Axis) -> tuple[str, str]:
    """The heading of such places, and their name for programs."""
    return axis.value, "non_embedding_params" if axis is Axis.S else axis.value


def error(value: float | None) -> Cell:
    """A relative error."""
    return Cell((percent(value),), (value,))


def span(lo: float | None, hi: float | None, digits: int = 4) -> Cell:
    """An interval, with a dash for an unknown end."""
    return Cell((number(lo, digits), number(hi, digits)), (lo, hi))


def magnitudes(lo: float | None, hi: float | None) -> Cell:
    """An interval of any magnitude, with a dash for an unknown end."""
    return Cell((short(lo), short(hi)), (lo, hi))


def state(status: Status) -> Cell:
    """A status."""
    return Cell((status.label,), (status.value,), False, () if status is Status.ok else (status,))


def ids(run_ids: Sequence[str]) -> Cell:
    """Ids of runs."""
    return Cell((" ".join(run_ids),), (" ".join(run_ids),), is_number=False)
