"""Reads users' tables by rows: CSV, JSON Lines, JSON or Parquet, plain or gzipped.

`read_rows` gives values as they are written, for texts. `read_table` gives a table of values: cells without surrounding
white space, None for empty ones, column names that differ in more than case.

A Parquet file is read a batch at a time, and never beyond what it may hold. A value that is written once may stand in
every row, so that a small file holds terabytes: the lengths of texts are added up from their dictionary before any row
is made.
"""

import csv
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rbpx.errors import RbpxError, number_of, reason
from rbpx.files.unpacked import MIB, Bounds, Lines, read_bytes, unpacked

_ROWS: Final = 10_000  # of a batch
_NESTED_ROWS: Final = 100  # of one with lists or structs, whose texts are not counted before


def parquet_batches(content: bytes, path: Path, bounds: Bounds) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema of a Parquet file and its rows, texts as dictionaries.

    Raises:
        RbpxError: a row, or all of them, hold more than they may.
    """
    schema = pq.read_schema(pa.BufferReader(content))
    texts = [field.name for field in schema if _is_text(field.type)]
    file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=texts)
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    if sum(group.total_byte_size for group in groups) > bounds.file_mib * MIB:
        raise bounds.file_too_large(path)
    n_values = sum(group.column(at).num_values for group in groups for at in range(group.num_columns))
    bounds.check_values(max(n_values, file.metadata.num_rows), path)  # there may be rows without columns
    return schema, _batches(file, path, bounds)


def _records(names: list[str], batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        if not names:
            yield from ({} for _ in range(batch.num_rows))
        columns = (column.to_pylist() for column in batch.columns)
        yield from (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def _batches(file: pq.ParquetFile, path: Path, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    total = row = 0
    nested = any(pa.types.is_nested(field.type) for field in file.schema_arrow)
    for batch in file.iter_batches(_NESTED_ROWS if nested else _ROWS):
        n_bytes = np.zeros(batch.num_rows, np.int64)
        for column in batch.columns:
            if pa.types.is_dictionary(column.type):
                lengths = pc.fill_null(pc.binary_length(column.dictionary), 0).take(column.indices)
                n_bytes += pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)
        total += int(n_bytes.sum())
        longest = int(n_bytes.argmax()) if batch.num_rows else 0
        if batch.num_rows and n_bytes[longest] > bounds.row_mib * MIB:
            raise bounds.row_too_long(f"row {row + longest + 1:,} of {path}")
        if total > bounds.file_mib * MIB:
            raise bounds.file_too_large(path)
        row += batch.num_rows
        yield batch


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind))


FORMATS = (".csv", ".parquet", ".json", ".jsonl")


@dataclass(frozen=True)
class Row:
    """One row of a file.

    Attributes:
        path: the file.
        number: of the row, from 1.
        line: on which it begins, from 1; None where the file has no lines (Parquet) or they mean nothing (JSON).
        values: column -> value.
    """

    path: Path
    number: int
    line: int | None
    values: dict[str, Any]

    @property
    def place(self) -> str:
        """Where it is, for errors."""
        return f"{self.path}, row {self.number}" if self.line is None else f"{self.path}, line {self.line}"


@dataclass(frozen=True)
class Rows:
    """A file as it was read.

    Attributes:
        path: the file.
        sha256: of its bytes.
        columns: their names, in order.
        rows: in order.
    """

    path: Path
    sha256: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def format_of(path: Path) -> str | None:
    """`.csv`, `.parquet`, `.json` or `.jsonl` by a file's name, ignoring `.gz` and case; None for any other."""
    last = next((suffix for suffix in reversed(path.suffixes) if suffix.lower() != ".gz"), "").lower()
    return last if last in FORMATS else None


def read_table(path: Path) -> Rows:
    """Read a table of values.

    Raises:
        RbpxError: it is missing, is not what its suffix says, has no rows, or two columns differ only in case.
    """
    check_table(path)
    check_size(path)
    table = read_rows(path)
    check_names(table.columns, path)
    whole = (replace(row, values={name: stripped(cell) for name, cell in row.values.items()}) for row in table.rows)
    rows = tuple(row for row in whole if any(value is not None for value in row.values.values()))
    if not rows:
        raise RbpxError(f"{path} has no rows; give a file with at least one observation")
    return replace(table, rows=rows)


def check_table(path: Path) -> None:
    """Refuse a path that names no table.

    Raises:
        RbpxError: it is missing, or has another suffix.
    """
    if not path.is_file():
        raise RbpxError(f"{path} is not a file; give the path of a CSV, Parquet, JSON or JSONL file")
    if format_of(path) is None:
        raise RbpxError(
            f"{path} has {f'the suffix {path.suffix.lower()!r}' if path.suffix else 'no suffix'}; "
            f"known: {', '.join(FORMATS)}, each also with .gz; rename the file"
        )


def check_size(path: Path) -> None:
    """Refuse a table of more values than are read, before it is read; Parquet says of itself how many it holds.

    Raises:
        RbpxError: it holds more, or cannot be unpacked.
    """
    bounds, suffix = Bounds(), format_of(path)
    if suffix == ".parquet":
        return
    try:
        with unpacked(path, bounds) as file:
            part = file.read(MIB)
            n_columns = part.partition(b"\n")[0].count(b",") + 1
            mark, n_each, n_values = (b"\n", n_columns, -n_columns) if suffix == ".csv" else (b'":', 1, 0)
            while part:
                n_values += n_each * part.count(mark)
                bounds.check_values(n_values, path)
                part = file.read(MIB)
    except READING as problem:
        raise RbpxError(unreadable(path, problem)) from None


