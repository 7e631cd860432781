"""Reads users' tables by rows: CSV, JSON Lines, JSON or Parquet, plain or gzipped; the only reader of them.

`read_rows` gives values as they are written, for texts. `read_table` gives a table of values: cells without surrounding
white space, None for empty ones, column names that differ in more than case. `scan_table` gives its records alone.

A Parquet file is read a batch at a time, and never beyond what it may hold. A value that is written once may stand in
every row, so that a small file holds terabytes: the lengths of texts are added up from their dictionary before any row
is made.
"""

import csv
import json
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rbpx.errors import RbpxError, number_of, reason
from rbpx.files.unpacked import MIB, Bounds, Lines, Unpacked, unpacked

FORMATS: Final = (".csv", ".parquet", ".json", ".jsonl")
_ROWS: Final = 10_000  # of a batch of Parquet
_NESTED_ROWS: Final = 100  # of one with lists or structs, whose texts are not counted before

Check = Callable[[Sequence[str]], object]
_Records = Iterable[tuple[int | None, Any]]  # as `Scan` has them


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
    """Read a table of values; rows without any are left out.

    Raises:
        RbpxError: as in `scan_table`.
    """
    scan = scan_table(path)
    rows = []
    for number, (line, values) in enumerate(scan.records, 1):
        cells = {name: stripped(cell) for name, cell in scan.named(values).items()}
        if any(value is not None for value in cells.values()):
            rows.append(Row(path, number, line, cells))
    if not rows:
        raise no_rows(path)
    return Rows(path, scan.sha256, scan.columns, tuple(rows))


def scan_table(path: Path, check: Check = lambda names: None) -> "Scan":
    """Read a table of values, with its values as written.

    Args:
        path: the file.
        check: is given the names of the columns and raises where they will not do; before the rows are read, where
            the file has its names first.

    Raises:
        RbpxError: it is missing, is not what its suffix says, has too many values, or two columns differ only in case.
    """

    def check_all(names: Sequence[str]) -> None:
        check_names(names, path)
        check(names)

    check_table(path)
    return _scan(path, Bounds(), False, check_all)


def no_rows(path: Path) -> RbpxError:
    """The error for a table without a value."""
    return RbpxError(f"{path} has no rows; give a file with at least one observation")


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
    scan = _scan(path, bounds or Bounds(), one_object)
    rows = (Row(path, number, line, scan.named(values)) for number, (line, values) in enumerate(scan.records, 1))
    return Rows(path, scan.sha256, scan.columns, tuple(rows))


@dataclass(frozen=True)
class Scan:
    """The records of a file.

    Attributes:
        sha256: of its bytes.
        columns: their names, in order.
        records: the line on which each begins, and its values: of each column, or by name where records name them.
    """

    sha256: str
    columns: tuple[str, ...]
    records: list[tuple[int | None, Any]]

    def named(self, values: Any) -> dict[str, Any]:
        """The values of a record by name."""
        return values if isinstance(values, dict) else dict(zip(self.columns, values, strict=True))


def _scan(path: Path, bounds: Bounds, one_object: bool, check: Check | None = None) -> Scan:
    suffix = format_of(path)
    if suffix is None:
        raise ValueError(f"{path} is not a table")
    read: list[tuple[int | None, Any]] = []
    n_values = 0
    try:
        with unpacked(path, bounds) as file:
            names, records = _opened(file, suffix, one_object, path, bounds)
            if check and names is not None:
                check(names)
            for record in records:
                read.append(record)
                n_values += len(record[1])
                if check and n_values > bounds.most_values:
                    raise bounds.too_many_values(path)
            if names is None:
                names = tuple(dict.fromkeys(column for _, values in read for column in values))
                if check:
                    check(names)
            return Scan(file.sha256.hexdigest(), names, read)
    except _READING as problem:
        why = "it is nested too deeply" if isinstance(problem, RecursionError) else reason(problem, 300)
        raise RbpxError(f"{path} cannot be read: {why}; check that it is what its suffix says") from None


