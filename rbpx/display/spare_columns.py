"""Columns that a narrow terminal does without: a table with spare columns in, the table with those that fit out."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

UNKNOWN: Final = "–"


class Grid(Table):
    """A table whose `spare` columns, the most wanted first, are shown only where there is room for them."""

    spare: Sequence[str] = ()


def fitting(screen: Console, table: Grid) -> Table:
    """The table with as many of its spare columns as fit, counted from the most wanted one; none that tells nothing.

    Raises:
        ValueError: a spare column is none of the table's, or its heading is not its own.
    """
    headings = [column.header for column in table.columns]
    for name in table.spare:
        if headings.count(name) != 1:
            raise ValueError(f"{name!r} is the heading of {headings.count(name)} columns of {headings}")
    empty = [column.header for column in table.columns if set(column.cells) <= {UNKNOWN, ""}]
    for n in range(len(table.spare), 0, -1):
        shown = _without(table, [*table.spare[n:], *(name for name in table.spare[:n] if name in empty)])
        if width(screen, shown) <= screen.width:
            return shown
    return _without(table, table.spare)


def width(screen: Console, table: Table) -> int:
    """Characters that a table needs, its foldable columns folded."""
    full = table.__rich_measure__(screen, screen.options.update(width=1000)).maximum
    slack = 0
    for column in table.columns:
        if not column.no_wrap and column.min_width is not None:
            widest = max((screen.measure(cell).maximum for cell in column.cells), default=0)
            slack += max(0, min(widest, column.max_width or widest) - column.min_width)
    return full - slack


def _without(table: Table, left_out: Sequence[str]) -> Table:
    if not left_out:
        return table
    fewer = Table(title=table.title, box=table.box, title_justify=table.title_justify, title_style=table.title_style)
    fewer.padding, fewer.pad_edge = table.padding, table.pad_edge
    kept = [column for column in table.columns if column.header not in left_out]
    for column in kept:
        fewer.add_column(
            column.header,
            justify=column.justify,
            no_wrap=column.no_wrap,
            overflow=column.overflow,
            min_width=column.min_width,
            max_width=column.max_width,
        )
    cells = [list(column.cells) for column in kept]
    for at, row in enumerate(table.rows):
        fewer.add_row(*(column[at] for column in cells), end_section=row.end_section, style=row.style)
    return fewer
