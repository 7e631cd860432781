"""Rows in, tables out: for people on a terminal, as CSV or JSON for programs."""

import csv
import json
import math
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from io import TextIOWrapper
from typing import Any, TextIO

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.segment import Segments
from rich.table import Table
from rich.text import Text

from rbpx.config.options import Format
from rbpx.display.grid import UNKNOWN as UNKNOWN  # what nothing is known of, for whoever makes a table
from rbpx.display.grid import Grid, fitting, parts, width
from rbpx.display.visible import AS_ASCII, visible, visible_line
from rbpx.files.output import Lines, listed, opened, plain, write_csv, write_json, write_parquet
from rbpx.laws.quantity import quantity
from rbpx.status import Status

LAW_NAMES = {
    "rbp": "-ln RBP_",
    "cross_entropy": "cross-entropy",
    "lognormal_rbp1": "lognormal RBP_1",
    "lognormal_cross_entropy": "lognormal CE",
    "error_entropy": "error-entropy",
    "self_alignment": "self-alignment",
    "confidence": "confidence",
}
_ROWS_SHOWN = 40


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many decimals, or a dash where it is unknown."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def short(value: float | None) -> str:
    """A number of any magnitude in three digits, or a dash."""
    return _rounded(value, 3)


def rough(value: float | None) -> str:
    """A number of any magnitude in two digits, or a dash."""
    return _rounded(value, 2)


def _rounded(value: float | None, digits: int) -> str:
    """Up to a million written out, with zeros where its digits end."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    said = f"{value:.{digits}g}"
    return f"{float(said):,.0f}" if 10 ** (digits - 1) <= abs(float(said)) < 1e6 else said


def span(lo: float | None, hi: float | None, digits: int = 4) -> str:
    """An interval; a dash where an end is unknown, one dash where both are."""
    return UNKNOWN if lo is None and hi is None else f"{number(lo, digits)}..{number(hi, digits)}"


def percent(value: float | None) -> str:
    """A relative error with its sign."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:+.1%}" if abs(value) < 10 else f"{value:+.0e}"


def time(seconds: float | None) -> str:
    """A time in its two largest units; from a hundred days on in days."""
    if seconds is None:
        return UNKNOWN
    if seconds < 60:
        return f"{seconds:.0f}s" if seconds >= 1 else f"{seconds:.1f}s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes}m"
    hours = round(seconds / 3600)
    if hours < 48:
        return f"{minutes // 60}h{minutes % 60:02}m"
    return f"{hours // 24}d{hours % 24:02}h" if hours < 2400 else f"{hours // 24:,}d"


def law_name(law: str, k: int | None) -> str:
    """As people call a law."""
    own = quantity(law)
    return f"{LAW_NAMES[law] if own is None else own.label}{'' if k is None else k}"


def status_name(status: Status) -> str:
    """A status in few characters, yellow where it is a doubt."""
    text = {"power_law_limit": "limit", "beyond_vocabulary": "beyond V"}.get(status.value, status.value)
    return text.replace("_", " ") if status is Status.ok else f"[yellow]{text.replace('_', ' ')}[/yellow]"


def remedies(doubts: Iterable[Status]) -> list[str]:
    """A line for each doubt: what to do about it."""
    return [f"{status_name(doubt)}: {doubt.remedy}" for doubt in sorted(set(doubts) - {Status.ok})]


def grid(title: str, columns: Sequence[str], left: int = 1, spare: Sequence[str] = ()) -> Grid:
    """A table of which the first `left` columns hold names; two spaces stand between columns. Nothing wraps.

    The columns named in `spare`, the most wanted first, are left out where the terminal is too narrow for them.
    """
    table = Grid(title, spare)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < left else "right", no_wrap=True, overflow="fold")
    return table


def put(screen: Console, table: Grid) -> None:
    """Print a table whole: a narrow terminal may wrap its lines, but no digit is lost.

    Its title and the headings of its sections stand on lines of their own, which may be longer than the table is wide.
    """
    if table.line:
        screen.print(table.line, style="bold", markup=False, soft_wrap=True)
    shown = fitting(screen, table)
    wide = Screen(highlight=False, emoji=False, width=max(screen.width, width(screen, shown)))
    for heading, lines in parts(wide, shown):
        if heading is not None:
            screen.print(f" {heading}", style="bold", markup=False, soft_wrap=True)
        wide.print(Segments(lines), end="")


class Screen(Console):
    """A console on which no text commands the terminal: what steers it, or nobody sees, is shown as an escape."""

    def render_str(self, text: str, **options: Any) -> Text:
        """A text as it is shown."""
        return super().render_str(visible(text), **options)

    def on_broken_pipe(self) -> None:
        """`| head` has seen enough: no failure, where rich would exit with 1."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output as people look at it, in signs that its encoding has."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=AS_ASCII)
    return Screen(highlight=False, emoji=False)


# --------------------------------------------------------------------------------------------- any table, any format


def print_records(records: Iterable[dict[str, Any]], format: Format, output: str | None = None) -> None:
    """Print records as a JSON array of objects, null for missing, or as CSV, empty for missing."""
    rows = [{key: plain(value) for key, value in record.items()} for record in records]
    with opened(output) as file:
        if format is Format.json:
            json.dump(rows, file, indent=1, default=str)
            file.write("\n")
        else:
            _write_csv(rows, file)


def _write_csv(rows: Sequence[dict[str, Any]], file: TextIO) -> None:
    if not rows:
        return
    writer = csv.DictWriter(Lines(file), list(dict.fromkeys(k for row in rows for k in row)))
    writer.writeheader()
    for row in rows:
        writer.writerow({k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()})


def print_table(table: pa.Table, format: Format, output: str | None = None) -> None:
    """Print the answer to a query; a table for people shows its first rows and says how many there are."""
    if format is Format.table and output is not None and output.endswith(".parquet"):
        write_parquet(table, output)
        return
    if format is not Format.table or output is not None:
        fallback = Format.json if str(output).endswith(".json") else Format.csv
        chosen = fallback if format is Format.table else format
        (write_json if chosen is Format.json else write_csv)(table, output)
        return
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, column in zip(table.column_names, table.columns, strict=True):
        right = (
            pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
        )
        shown.add_column(escape(visible_line(name)), justify="right" if right else "left", overflow="fold")
    for row in zip(*(listed(column) for column in table.slice(0, _ROWS_SHOWN).columns), strict=True):
        shown.add_row(*(_cell(value) for value in row))
    console().print(shown)
    if table.num_rows > _ROWS_SHOWN:
        print(f"{table.num_rows:,} rows, the first {_ROWS_SHOWN} shown; --format csv prints all", file=sys.stderr)


def _cell(value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:.6g}"
    return escape(visible_line(value.isoformat(" ") if isinstance(value, datetime) else str(value)))
