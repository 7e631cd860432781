"""Tables on a terminal: a grid of columns, printed whole with its notes, and the console that shows it."""

import sys
from collections.abc import Sequence
from io import StringIO
from typing import Any

from rich.console import Console
from rich.segment import Segments
from rich.text import Text

from rbpx.display.grid import Grid, fitting, only, parts, width
from rbpx.display.visible import visible, write_as_ascii_where_needed


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
