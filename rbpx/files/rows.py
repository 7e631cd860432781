"""Reads users' tables: the rows of a CSV, JSON Lines, JSON or Parquet file, plain or gzipped.

`read_rows` gives the rows as they are written, for texts. `read_table` gives them as a table of values: cells without
surrounding white space, empty ones as None, column names that differ in more than case.
"""

import csv
import gzip
import hashlib
import io
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rbpx.counts import number_of
from rbpx.errors import RbpxError

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


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, decompressed where its name ends in .gz."""
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix.lower() == ".gz" else content


def read_table(path: Path) -> Rows:
    """Read a table of values.

    Raises:
        RbpxError: it is missing, is not what its suffix says, has no rows, or two columns differ only in case.
    """
    if not path.is_file():
        raise RbpxError(f"{path} is not a file; give the path of a CSV, Parquet, JSON or JSONL file")
    if format_of(path) is None:
        raise RbpxError(
            f"{path} has {f'the suffix {path.suffix.lower()!r}' if path.suffix else 'no suffix'}; "
            f"known: {', '.join(FORMATS)}, each also with .gz; rename the file"
        )
    table = read_rows(path)
    lowered = [column.strip().lower() for column in table.columns]
    duplicate = next((column for column in table.columns if lowered.count(column.strip().lower()) > 1), None)
    if duplicate is not None:
        raise RbpxError(f"{path} has two columns named {duplicate!r}, ignoring case; rename one of them")
    stripped = [(row, {name: _stripped(value) for name, value in row.values.items()}) for row in table.rows]
    rows = tuple(
        Row(row.path, row.number, row.line, values)
        for row, values in stripped
        if any(value is not None for value in values.values())
    )
    if not rows:
        raise RbpxError(f"{path} has no rows; give a file with at least one observation")
    return Rows(path, table.sha256, table.columns, rows)


def _stripped(value: Any) -> Any:
    return value.strip() or None if isinstance(value, str) else value


def read_rows(path: Path, *, one_object: bool = False) -> Rows:
    """Read a file in one of `FORMATS`, with its values as written.

    Args:
        path: the file.
        one_object: whether a JSON file may be a single object, which is then its only row.

    Raises:
        RbpxError: it is not what its suffix says.
    """
    suffix = format_of(path)
    if suffix is None:
        raise ValueError(f"{path} is not a table")
    readers: dict[str, Callable[[bytes, Path], Table]] = {
        ".csv": _read_csv,
        ".parquet": _read_parquet,
        ".json": partial(_read_json, one_object=one_object),
        ".jsonl": _read_jsonl,
    }
    try:
        content = read_bytes(path)
        columns, rows = readers[suffix](content, path)
    # Arrow's, JSON's and encoding errors are ValueErrors.
    except (OSError, EOFError, zlib.error, ValueError, csv.Error) as problem:
        reason = " ".join(str(problem).split())
        raise RbpxError(f"{path} cannot be read: {reason}; check that it is what its suffix says") from None
    return Rows(path, hashlib.sha256(content).hexdigest(), tuple(columns), tuple(rows))


Table = tuple[list[str], list[Row]]


def _read_csv(content: bytes, path: Path) -> Table:
    csv.field_size_limit(sys.maxsize)  # documents are longer than the 128 KiB that csv allows a field
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    columns: list[str] = []
    rows: list[Row] = []
    end = 0  # a record with quoted line breaks has several lines; it is reported by its first
    for cells in reader:
        line, end = end + 1, reader.line_num
        if len(cells) < 2 and len(cells) != len(columns) and not any(cell.strip() for cell in cells):
            continue  # a blank line, which has no comma; a row of as many empty cells as there are columns is a row
        if not columns:
            columns = cells
            continue
        number = len(rows) + 1
        if len(cells) != len(columns):
            raise RbpxError(
                f"row {number} of {path} (line {line}): {number_of(len(cells), 'cell')} where the header has "
                f"{len(columns)}; fix that line"
            )
        rows.append(Row(path, number, line, dict(zip(columns, cells, strict=True))))
    return columns, rows


def _read_parquet(content: bytes, path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(pa.BufferReader(content)).read()
    columns = (column.to_pylist() for column in table.columns)
    records = (dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True))
    return table.column_names, [Row(path, number, None, record) for number, record in enumerate(records, 1)]


def _read_json(content: bytes, path: Path, one_object: bool = False) -> Table:
    whole = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object)
    if one_object and isinstance(whole, dict):
        whole = [whole]
    if not isinstance(whole, list):
        raise RbpxError(f"{path} is not a JSON array of objects; wrap its rows in [...], or name it .jsonl")
    return _of_records(path, ((number, None, value) for number, value in enumerate(whole, 1)))


def _read_jsonl(content: bytes, path: Path) -> Table:
    return _of_records(path, _json_lines(content.decode("utf-8-sig"), path))


def _json_lines(text: str, path: Path) -> Iterator[tuple[int, int, Any]]:
    number = 0
    for line, words in enumerate(text.split("\n"), 1):
        if not words.strip():
            continue
        number += 1
        try:
            yield number, line, json.loads(words, object_pairs_hook=_object)
        except ValueError as problem:
            raise RbpxError(f"row {number} of {path} (line {line}): not JSON ({problem}); fix that line") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError(f"an object has a key twice, of {', '.join(key for key, _ in pairs)}")
    return record


def _of_records(path: Path, values: Iterable[tuple[int, int | None, Any]]) -> Table:
    rows = []
    for number, line, value in values:
        if not isinstance(value, dict):
            where = "" if line is None else f" (line {line})"
            raise RbpxError(f"row {number} of {path}{where}: not an object with named values; give one object a row")
        rows.append(Row(path, number, line, value))
    return list(dict.fromkeys(column for row in rows for column in row.values)), rows
