"""A table for a terminal: columns that a narrow one does without, and parts of rows that each have a heading."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.table import Column, Table

from rbpx.display.visible import visible

UNKNOWN: Final = "–"
_BETWEEN: Final = 2  # columns
_HEADING: Final = "heading"  # what the style of a part's first row carries beside its look


class Grid(Table):
    """A table whose columns are as wide as their longest cell in any of its parts.

    Attributes:
        line: the title, on a line of its own that may be longer than the table is wide.
        spare: columns, the most wanted first, that are shown only where there is room for them.
    """

    def __init__(self, line: str = "", spare: Sequence[str] = ()) -> None:
        """Without columns and rows."""
        super().__init__(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        self.line, self.spare = line, spare

    def add_part(self, heading: str, rows: Iterable[Sequence[str]]) -> None:
        """Add rows under a heading, which has a line of its own as the title has."""
        self.add_section()
        for at, row in enumerate(rows):
            self.add_row(*row, style=Style(meta={_HEADING: heading}) if at == 0 else None)


def parts(screen: Console, table: Grid) -> Iterator[tuple[str | None, list[Segment]]]:
    """The table as lines to print, part by part: its heading, None for rows without one, and its lines."""
    heading, lines, begins = None, list[Segment](), False
    for line in screen.render_lines(table, pad=False, new_lines=True):
        named = next((s.style.meta[_HEADING] for s in line if s.style is not None and _HEADING in s.style.meta), None)
        if named is not None and not begins:  # a first row may take several lines
            yield heading, lines
            heading, lines = named, []
        begins = named is not None
        lines += line
    yield heading, lines


def fitting(screen: Console, table: Grid) -> Grid:
    """The table with as many of its spare columns as fit, the most wanted first, and without empty ones.

    Raises:
        ValueError: a name in `spare` is not the heading of exactly one column.
    """
    times = Counter(column.header for column in table.columns)
    for name in table.spare:
        if times[name] != 1:
            raise ValueError(f"{name!r} is the heading of {times[name]} columns of {list(times)}")
    left_out = set(table.spare)
    spare = {column.header: column for column in table.columns if column.header in left_out}
    room = screen.width - _table_width(
        [_column_width(screen, column) for column in table.columns if column.header not in spare]
    )
    for name in table.spare:
        if set(spare[name].cells) <= {UNKNOWN, ""}:
            continue
        room -= _BETWEEN + _column_width(screen, spare[name])
        if room < 0:
            break
        left_out.remove(name)
    return _without(table, left_out)


def width(screen: Console, table: Table) -> int:
    """Characters that a grid needs, its foldable columns folded."""
    return _table_width([_column_width(screen, column) for column in table.columns])


def _table_width(widths: Sequence[int]) -> int:
    """A blank at both edges, two between columns."""
    return 2 + sum(widths) + _BETWEEN * (len(widths) - 1)


def _column_width(screen: Console, column: Column) -> int:
    """Characters of its longest cell; of one that folds, those that it needs at least."""
    widest = max(_cell_width(screen, cell) for cell in (column.header, *column.cells))
    if not column.no_wrap and column.min_width is not None:
        return column.min_width
    return min(max(widest, column.min_width or 0), column.max_width or widest)


def _cell_width(screen: Console, cell: RenderableType) -> int:
    """As rich measures it; a text of one line without marks, as nearly all are, in a tenth of the time."""
    if isinstance(cell, str) and not re.search(r"[\[\n\\]", cell):
        return cell_len(visible(cell))
    return screen.measure(cell).maximum


def _without(table: Grid, left_out: Set[str]) -> Grid:
    if not left_out:
        return table
    fewer = Grid(table.line)
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
