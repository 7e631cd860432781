"""Reads users' tables into rows: CSV, TSV, JSON, JSON Lines, Parquet or Excel, plain or gzipped.

`read_rows` returns values as written, for texts. `read_table` returns a table of values: stripped cells, None for empty
ones, a column such as `train.lr` for each nested value, and column names that differ in more than case.
"""

import codecs
import csv
import gzip
import hashlib
import io
import json
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from rbpx.errors import RbpxError, reason
from rbpx.files.cells import with_point
from rbpx.files.delimited import read_delimited
from rbpx.files.shapes import records_of
from rbpx.spelling import typed

FORMATS: Final = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx")
FILE_MIB: Final = 1024  # largest decompressed size
MIB: Final = 2**20

_Records = Iterable[tuple[int | None, dict[str, Any]]]  # line number and values of each row


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file, by its number from 1, and its first line; in Excel its number in the sheet."""

    path: Path
    number: int
    line: int | None
    values: dict[str, Any]

    @property
    def within(self) -> str:
        """Its location within the file."""
        return f"row {self.number}" if self.line is None else f"line {self.line}"

    @property
    def place(self) -> str:
        """Its location, for errors."""
        return f"{self.path}, {self.within}"


@dataclass(frozen=True)
class Rows:
    """The contents of a file; `sha256` is of its decompressed bytes."""

    path: Path
    sha256: str
    columns: tuple[str, ...]
    rows: Sequence[Row]

    def cells(self, column: str) -> list[Any]:
        """The cells of one column; None in rows that lack it."""
        return [row.values.get(column) for row in self.rows]


def format_of(path: Path) -> str | None:
    """The format of `FORMATS` in a file's name, ignoring `.gz` and case; None for any other."""
    last = next((suffix for suffix in reversed(path.suffixes) if suffix.lower() != ".gz"), "").lower()
    return last if last in FORMATS else None


def read_table(path: Path, decimal: str | None = None, sheet: str | None = None) -> Rows:
    """Read a table of values; rows without any are left out; `decimal` is "," for decimal commas.

    Raises:
        RbpxError: as in `read_rows`, or two columns differ only in case, or it has no values.
    """
    read, rows = _shaped(read_rows(path, sheet=sheet)), []
    columns = read.columns
    for row in read.rows:
        cells = row.values
        if dict in map(type, cells.values()):
            cells = _with_leaves(row)
            flat = (name for name in (*columns, *cells) if not isinstance(cells.get(name), dict))
            columns = tuple(dict.fromkeys(flat))
        if decimal == ",":
            cells = {name: with_point(cell) if isinstance(cell, str) else cell for name, cell in cells.items()}
        values = {name: (cell.strip() or None) if isinstance(cell, str) else cell for name, cell in cells.items()}
        if any(value is not None for value in values.values()):
            rows.append(Row(path, row.number, row.line, values))
    if not rows:
        raise RbpxError(f"{path} has no rows; give a file with at least one observation")
    check_names(columns, path)
    return replace(read, columns=columns, rows=rows)


def _shaped(read: Rows) -> Rows:
    try:
        made = records_of(read.rows[0].values) if len(read.rows) == 1 else None
    except (AttributeError, TypeError, ValueError) as problem:
        raise RbpxError(f"{read.path} is not as its tool writes it ({reason(problem)}); save it as CSV") from None
    if made is None:
        return read
    rows = [Row(read.path, number, None, values) for number, values in enumerate(made, 1)]
    return replace(read, columns=tuple(dict.fromkeys(chain(*made))), rows=rows)


