"""Prints texts and tables on a terminal: spare columns go where it is narrow, tables of one name become one."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any, Final

from rich import box
from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console, JustifyMethod, RenderableType
from rich.markup import escape
from rich.segment import Segment, Segments
from rich.style import Style
from rich.text import Text

from rbpx.display.section import GRADES, MARKED, Passage, Piece, marked
from rbpx.display.view import Cell, Table
from rbpx.display.vocabulary import UNKNOWN, plain_signs, remedies
from rbpx.files.visible import visible, write_as_ascii_where_needed
from rbpx.status import Status

_BETWEEN: Final = 2  # columns
_FOLDED: Final = (12, 60)  # characters, at least and at most, of a column whose texts fold
_HEADING: Final = "heading"  # what the style of a part's first row carries beside its look


class Grid(rich_table.Table):
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


def width(screen: Console, table: rich_table.Table) -> int:
    """Characters that a grid needs, its foldable columns folded."""
    return _table_width([_column_width(screen, column) for column in table.columns])


def _table_width(widths: Sequence[int]) -> int:
    """A blank at both edges, two between columns."""
    return 2 + sum(widths) + _BETWEEN * (len(widths) - 1)


def _column_width(screen: Console, column: rich_table.Column) -> int:
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


# Light grounds under black letters, apart in lightness as well as in hue, so that they differ for every kind of eye and
# on light and dark terminals; those beyond are bold too.
_STYLES: Final = ("", "black on #b7d7f2", "black on #f2d15c", "bold black on #e8823a")


def print_tables(screen: Console, tables: Iterable[Table]) -> list[str]:
    """Print tables; those of one name and the same columns, which are about several groups, as parts of one.

    Returns:
        What is to be said under them of the columns that had room.
    """
    alike: dict[tuple[str, ...], list[Table]] = {}
    for table in tables:
        if table.rows and not table.is_wide:
            alike.setdefault((table.name, table.title, *(c.heading for c in table.columns)), []).append(table)
    notes = []
    for together in alike.values():
        shown = {together[0].columns[at].heading for at in put(screen, _grid(together))}
        notes += [note for table in together for note in table.notes(shown)]
    return notes


def print_passages(screen: Console, passages: Sequence[Passage]) -> None:
    """Print texts with each token in the colour of its rank, or marked where there are no colours."""
    coloured = screen.color_system is not None and not screen.no_color
    for passage in passages:
        for reading in passage.readings:
            heading = f"{passage.title}, {reading.model}: {reading.about}. {passage.rule}"
            screen.print(heading, style="bold", markup=False, soft_wrap=True)
            styled = (part for piece in reading.pieces for part in (_styled(piece) if coloured else [marked(piece)]))
            written = Text.assemble(*styled)
            screen.print(written, soft_wrap=not coloured)
            screen.print()
    if passages and coloured:
        legend = (part for name, style in zip(GRADES, _STYLES, strict=True) for part in ((f" {name} ", style), " "))
        screen.print(Text.assemble("Ranks: ", *legend, "\n"))
    elif passages:
        screen.print(f"{MARKED}\n")


def print_under(screen: Console, texts: Iterable[str], statuses: Iterable[Status], notes: Iterable[str]) -> None:
    """Print what was found in words and what columns mean, what to do about each status, and notes, a line each."""
    for text in dict.fromkeys(map(plain_signs, texts)):
        screen.print(escape(text), soft_wrap=True)
    for text in remedies(statuses):
        screen.print(text, soft_wrap=True)
    for text in dict.fromkeys(notes):
        screen.print(text, markup=False, soft_wrap=True)


def _grid(tables: Sequence[Table]) -> Grid:
    first = tables[0]
    about = f"{first.about}: " if len(tables) == 1 and first.about else ""
    grid = Grid(plain_signs(f"{about}{first.title}"), ranks=[column.spare for column in first.columns])
    for at, column in enumerate(first.columns):
        is_number = any(row[at].is_number for table in tables for row in table.rows)
        heading = escape(plain_signs(column.heading))
        justify: JustifyMethod = "right" if is_number else "left"
        grid.add_column(heading, justify=justify, no_wrap=not column.folds, overflow="fold")
        if column.folds:
            grid.columns[at].min_width, grid.columns[at].max_width = _FOLDED
    for table in tables:
        rows = [[_text(cell) for cell in row] for row in table.rows]
        if len(tables) > 1:
            grid.add_part(table.about, rows)
        else:
            grid.add_rows(rows)
    return grid


def _text(cell: Cell) -> str:
    text = escape(plain_signs(cell.joined("..")))
    return f"[yellow]{text}[/yellow]" if cell.doubts else text


def _styled(piece: Piece) -> list[tuple[str, str]]:
    """A token with its style; lines end after its colour."""
    body = piece.text.rstrip("\n")
    lines = piece.text[len(body) :]
    style = "dim" if piece.grade is None else _STYLES[piece.grade]
    return [(body + ("⏎" if lines and piece.grade else ""), style), (lines, "")]
