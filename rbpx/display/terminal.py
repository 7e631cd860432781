"""Texts and tables on a terminal, tables of one name as parts of one; then what is to be said under them."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from rbpx.display.column import Cell
from rbpx.display.section import GRADES, MARKED, Passage, Piece, marked
from rbpx.display.tables import Grid, put
from rbpx.display.view import Table
from rbpx.display.vocabulary import plain_signs, remedies
from rbpx.status import Status

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
    coloured = screen.color_system is not None
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


def _styled(piece: Piece) -> list[tuple[str, str]]:
    """A token with its style; lines end after its colour."""
    body = piece.text.rstrip("\n")
    lines = piece.text[len(body) :]
    style = "dim" if piece.grade is None else _STYLES[piece.grade]
    return [(body + ("⏎" if lines and piece.grade else ""), style), (lines, "")]
