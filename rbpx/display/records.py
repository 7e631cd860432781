"""Prints rows: a table for people, or CSV, JSON or Parquet for programs."""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
from rich.cells import cell_len
from rich.text import Text

from rbpx.config.options import Format
from rbpx.display.terminal import console, head_of, row_of, total
from rbpx.display.vocabulary import UNKNOWN
from rbpx.errors import number_of
from rbpx.files.escapes import say, visible_line
from rbpx.files.output import opened, plain, write, write_csv
from rbpx.spelling import typed

_ROWS_SHOWN = 40
_ROWS_COUNTED, _COUNTING_S = 1_000_000, 1.0  # rows and seconds; beyond, the rest is not counted
_RECORDS_SHOWN = 10  # maximum number of rows printed downwards, a line a column


def print_records(records: Iterable[dict[str, Any]], format: Format) -> None:
    """Prints records as JSON, null for missing, or as CSV, empty for missing."""
    rows = [{key: plain(value) for key, value in record.items()} for record in records]
    with opened(None) as file:
        if format is Format.json:
            json.dump(rows, file, indent=1, default=str)
            file.write("\n")
        else:
            names = list(dict.fromkeys(name for row in rows for name in row))
            cells = ([row.get(name, "") for name in names] for row in rows)
            write_csv([names, *cells] if rows else [], file)


def print_table(answer: pa.RecordBatchReader, format: Format, output: str | None = None) -> None:
    """Prints the answer to a query: for people the first rows, downwards if columns do not fit side by side."""
    if format is not Format.table or output is not None:
        suffix = str(output).rpartition(".")[2]
        is_of_name = format is Format.table and suffix in ("json", "parquet")
        write(answer, suffix if is_of_name else "json" if format is Format.json else "csv", output)
        return
    table, n_rows = _first_rows(answer)
    names = [visible_line(name) for name in table.column_names]
    rows = [
        [_cell(value) for value in row]
        for row in zip(*(column.to_pylist() for column in table.slice(0, _ROWS_SHOWN).columns), strict=True)
    ]
    screen, widths = console(), [max(map(cell_len, column)) for column in zip(names, *rows, strict=True)]
    if total(widths) < screen.width:
        kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        right = [any(of(column.type) for of in kinds) for column in table.columns]
        lines = [*head_of(names, widths, right), *(row_of(cells, widths, right) for cells in rows), Text("")]
    else:
        rows = rows[:_RECORDS_SHOWN]
        lines = [line for number, cells in enumerate(rows, 1) for line in _downwards(names, cells, number, n_rows)]
    if rows:
        screen.print(Text("\n").join(lines), soft_wrap=True)
    else:
        say("no rows")
    if rows and (n_rows is None or n_rows > len(rows)):
        counted = "more rows than these" if n_rows is None else number_of(n_rows, "row")
        say(f"{counted}, the first {len(rows)} shown; {typed(format='csv')} prints all")


def _first_rows(answer: pa.RecordBatchReader) -> tuple[pa.Table, int | None]:
    parts: list[pa.RecordBatch] = []
    n_rows, until = 0, time.monotonic() + _COUNTING_S
    for part in answer:
        if n_rows < _ROWS_SHOWN:
            parts.append(part)
        n_rows += part.num_rows
        if n_rows > _ROWS_COUNTED or (n_rows > _ROWS_SHOWN and time.monotonic() > until):
            return pa.Table.from_batches(parts, answer.schema), None
    return pa.Table.from_batches(parts, answer.schema), n_rows


def _downwards(names: Sequence[str], cells: Sequence[str], number: int, n_rows: int | None) -> Iterator[Text]:
    """A line a column; a long value continues below, at the left edge."""
    yield Text(f"row {number:,}{'' if n_rows is None else f' of {n_rows:,}'}", "bold")
    widest = max(map(cell_len, names))
    for name, cell in zip(names, cells, strict=True):
        yield Text(f"  {name}{' ' * (widest - cell_len(name))}  {cell}")


def _cell(value: Any) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:.6g}"
    return visible_line(value.isoformat(" ") if isinstance(value, datetime) else str(value))
