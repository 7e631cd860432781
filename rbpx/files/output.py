"""Writes Arrow rows as CSV, JSON or Parquet while they are computed; a file appears complete or not at all."""

import csv
import errno
import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import datetime
from decimal import Decimal
from glob import escape
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from rbpx.errors import MeasureError, RbpxError
from rbpx.files.cells import csv_cell
from rbpx.files.entries import atomic_write, is_full, is_temporary
from rbpx.files.escapes import out
from rbpx.files.leftovers import held, remove_left

_GROUP_ROWS, _GROUP_BYTES = 1 << 17, 1 << 26  # of a row group of Parquet


def check_output(output: str) -> None:
    """Raises RbpxError for an output that cannot be written, before anything is measured."""
    path = Path(output).expanduser()
    reason = "is a folder" if path.is_dir() else None if path.parent.is_dir() else "is in a folder that does not exist"
    if reason is None and not os.access(path if path.exists() else path.parent, os.W_OK):
        reason = "is not writable by you"
    if reason is not None:
        raise RbpxError(f"output={output} {reason}; name another file")


@contextmanager
def output_file(output: str) -> Iterator[Path]:
    """Yield a temporary path for a user's output; it is renamed at the end, or removed after an error.

    Raises:
        MeasureError: the disk is full.
        RbpxError: the output cannot be written.
    """
    path = Path(output).expanduser().resolve()
    try:
        if path.exists() and not path.is_file():  # a pipe or a device is written directly
            yield path
            return
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        remove_left(each for each in path.parent.glob(f"{escape(f'.{path.name}.')}*.tmp") if is_temporary(each.name))
        with atomic_write(path) as temporary:
            temporary.touch()
            with held(temporary):
                yield temporary
    except OSError as problem:
        line = f"output={output} cannot be written: {problem.strerror or problem}; "
        if is_full(problem):
            raise MeasureError(f"{line}make room and run the same line again") from None
        raise RbpxError(f"{line}name another file") from None


@contextmanager
def printed_to(output: str | None) -> Iterator[None]:
    """Directs what is printed during the block to a file, if one is named."""
    if output is None:
        yield
        return
    with opened(output) as file, redirect_stdout(file):
        yield


@contextmanager
def opened(output: str | None) -> Iterator[TextIO]:
    """A text file, or stdout if `output` is None; a terminal receives no control characters."""
    if output is None:
        yield out()
        sys.stdout.flush()  # raises here if stdout cannot be written
        return
    with output_file(output) as path, path.open("w", encoding="utf-8", newline="") as file:
        yield file


def plain(value: Any) -> Any:
    """Convert a value for JSON and CSV; numbers that are not finite become missing, at any depth."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, datetime) else value


class _Lines:
    r"""The file of a CSV writer; ends each row with a line feed.

    With lineterminator="\n", Python's own writer (before 3.13) leaves a carriage return in a cell unquoted, and readers
    take it for the end of the row.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> int:  # with two characters at its end
        return self._file.write(row[:-2] + "\n")


def write(rows: pa.RecordBatchReader, kind: str, output: str | None) -> None:
    """Write rows of a table, in parts as they are computed, to a file or stdout, where parquet is csv.

    In csv missing values are empty and nested ones JSON; json is an array of objects.
    """
    names = _distinct(rows.schema.names)
    if kind == "parquet" and output is not None:
        schema = pa.schema([field.with_name(name) for field, name in zip(rows.schema, names, strict=True)])
        schema = schema.with_metadata(rows.schema.metadata)
        with output_file(output) as path, pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for parts in _gathered(rows):
                writer.write_table(pa.Table.from_batches(parts).rename_columns(names).cast(schema))
        return
    with opened(output) as file:
        if kind != "json":
            write_csv(chain([names], _values_of_rows(rows)), file)
            return
        before = "[\n"
        for values in _values_of_rows(rows):
            file.write(before + " " + json.dumps(dict(zip(names, values, strict=True)), default=_as_json))
            before = ",\n"
        file.write("[]\n" if before == "[\n" else "\n]\n")


def write_csv(rows: Iterable[Iterable[Any]], file: TextIO) -> None:
    """Write rows of cells as CSV, of which the first has the names of the columns."""
    csv.writer(_Lines(file)).writerows(map(csv_cell, cells) for cells in rows)


def _as_json(value: Any) -> int | float | str:
    """A number for exact types of SQL, as sum(n_tokens) and 0.5; text for other types that JSON lacks."""
    if not isinstance(value, Decimal) or not value.is_finite():
        return str(value)
    return int(value) if value == value.to_integral_value() else float(value)


def _gathered(rows: pa.RecordBatchReader) -> Iterator[list[pa.RecordBatch]]:
    """Join parts of the rows into row groups large enough to be worth their header."""
    parts: list[pa.RecordBatch] = []
    for part in rows:
        parts.append(part)
        if sum(each.num_rows for each in parts) >= _GROUP_ROWS or sum(each.nbytes for each in parts) >= _GROUP_BYTES:
            yield parts
            parts = []
    if parts:
        yield parts


def _values_of_rows(rows: pa.RecordBatchReader) -> Iterator[list[Any]]:
    for part in rows:
        columns = [column.to_pylist() for column in part.columns]
        yield from ([plain(value) for value in values] for values in zip(*columns, strict=True))


def _distinct(names: list[str]) -> list[str]:
    before = [names[:at].count(name) for at, name in enumerate(names)]
    return [f"{name}_{n + 1}" if n else name for name, n in zip(names, before, strict=True)]