def unrolled(table: Rows, columns: Collection[str]) -> Rows:
    """A row for each element where cells of these columns are lists; other lists of their length go along.

    Raises RbpxError where such lists of one row have several lengths.
    """
    rows: list[Row] = []
    for row in table.rows:
        if list not in map(type, row.values.values()):
            rows.append(row)
            continue
        lists = {name: cell for name, cell in row.values.items() if type(cell) is list}
        lengths = {name: len(cell) for name, cell in lists.items() if name in columns}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} {n:,}" for name, n in lengths.items())
            raise RbpxError(f"{row.place}: its lists have several lengths ({told}); give a run lists of one length")
        along = {name: cell for name, cell in lists.items() if len(cell) in lengths.values()}
        each = zip(*along.values(), strict=True) if along else [()]
        rows += [replace(row, values=row.values | dict(zip(along, cells, strict=True))) for cells in each]
    return replace(table, rows=rows)


def _with_leaves(row: Row) -> dict[str, Any]:
    """The values of a row with all nested ones by their dotted path, records included (for SQL conditions)."""
    cells, waiting = dict(row.values), [(name, cell) for name, cell in row.values.items() if isinstance(cell, dict)]
    for within, record in waiting:  # the list grows
        for key, cell in record.items():
            name = f"{within}.{key}"
            if name in cells:
                raise RbpxError(f"{row.place}: {name} is there twice, once within a record; rename one of them")
            cells[name] = cell
            waiting += [(name, cell)] if isinstance(cell, dict) else []
    return cells


def check_names(columns: Sequence[str], path: Path) -> None:
    """Refuse column names that differ in case alone."""
    counted = Counter(column.strip().lower() for column in columns)
    duplicate = next((column for column in columns if counted[column.strip().lower()] > 1), None)
    if duplicate is not None:
        unnamed = "without a name; name them, and leave out what is above the heading"
        named = f"named {duplicate!r}, ignoring case; rename one of them"
        raise RbpxError(f"{path} has two columns {named if duplicate.strip() else unnamed}")


def read_rows(path: Path, file_mib: int = FILE_MIB, sheet: str | None = None) -> Rows:
    """Read a file in one of `FORMATS`, with its values as written; `file_mib` is the largest decompressed size.

    Raises:
        RbpxError: it is missing, is not what its suffix says, or is too large.
    """
    if not path.is_file():
        raise RbpxError(
            f"{path} is not a file; give the path of a table: {', '.join(FORMATS)}, or one of them with .gz"
        )
    kind = format_of(path)
    if kind is None:
        raise RbpxError(
            f"{path} has {f'the suffix {path.suffix.lower()!r}' if path.suffix else 'no suffix'}; "
            f"known: {', '.join(FORMATS)}, each also with .gz; save it as CSV, or rename it if it is one of these"
        )
    names, rows = dict[str, None](), []
    try:
        content = unpacked(path, file_mib)
        columns, records = _opened(content, kind, path, file_mib, sheet)
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
    """The bytes of a file, decompressed if its name ends in .gz; raises RbpxError beyond `file_mib`."""
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


def _opened(
    content: bytes, kind: str, path: Path, file_mib: int, sheet: str | None
) -> tuple[Sequence[str] | None, _Records]:
    if sheet is not None and kind != ".xlsx":
        raise RbpxError(f"sheet={sheet} is of a workbook of Excel (.xlsx), and {path} has no sheets; leave it out")
    if kind == ".parquet":
        return _of_parquet(content, path, file_mib)
    if kind == ".xlsx":
        return _of_workbook(content, path, file_mib, sheet)
    text = _decoded(content, path)
    if kind in (".json", ".jsonl"):
        return None, _of_json(text, path, by_line=kind == ".jsonl")
    return read_delimited(text, path, "\t" if kind == ".tsv" else ",")


def _decoded(content: bytes, path: Path) -> str:
    marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    try:
        text = content.decode("utf-16" if content.startswith(marks) else "utf-8-sig")
        if "\0" not in text[:4]:
            return text
        why = "UTF-16 without its byte order mark"
    except UnicodeDecodeError as problem:
        why = f"byte {problem.start + 1:,} is {content[problem.start]:#04x}, which is no {problem.encoding} there"
    raise RbpxError(
        f"{path} cannot be read: {why}; save it as UTF-8 (in Excel: CSV UTF-8), or as UTF-16 with its byte order mark"
    )


