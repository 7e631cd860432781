"""Prints texts and tables on a terminal."""

import sys
import textwrap
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import zip_longest
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from rbpx.display.screen import Screen
from rbpx.display.section import GRADES, MARKED, Passage, Piece, marked
from rbpx.display.table import Table, statuses_of
from rbpx.display.vocabulary import UNKNOWN, plain_signs, remedies
from rbpx.files.escapes import visible_line, write_as_ascii_where_needed
from rbpx.status import Status

WIDEST: Final = 100  # characters of a table without --details
_BETWEEN: Final = 2  # characters
_FOLDED: Final = (12, 60)  # least and greatest width, in characters, of a column of long texts


def total(widths: Iterable[int]) -> int:
    """The width of columns side by side."""
    return 1 - _BETWEEN + sum(width + _BETWEEN for width in widths)


def fitting(room: int, widths: Sequence[int], ranks: Sequence[int]) -> list[int]:
    """The columns that fit: all of rank 0, then by ascending rank."""
    kept = [at for at, rank in enumerate(ranks) if rank == 0]
    room -= total(widths[at] for at in kept) + 1
    for rank in sorted(set(ranks) - {0}):
        of_rank = [at for at, each in enumerate(ranks) if each == rank]
        room -= sum(_BETWEEN + widths[at] for at in of_rank)
        if room < 0:
            break
        kept += of_rank
    return sorted(kept)


def row_of(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], yellow: Sequence[bool] = ()) -> Text:
    """Renders a row of a table, of several lines if a text is too wide."""
    folded = [
        textwrap.wrap(cell, wide) if cell_len(cell) > wide else [cell] for cell, wide in zip(cells, widths, strict=True)
    ]
    row = Text()
    for line in zip_longest(*folded, fillvalue=""):
        row.append("\n " if row else " ")
        for at, (cell, wide) in enumerate(zip(line, widths, strict=True)):
            blank = " " * (wide - cell_len(cell))
            row.append(" " * _BETWEEN if at else "")
            row.append(blank + cell if right[at] else cell + blank, "yellow" if yellow and yellow[at] else "")
    return row


def head_of(headings: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[Text]:
    """Renders the headings, and the rule below."""
    return [Text(""), row_of(headings, widths, right), Text(" " + "─" * (total(widths) - 1))]


def console() -> Console:
    """A console on standard output; plain text if the output is captured."""
    write_as_ascii_where_needed()
    captured = isinstance(sys.stdout, StringIO)  # in a notebook, rich would display it beside what is captured
    return Screen(highlight=False, emoji=False, force_jupyter=False if captured else None)


# Light grounds under black letters, apart in lightness as well as in hue, so that they differ for colour-blind
# readers and on light and dark terminals; those beyond are bold too.
_STYLES: Final = ("", "black on #b7d7f2", "black on #f2d15c", "bold black on #e8823a")


def print_tables(screen: Console, tables: Iterable[Table], width: int | None = None) -> list[str]:
    """Prints tables, those of one name and the same columns as parts of one; returns notes on their columns.

    A narrow terminal may wrap their lines, but no digit is lost.
    """
    alike: dict[tuple[str, ...], list[Table]] = {}
    for table in tables:
        if table.rows and not table.is_wide:
            alike.setdefault((table.name, table.title, *(c.name for c in table.columns)), []).append(table)
    notes = []
    for together in alike.values():
        shown = {together[0].columns[at].name for at in _put(screen, together, width or screen.width)}
        notes += [note for table in together for note in table.notes(shown)]
        n, left = sum(len(table.rows) for table in together), sum(table.n_left_out for table in together)
        notes += [f"Shown: {n:,} of {n + left:,} rows."] if left else []
    return notes


def shown_columns(table: Table, width: int = WIDEST) -> list[int]:
    """The columns that a terminal of so many characters shows, as page and paper do."""
    return _layout([table], width)[0]


def _layout(tables: Sequence[Table], width: int) -> tuple[list[int], list[list[str]], list[int]]:
    """The columns that fit, the texts of names and of rows, and the widths."""
    columns, ranks = tables[0].columns, tables[0].ranks()
    every = [[column.text(row, "..") for column in columns] for table in tables for row in table.rows]
    texts = [[visible_line(plain_signs(text)) for text in of] for of in ([each.name for each in columns], *every)]
    widths = [max(map(cell_len, of)) for of in zip(*texts, strict=True)]
    told = [at for at, rank in enumerate(ranks) if not rank or {of[at] for of in texts[1:]} - {UNKNOWN, ""}]
    kept = [told[at] for at in fitting(width, [widths[at] for at in told], [ranks[at] for at in told])]
    return kept, texts, widths


def _folded(widths: Sequence[int], right: Sequence[bool], width: int) -> list[int]:
    """Narrower widths of columns of texts, the widest first, if all fit then."""
    folded = [wide if at_right else min(wide, _FOLDED[1]) for wide, at_right in zip(widths, right, strict=True)]
    while total(folded) >= width:
        widest = max((at for at, at_right in enumerate(right) if not at_right), key=folded.__getitem__, default=None)
        if widest is None or folded[widest] <= _FOLDED[0]:
            return list(widths)
        folded[widest] -= 1
    return folded


def _put(screen: Console, tables: Sequence[Table], width: int) -> list[int]:
    columns, every = tables[0].columns, [row for table in tables for row in table.rows]
    kept, (names, *texts), widest = _layout(tables, width)
    right = [columns[at].is_number for at in kept]
    widths = _folded([widest[at] for at in kept], right, width)
    about = f"{tables[0].about}: " if len(tables) == 1 and tables[0].about else ""
    lines = [Text(line, "bold") for line in [visible_line(plain_signs(about + tables[0].title))] if line]
    lines += head_of([names[at] for at in kept], widths, right)
    rows = iter(zip(every, texts, strict=True))
    for table in tables:
        lines += [Text(f" {visible_line(table.about)}", "bold")] if len(tables) > 1 else []
        for row, told in (next(rows) for _ in table.rows):
            doubted = {*statuses_of(row)} - {Status.ok}
            yellow = [bool(doubted) and columns[at].tells_status for at in kept]
            lines.append(row_of([told[at] for at in kept], widths, right, yellow))
        lines.append(Text(""))
    screen.print(Text("\n").join(lines), soft_wrap=True)
    return kept


def print_passages(screen: Console, passages: Sequence[Passage]) -> None:
    """Prints texts with each token in the colour of its rank, or marked."""
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


def print_under(
    screen: Console, texts: Iterable[str], statuses: Iterable[Status] = (), notes: Iterable[str] = ()
) -> None:
    """Prints sentences and meanings of columns, remedies, and notes, a line each."""
    for text in dict.fromkeys(map(plain_signs, texts)):
        screen.print(escape(visible_line(text)), soft_wrap=True)
    for text in remedies(statuses):
        screen.print(text, soft_wrap=True)
    for text in dict.fromkeys(map(plain_signs, notes)):
        screen.print(visible_line(text), markup=False, soft_wrap=True)


def _styled(piece: Piece) -> list[tuple[str, str]]:
    body = piece.text.rstrip("\n")
    lines = piece.text[len(body) :]
    style = "dim" if piece.grade is None else _STYLES[piece.grade]
    return [(body + ("⏎" if lines and piece.grade else ""), style), (lines, "")]
