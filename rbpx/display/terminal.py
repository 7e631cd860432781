"""Tables on a terminal: those of one name under each other, as parts of one; then what is to be said under them."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape

from rbpx.display.column import Cell
from rbpx.display.grid import Grid
from rbpx.display.names import remedies
from rbpx.display.tables import put
from rbpx.display.view import Table
from rbpx.display.vocabulary import plain_signs
from rbpx.status import Status

__all__ = ["print_tables", "print_under"]


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
        grid.add_column(heading, justify="right" if is_number else "left", no_wrap=True, overflow="fold")
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
