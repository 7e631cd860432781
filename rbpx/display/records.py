"""Rows of any kind in; a table for people, or CSV, JSON or Parquet for programs, out."""

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TextIO

import pyarrow as pa
from rich import box
from rich.markup import escape
from rich.table import Table

from rbpx.config.options import Format
from rbpx.display.numbers import UNKNOWN
from rbpx.display.tables import console
from rbpx.display.visible import visible_line
from rbpx.files.output import Lines, opened, plain, python_values, write_csv, write_json, write_parquet

_ROWS_SHOWN = 40


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
    for row in zip(*(python_values(column) for column in table.slice(0, _ROWS_SHOWN).columns), strict=True):
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
