"""Tables over rows: a view names the columns, once for all formats; a table is a view of some rows."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Generic, Never, TypeVar

from rbpx.display.column import Cell, Column, Value
from rbpx.display.numbers import UNKNOWN
from rbpx.display.vocabulary import AXES
from rbpx.laws.names import Axis
from rbpx.status import Status

__all__ = ["Table", "View"]

Row = TypeVar("Row")
Columns = Column[Row] | Sequence["Columns[Row]"]


@dataclass(frozen=True)
class Table:
    """Values with the texts that people read.

    Attributes:
        name: in plain characters, unique within its section; part of the names of files and anchors.
        title: what it shows.
        columns: what stands in each cell of a row.
        rows: a cell for each column.
        note: what stands under it beside the meanings of its columns.
        about: the group of runs that it is about; empty for several.
        is_wide: whether its texts are too long for a terminal and for paper, so that only pages have it.
    """

    name: str
    title: str
    columns: tuple[Column[Never], ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    about: str = ""
    is_wide: bool = False

    def notes(self, shown: Container[str] | None = None) -> list[str]:
        """What is said under it: what it is, then what its columns mean, or those of some headings."""
        meant = [column for column in self.columns if column.means and (shown is None or column.heading in shown)]
        return [*([self.note] if self.note else []), *(f"{each.heading}: {each.means}." for each in meant)]

    def without_empty(self) -> "Table":
        """The table without spare columns that tell nothing, as a terminal shows none."""
        spare = [at for at, column in enumerate(self.columns) if column.spare]
        return self._without({at for at in spare if all(set(row[at].texts) <= {UNKNOWN, ""} for row in self.rows)})

    def narrowed(self, most: int) -> "Table":
        """The table without the columns that are spared before those of a rank, for a page of paper."""
        return self._without({at for at, column in enumerate(self.columns) if column.spare > most})

    def _without(self, columns: Container[int]) -> "Table":
        kept = [at for at in range(len(self.columns)) if at not in columns]
        rows = tuple(tuple(row[at] for at in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[at] for at in kept), rows=rows)

    def records(self) -> list[dict[str, Value]]:
        """Its values for programs, a record for each row."""
        keys = [key for column in self.columns for key in column.keys]
        return [dict(zip(keys, (v for cell in row for v in cell.values), strict=True)) for row in self.rows]

    def doubts(self) -> dict[Status, list[str]]:
        """The statuses in it that are not ok, each with the names of the rows that have it."""
        found: dict[Status, list[str]] = {}
        for row in self.rows:
            of = ", ".join(cell.text for cell in takewhile(lambda cell: not cell.is_number, row))
            of = of or f"{self.columns[0].heading} = {row[0].text}"
            for status in dict.fromkeys(status for cell in row for status in cell.doubts):
                found.setdefault(status, []).append(of)
        return found


class View(Generic[Row]):
    """The columns of a table over rows of one kind; those of a number and its interval stand together in a sequence."""

    def __init__(self, name: str, *columns: "Columns[Row]") -> None:
        self.name, self.columns = name, columns

    def all_columns(self) -> list[Column[Row]]:
        """Its columns, one by one."""
        return list(_one_by_one(self.columns))

    def table(self, title: str, rows: Iterable[Row], about: str = "", axis: Axis = Axis.S, note: str = "") -> Table:
        """The table of some rows.

        Args:
            title: what it shows.
            rows: what its columns are of.
            about: the name of the group of runs that it is about.
            axis: what laws are in, which headings name.
            note: what stands under it beside the meanings of its columns.
        """
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
        return Table(self.name, title, tuple(column.without_rows() for column in columns), cells, note, about)


def _one_by_one(columns: "Columns[Row]") -> Iterator[Column[Row]]:
    if isinstance(columns, Column):
        yield columns
    else:
        for each in columns:
            yield from _one_by_one(each)


def _named(text: str, axis: Axis) -> str:
    """A text with the signs of an axis and of the constant of its laws."""
    return text.replace("{x}", axis.value).replace("{c}", AXES[axis].constant)