def _of_json(text: str, path: Path, by_line: bool) -> _Records:
    try:
        whole = None if by_line else _JSON.decode(text)
    except json.JSONDecodeError as problem:
        if problem.msg != "Extra data":  # more objects follow the first, as in .jsonl
            raise
        by_line, whole = True, None
    values = whole if isinstance(whole, list) else [whole]
    lines = enumerate(io.StringIO(text, newline="\n"), 1)
    written = (each for each in lines if each[1].strip())
    rows: Iterable[tuple[int | None, Any]] = written if by_line else ((None, value) for value in values)
    for number, (line, value) in enumerate(rows, 1):
        where = f"row {number} of {path}" + (f" (line {line})" if by_line else "")
        try:
            record = _JSON.decode(value) if by_line else value
        except (ValueError, RecursionError) as problem:
            raise RbpxError(f"{where}: not JSON ({problem}); fix that line") from None
        if not isinstance(record, dict):
            raise RbpxError(f"{where}: not an object with named values; give one object per row")
        yield line, record


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError(f"an object has a key twice, among {', '.join(key for key, _ in pairs)}")
    return record


_JSON: Final = json.JSONDecoder(object_pairs_hook=_object)  # made once: `json.loads` would make one for each line


def _of_parquet(content: bytes, path: Path, file_mib: int) -> tuple[Sequence[str], _Records]:
    file = pq.ParquetFile(pa.BufferReader(content))
    about = file.metadata
    n_bytes = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
    if n_bytes > file_mib * MIB:
        raise _too_large(path, file_mib)
    return file.schema_arrow.names, ((None, values) for batch in file.iter_batches() for values in batch.to_pylist())


def _of_workbook(content: bytes, path: Path, file_mib: int, sheet: str | None) -> tuple[Sequence[str], _Records]:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise RbpxError(f"{path} needs the package openpyxl: pip install 'rbpx[excel]'; or save it as CSV") from None

    def sheets(data_only: bool) -> dict[str, Any]:
        found = load_workbook(io.BytesIO(content), read_only=True, data_only=data_only).worksheets
        for each in found:
            each.reset_dimensions()  # which a file may state wrongly
        return {each.title: each for each in found}

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            if sum(each.file_size for each in packed.infolist()) > file_mib * MIB:
                raise _too_large(path, file_mib)
        with warnings.catch_warnings(action="ignore"):  # about workbook features that rbpx does not read
            known = sheets(data_only=True)
            filled = [title for title, each in known.items() if any(map(_holds, each.values))]
            title = (filled or list(known))[0] if sheet is None and len(filled) < 2 else sheet or ""
            rows = list(known[title].values) if title in known else []
            has_gaps = any(cell is None for row in rows for cell in row)
            formulas = list(sheets(data_only=False)[title].values) if has_gaps else rows
    except RbpxError:
        raise
    except Exception as problem:  # openpyxl raises anything on a damaged file
        raise ValueError(reason(problem, 300)) from None
    if title not in known:
        why = f"{len(filled)} sheets that hold something" if sheet is None else f"no sheet {sheet}"
        raise RbpxError(f"{path} has {why}; name one by sheet=NAME of import, or save it alone: {', '.join(known)}")
    for line, cells in enumerate(zip(rows, formulas, strict=True), 1):
        if any(cell is None and formula is not None for cell, formula in zip(*cells, strict=True)):
            raise RbpxError(
                f"{path}, line {line}: a formula has no result yet; open the file where it is calculated, and save it"
            )
    numbered = [(line, row) for line, row in enumerate(rows, 1) if _holds(row)]
    used = [cells for cells in zip_longest(*(row for _, row in numbered)) if _holds(cells)]
    heading, *body = zip(*used, strict=True) if used else [()]
    columns = ["" if cell is None else str(cell) for cell in heading]
    return columns, (
        (at, dict(zip(columns, row, strict=True))) for (at, _), row in zip(numbered[1:], body, strict=True)
    )


def _holds(row: Sequence[Any]) -> bool:
    return any(cell is not None for cell in row)
