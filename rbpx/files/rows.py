"""A CSV, Parquet, JSON or JSONL file in; its rows as they stand, each with the line it is on, out."""

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rbpx.errors import RbpxError

SUFFIXES = (".csv", ".parquet", ".json", ".jsonl")


@dataclass(frozen=True)
class Row:
    """One row of a file.

    Attributes:
        place: where it is, for errors: the file, and the line (text) or the number of the row from 1.
        values: column -> value; an empty one is None.
    """

    place: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """A file as it was read.

    Attributes:
        path: the file.
        sha256: of its bytes.
        columns: their names, in order; no two alike.
        rows: at least one.
    """

    path: Path
    sha256: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def read_rows(path: Path) -> Rows:
    """Read a file as what its suffix says.

    Raises:
        RbpxError: it is missing, is not what its suffix says, is empty, or names two columns alike.
    """
    suffix = path.suffix.lower()
    if not path.is_file():
        raise RbpxError(f"{path} is no file; give the path of a CSV, Parquet, JSON or JSONL file")
    if suffix not in SUFFIXES:
        raise RbpxError(
            f"{path} has the suffix {suffix or 'of nothing'!r}; known: {', '.join(SUFFIXES)}; rename the file"
        )
    read = {".csv": _read_csv, ".parquet": _read_parquet, ".json": _read_json, ".jsonl": _read_jsonl}[suffix]
    try:
        content = path.read_bytes()
        columns, rows = read(content, path)
    except (OSError, ValueError, csv.Error) as problem:  # Arrow's, JSON's and encoding errors are ValueErrors
        reason = " ".join(str(problem).split())
        raise RbpxError(f"{path} cannot be read: {reason}; check that it is what its suffix says") from None
    lowered = [column.strip().lower() for column in columns]
    twice = next((column for column in columns if lowered.count(column.strip().lower()) > 1), None)
    if twice is not None:
        raise RbpxError(f"{path} has two columns named {twice!r}, case apart; rename one of them")
    if not rows:
        raise RbpxError(f"{path} holds no rows; give a file with at least one observation")
    return Rows(path, hashlib.sha256(content).hexdigest(), tuple(columns), tuple(rows))


Found = tuple[Sequence[str], list[Row]]


def _read_csv(content: bytes, path: Path) -> Found:
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    columns: list[str] = []
    rows = []
    before = 0  # a quoted line break makes a record of several lines; it is named by its first
    for cells in reader:
        line, before = before + 1, reader.line_num
        if not any(cell.strip() for cell in cells):
            continue
        if not columns:
            columns = cells
            continue
        place = f"{path}, line {line}"
        if len(cells) != len(columns):
            raise RbpxError(f"{place}: {len(cells)} cells where the header has {len(columns)}; mend that line")
        rows.append(Row(place, dict(zip(columns, (cell.strip() or None for cell in cells), strict=True))))
    return columns, rows


def _read_parquet(content: bytes, path: Path) -> Found:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(pa.BufferReader(content)).read()
    records = (dict(zip(table.column_names, values, strict=True)) for values in _transposed(table))
    return table.column_names, [Row(f"{path}, row {n}", record) for n, record in enumerate(records, 1)]


def _transposed(table: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _read_json(content: bytes, path: Path) -> Found:
    whole = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object)
    if not isinstance(whole, list):
        raise RbpxError(f"{path} is no JSON array of objects; wrap its rows in [...], or name it .jsonl")
    return _of_records([Row(f"{path}, row {n}", record) for n, record in enumerate(whole, 1)])


def _read_jsonl(content: bytes, path: Path) -> Found:
    rows = []
    for n, line in enumerate(content.decode("utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(Row(f"{path}, line {n}", json.loads(line, object_pairs_hook=_object)))
        except ValueError as problem:
            raise RbpxError(f"{path}, line {n}: no JSON ({problem}); mend that line") from None
    return _of_records(rows)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError(f"an object has a key twice, of {', '.join(key for key, _ in pairs)}")
    return record


def _of_records(rows: list[Row]) -> Found:
    for row in rows:
        if not isinstance(row.values, dict):
            raise RbpxError(f"{row.place}: no object with named values; give one object a row")
    return list(dict.fromkeys(column for row in rows for column in row.values)), rows
