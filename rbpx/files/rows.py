"""Reads users' tables by rows: CSV, TSV, JSON, JSON Lines or Parquet, plain or gzipped; the only reader of them.

`read_rows` gives values as they are written, for texts. `read_table` gives a table of values: cells without surrounding
white space, None for empty ones, column names that differ in more than case.
"""

import csv
import gzip
import hashlib
import io
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from rbpx.errors import RbpxError, number_of, reason
from rbpx.typed import typed

FORMATS: Final = (".csv", ".parquet", ".json", ".jsonl", ".tsv")
FILE_MIB: Final = 1024  # what a packed file may hold once it is unpacked
MIB: Final = 2**20

_Records = Iterable[tuple[int | None, dict[str, Any]]]  # the line on which each begins, and its values


@dataclass(frozen=True, slots=True)
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
    def within(self) -> str:
        """Where it is in its file."""
        return f"row {self.number}" if self.line is None else f"line {self.line}"

    @property
    def place(self) -> str:
        """Where it is, for errors."""
        return f"{self.path}, {self.within}"


@dataclass(frozen=True)
class Rows:
    """A file as it was read.

    Attributes:
        path: the file.
        sha256: of its bytes, once they are unpacked.
        columns: their names, in order.
        rows: in order.
    """

    path: Path
    sha256: str
    columns: tuple[str, ...]
    rows: Sequence[Row]

    def cells(self, column: str) -> list[Any]:
        """The cells of one column, None in rows that lack it."""
        return [row.values.get(column) for row in self.rows]


def format_of(path: Path) -> str | None:
    """One of `FORMATS` by a file's name, ignoring `.gz` and case; None for any other."""
    last = next((suffix for suffix in reversed(path.suffixes) if suffix.lower() != ".gz"), "").lower()
    return last if last in FORMATS else None


def read_table(path: Path) -> Rows:
    """Read a table of values; rows without any are left out.

    Raises:
        RbpxError: as in `read_rows`, or two columns differ only in case, or it has no values.
    """
    read = read_rows(path)
    check_names(read.columns, path)
    rows = []
    for row in read.rows:
        values = {name: (cell.strip() or None) if isinstance(cell, str) else cell for name, cell in row.values.items()}
        if any(value is not None for value in values.values()):
            rows.append(Row(path, row.number, row.line, values))
    if not rows:
        raise RbpxError(f"{path} has no rows; give a file with at least one observation")
    return replace(read, rows=rows)


def check_names(columns: Sequence[str], path: Path) -> None:
    """Refuse columns whose names differ only in case.

    Raises:
        RbpxError: two do.
    """
    counted = Counter(column.strip().lower() for column in columns)
    duplicate = next((column for column in columns if counted[column.strip().lower()] > 1), None)
    if duplicate is not None:
        raise RbpxError(f"{path} has two columns named {duplicate!r}, ignoring case; rename one of them")


def read_rows(path: Path, file_mib: int = FILE_MIB) -> Rows:
    """Read a file in one of `FORMATS`, with its values as written.

    Args:
        path: the file.
        file_mib: what a packed file (.gz, Parquet) may hold once it is unpacked, MiB.

    Raises:
        RbpxError: it is missing, is not what its suffix says, or holds more than it may.
    """
    if not path.is_file():
        raise RbpxError(f"{path} is not a file; give the path of a CSV, TSV, Parquet, JSON or JSONL file")
    kind = format_of(path)
    if kind is None:
        raise RbpxError(
            f"{path} has {f'the suffix {path.suffix.lower()!r}' if path.suffix else 'no suffix'}; "
            f"known: {', '.join(FORMATS)}, each also with .gz; rename the file"
        )
    names, rows = dict[str, None](), []
    try:
        content = unpacked(path, file_mib)
        columns, records = _opened(content, kind, path, file_mib)
        for number, (line, values) in enumerate(records, 1):
            rows.append(Row(path, number, line, values))
            if columns is None:
                names.update(dict.fromkeys(values))
    except _READING as problem:
        raise RbpxError(
            f"{path} cannot be read: {reason(problem, 300)}; check that it is what its suffix says"
        ) from None
    return Rows(path, hashlib.sha256(content).hexdigest(), tuple(names if columns is None else columns), rows)


