"""Tables on a terminal: a grid of columns, what of it a narrow terminal has room for, and the console that shows it."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any, Final

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from rbpx.display.visible import visible, write_as_ascii_where_needed

UNKNOWN: Final = "–"
_BETWEEN: Final = 2  # columns
_HEADING: Final = "heading"  # what the style of a part's first row carries beside its look


class Grid(Table):
    """A table whose columns are as wide as their longest cell in any of its parts.

    Attributes:
        line: the title, on a line of its own that may be longer than the table is wide.
        ranks: of each column 0 where it is always shown; else it is shown only where there is room for it and for all
            with smaller numbers.
    """

    def __init__(self, line: str = "", ranks: Sequence[int] = ()) -> None:
        """Without columns and rows."""
        super().__init__(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        self.line, self.ranks = line, ranks

    def add_rows(self, rows: Iterable[Sequence[str]]) -> None:
        """Add rows."""
        for row in rows:
            self.add_row(*row)

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


def fitting(screen: Console, table: Grid) -> list[int]:
    """The columns that fit: as many spare ones as there is room for, those of small ranks first, and no empty ones."""
    widths = [_column_width(screen, column) for column in table.columns]
    kept = [at for at in range(len(widths)) if at >= len(table.ranks) or not table.ranks[at]]
    room = screen.width - _table_width([widths[at] for at in kept])
    for rank in sorted(set(table.ranks) - {0}):
        of_rank = [at for at, each in enumerate(table.ranks) if each == rank]
        of_rank = [at for at in of_rank if not set(table.columns[at].cells) <= {UNKNOWN, ""}]
        room -= sum(_BETWEEN + widths[at] for at in of_rank)
        if room < 0:
            break
        kept += of_rank
    return sorted(kept)


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


def only(table: Grid, kept: Sequence[int]) -> Grid:
    """The table with some of its columns."""
    fewer = Grid(table.line)
    for column in (table.columns[at] for at in kept):
        fewer.add_column(
            column.header,
            justify=column.justify,
            no_wrap=column.no_wrap,
            overflow=column.overflow,
            min_width=column.min_width,
            max_width=column.max_width,
        )
    cells = [list(table.columns[at].cells) for at in kept]
    for at, row in enumerate(table.rows):
        fewer.add_row(*(column[at] for column in cells), end_section=row.end_section, style=row.style)
    return fewer


def grid(title: str, columns: Sequence[str], left: int = 1, spare: Sequence[str] = ()) -> Grid:
    """A table whose first `left` columns hold names and whose other columns hold numbers; nothing in it wraps.

    The columns named in `spare`, the most wanted first, are left out where the terminal is too narrow for them.
    """
    table = Grid(title, [spare.index(column) + 1 if column in spare else 0 for column in columns])
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < left else "right", no_wrap=True, overflow="fold")
    return table


def put(screen: Console, table: Grid) -> list[int]:
    """Print a table whole: a narrow terminal may wrap its lines, but no digit is lost; return the columns that it has.

    Its title and the headings of its parts stand on lines of their own, which may be longer than the table is wide.
    """
    if table.line:
        screen.print(table.line, style="bold", markup=False, soft_wrap=True)
    kept = fitting(screen, table)
    shown = only(table, kept)
    wide = Screen(highlight=False, emoji=False, width=max(screen.width, width(screen, shown)))
    for heading, lines in parts(wide, shown):
        if heading is not None:
            screen.print(f" {heading}", style="bold", markup=False, soft_wrap=True)
        wide.print(Segments(lines), end="")
    return kept


class Screen(Console):
    """A console on which no text can command the terminal: control and invisible characters are shown as escapes."""

    def render_str(self, text: str, **options: Any) -> Text:
        """A text with its control and invisible characters escaped."""
        return super().render_str(visible(text), **options)

    def on_broken_pipe(self) -> None:
        """Let `| head` close the pipe without a failure; rich would exit with 1."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output for people, in characters that its encoding has; plain text where a program captures it."""
    write_as_ascii_where_needed()
    captured = isinstance(sys.stdout, StringIO)  # in a notebook, rich would display it beside what is captured
    return Screen(highlight=False, emoji=False, force_jupyter=False if captured else None)