# What reading raises: Arrow's, JSON's and encoding errors are ValueErrors; JSON may be nested deeper than Python calls.
_READING = (OSError, EOFError, zlib.error, ValueError, csv.Error, RecursionError, OverflowError, MemoryError)


def _opened(
    file: Unpacked, suffix: str, one_object: bool, path: Path, bounds: Bounds
) -> tuple[tuple[str, ...] | None, _Records]:
    """The columns of a file, None where its rows name them, and its records."""
    if suffix == ".csv":
        return _of_csv(Lines(file, path, bounds, newline=""), path)
    if suffix == ".jsonl":
        return None, _of_json_lines(Lines(file, path, bounds, newline="\n"), path)
    content = file.readall()
    if suffix == ".json":
        return None, _of_json(content, path, one_object)
    return _of_parquet(content, path, bounds)


def _of_csv(lines: Lines, path: Path) -> tuple[tuple[str, ...], _Records]:
    csv.field_size_limit(sys.maxsize)  # `lines` bounds a row
    reader = csv.reader(lines, strict=True)
    columns = next((cells for cells in reader if any(cell.strip() for cell in cells) or len(cells) > 1), [])
    return tuple(columns), _csv_rows(lines, reader, len(columns), path)


def _csv_rows(lines: Lines, reader: Iterator[list[str]], n_columns: int, path: Path) -> _Records:
    number = 1
    line = lines.begin_row()  # one with quoted line breaks has several
    for cells in reader:
        if len(cells) == n_columns:
            yield line, tuple(cells)  # of texts, which the garbage collector need not look at again
            number += 1
        elif len(cells) > 1 or any(cell.strip() for cell in cells):  # not a blank line, which has no comma
            raise RbpxError(
                f"row {number} of {path} (line {line}): {number_of(len(cells), 'cell')} where the header has "
                f"{n_columns}; fix that line"
            )
        line = lines.begin_row()


def _of_json(content: bytes, path: Path, one_object: bool) -> _Records:
    whole = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object)
    if one_object and isinstance(whole, dict):
        whole = [whole]
    if not isinstance(whole, list):
        raise RbpxError(f"{path} is not a JSON array of objects; wrap its rows in [...], or name it .jsonl")
    return ((None, _checked(value, f"row {number} of {path}")) for number, value in enumerate(whole, 1))


def _of_json_lines(lines: Lines, path: Path) -> _Records:
    number = 0
    for words in lines:
        lines.begin_row()
        if not words.strip():
            continue
        number += 1
        where = f"row {number} of {path} (line {lines.number})"
        try:
            value = json.loads(words, object_pairs_hook=_object)
        except (ValueError, RecursionError) as problem:
            why = "nested too deeply" if isinstance(problem, RecursionError) else problem
            raise RbpxError(f"{where}: not JSON ({why}); fix that line") from None
        yield lines.number, _checked(value, where)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError(f"an object has a key twice, among {', '.join(key for key, _ in pairs)}")
    return record


def _checked(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RbpxError(f"{where}: not an object with named values; give one object per row")
    return value


def _of_parquet(content: bytes, path: Path, bounds: Bounds) -> tuple[tuple[str, ...], _Records]:
    """The columns and rows of a Parquet file.

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
    if max(n_values, file.metadata.num_rows) > bounds.most_values:  # there may be rows without columns
        raise bounds.too_many_values(path)
    return tuple(schema.names), _parquet_rows(file, schema, path, bounds)


def _parquet_rows(file: pq.ParquetFile, schema: pa.Schema, path: Path, bounds: Bounds) -> _Records:
    total = row = 0
    nested = any(pa.types.is_nested(field.type) for field in schema)
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
        columns = [column.to_pylist() for column in batch.columns]
        values = zip(*columns, strict=True) if columns else repeat((), batch.num_rows)
        yield from ((None, each) for each in values)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind))