# What reading raises: Arrow's, JSON's and encoding errors are ValueErrors; JSON may be nested deeper than Python calls.
_READING = (OSError, EOFError, zlib.error, ValueError, csv.Error, RecursionError)


def unpacked(path: Path, file_mib: int = FILE_MIB) -> bytes:
    """The bytes of a file, decompressed where its name ends in .gz, and then never more of them than it may hold.

    Raises:
        RbpxError: it holds more.
    """
    if path.suffix.lower() != ".gz":
        return path.read_bytes()
    with gzip.open(path) as file:
        content = file.read(file_mib * MIB + 1)
    if len(content) > file_mib * MIB:
        raise _too_large(path, file_mib)
    return content


def _too_large(path: Path, file_mib: int) -> RbpxError:
    return RbpxError(
        f"{path} holds more than {file_mib:,} MiB once unpacked; split it, or, where it is a dataset, allow more: "
        + typed(keys={"dataset.file_mib": 2 * file_mib})
    )


def _opened(content: bytes, kind: str, path: Path, file_mib: int) -> tuple[Sequence[str] | None, _Records]:
    """The columns of a file, None where its rows name them, and its records."""
    if kind == ".parquet":
        return _of_parquet(content, path, file_mib)
    text = content.decode("utf-8-sig")
    if kind == ".json":
        return None, _of_json(text, path)
    if kind == ".jsonl":
        return None, _of_json_lines(text, path)
    return _of_csv(text, path, "\t" if kind == ".tsv" else ",")


def _of_csv(text: str, path: Path, delimiter: str) -> tuple[Sequence[str], _Records]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    columns = next((cells for cells in reader if not _is_blank(cells)), [])
    return columns, _csv_rows(reader, columns, path)


def _csv_rows(reader: Any, columns: list[str], path: Path) -> _Records:
    number, line = 1, reader.line_num + 1  # a row with quoted line breaks has several
    for cells in reader:
        if len(cells) == len(columns):
            yield line, dict(zip(columns, cells, strict=True))
            number += 1
        elif not _is_blank(cells):
            raise RbpxError(
                f"row {number} of {path} (line {line}): {number_of(len(cells), 'cell')} where the header has "
                f"{len(columns)}; fix that line"
            )
        line = reader.line_num + 1


def _is_blank(cells: Sequence[str]) -> bool:
    return not any(cell.strip() for cell in cells) and len(cells) < 2  # a row of empty cells has separators


def _of_json(text: str, path: Path) -> _Records:
    """The rows of an array of objects; a single object is the only row."""
    whole = json.loads(text, object_pairs_hook=_object)
    rows = whole if isinstance(whole, list) else [whole]
    return ((None, _checked(value, f"row {number} of {path}")) for number, value in enumerate(rows, 1))


def _of_json_lines(text: str, path: Path) -> _Records:
    number = 0
    for line, words in enumerate(io.StringIO(text, newline="\n"), 1):
        if not words.strip():
            continue
        number += 1
        where = f"row {number} of {path} (line {line})"
        try:
            value = json.loads(words, object_pairs_hook=_object)
        except (ValueError, RecursionError) as problem:
            raise RbpxError(f"{where}: not JSON ({problem}); fix that line") from None
        yield line, _checked(value, where)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError(f"an object has a key twice, among {', '.join(key for key, _ in pairs)}")
    return record


def _checked(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RbpxError(f"{where}: not an object with named values; give one object per row")
    return value


def _of_parquet(content: bytes, path: Path, file_mib: int) -> tuple[Sequence[str], _Records]:
    """The columns and rows of a Parquet file."""
    file = pq.ParquetFile(pa.BufferReader(content))
    about = file.metadata
    n_bytes = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
    if n_bytes > file_mib * MIB:
        raise _too_large(path, file_mib)
    return file.schema_arrow.names, ((None, values) for batch in file.iter_batches() for values in batch.to_pylist())