def check_names(columns: Sequence[str], path: Path) -> None:
    """Refuse columns whose names differ only in case.

    Raises:
        RbpxError: two do.
    """
    counted = Counter(column.strip().lower() for column in columns)
    duplicate = next((column for column in columns if counted[column.strip().lower()] > 1), None)
    if duplicate is not None:
        raise RbpxError(f"{path} has two columns named {duplicate!r}, ignoring case; rename one of them")


def stripped(value: Any) -> Any:
    """A cell without surrounding white space; None where nothing is left."""
    return value.strip() or None if isinstance(value, str) else value


def read_rows(path: Path, *, one_object: bool = False, bounds: Bounds | None = None) -> Rows:
    """Read a file in one of `FORMATS`, with its values as written.

    Args:
        path: the file.
        one_object: whether a JSON file may be a single object, which is then its only row.
        bounds: what it may hold; None: the default bounds.

    Raises:
        RbpxError: it is not what its suffix says, or holds more than it may.
    """
    suffix, bounds = format_of(path), bounds or Bounds()
    if suffix is None:
        raise ValueError(f"{path} is not a table")
    try:
        if suffix == ".parquet":
            content, sha256 = read_bytes(path, bounds)
            schema, batches = parquet_batches(content, path, bounds)
            records = enumerate(_records(schema.names, batches), 1)
            return Rows(path, sha256, tuple(schema.names), tuple(Row(path, n, None, each) for n, each in records))
        if suffix == ".json":
            content, sha256 = read_bytes(path, bounds)
            rows = _of_records(path, _json_values(content, path, one_object))
            return Rows(path, sha256, _names(rows), rows)
        with unpacked(path, bounds) as file:
            if suffix == ".csv":
                columns, cells = csv_rows(Lines(file, path, bounds, newline=""), path)
                numbered = enumerate(cells, 1)
                rows = tuple(Row(path, n, line, dict(zip(columns, row, strict=True))) for n, (line, row) in numbered)
            else:
                rows = _of_records(path, _json_lines(Lines(file, path, bounds, newline="\n"), path))
                columns = _names(rows)
            return Rows(path, file.sha256.hexdigest(), columns, rows)
    except READING as problem:
        raise RbpxError(unreadable(path, problem)) from None


# What reading raises: Arrow's, JSON's and encoding errors are ValueErrors; JSON may be nested deeper than Python calls.
READING = (OSError, EOFError, zlib.error, ValueError, csv.Error, RecursionError, OverflowError, MemoryError)


def unreadable(path: Path, problem: BaseException) -> str:
    """One line for a file that cannot be read."""
    why = "it is nested too deeply" if isinstance(problem, RecursionError) else reason(problem, 300)
    return f"{path} cannot be read: {why}; check that it is what its suffix says"


def csv_rows(lines: Lines, path: Path) -> tuple[tuple[str, ...], Iterator[tuple[int, list[str]]]]:
    """The columns of a CSV file, and the cells of each row with the line on which it begins."""
    csv.field_size_limit(sys.maxsize)  # `lines` bounds a row
    records = _csv_records(lines)
    columns = next((cells for _, cells in records if any(cell.strip() for cell in cells) or len(cells) > 1), [])
    return tuple(columns), _csv_cells(records, columns, path)


def _csv_records(lines: Lines) -> Iterator[tuple[int, list[str]]]:
    """Each record with its first line: one with quoted line breaks has several."""
    line = 1
    for cells in csv.reader(lines, strict=True):
        yield line, cells
        lines.begin_row()
        line = lines.number + 1


def _csv_cells(
    records: Iterator[tuple[int, list[str]]], columns: list[str], path: Path
) -> Iterator[tuple[int, list[str]]]:
    number = 0
    for line, cells in records:
        if len(cells) != len(columns):
            if len(cells) < 2 and not any(cell.strip() for cell in cells):
                continue  # a blank line, which has no comma
            raise RbpxError(
                f"row {number + 1} of {path} (line {line}): {number_of(len(cells), 'cell')} where the header has "
                f"{len(columns)}; fix that line"
            )
        number += 1
        yield line, cells


def _json_values(content: bytes, path: Path, one_object: bool) -> Iterator[tuple[int, None, Any]]:
    whole = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object)
    if one_object and isinstance(whole, dict):
        whole = [whole]
    if not isinstance(whole, list):
        raise RbpxError(f"{path} is not a JSON array of objects; wrap its rows in [...], or name it .jsonl")
    return ((number, None, value) for number, value in enumerate(whole, 1))


def _json_lines(lines: Lines, path: Path) -> Iterator[tuple[int, int, Any]]:
    number = 0
    for words in lines:
        lines.begin_row()
        if not words.strip():
            continue
        number += 1
        try:
            yield number, lines.number, json.loads(words, object_pairs_hook=_object)
        except (ValueError, RecursionError) as problem:
            why = "nested too deeply" if isinstance(problem, RecursionError) else problem
            where = f"row {number} of {path} (line {lines.number})"
            raise RbpxError(f"{where}: not JSON ({why}); fix that line") from None


def _names(rows: Iterable[Row]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column for row in rows for column in row.values))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError(f"an object has a key twice, among {', '.join(key for key, _ in pairs)}")
    return record


def _of_records(path: Path, values: Iterable[tuple[int, int | None, Any]]) -> tuple[Row, ...]:
    rows = []
    for number, line, value in values:
        if not isinstance(value, dict):
            where = "" if line is None else f" (line {line})"
            raise RbpxError(f"row {number} of {path}{where}: not an object with named values; give one object per row")
        rows.append(Row(path, number, line, value))
    return tuple(rows)
