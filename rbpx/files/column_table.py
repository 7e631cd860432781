"""Reads a user's table by columns: each as its distinct values, and which of them every row has.

A million rows have few names and few k: what is distinct is checked once, wherever it stands.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv

from rbpx.errors import RbpxError
from rbpx.files.cells import is_empty
from rbpx.files.rows import (
    READING,
    check_names,
    check_size,
    check_table,
    csv_rows,
    format_of,
    parquet_batches,
    read_rows,
    stripped,
    unreadable,
)
from rbpx.files.unpacked import Bounds, Lines, read_bytes, unpacked

_BLOCK: Final = 50_000  # rows that are turned into columns at once

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Column:
    """One column of R rows.

    Attributes:
        codes: [R], the index of the value of each row.
        values: distinct values in the order of their first rows; text without surrounding white space, None if empty.
    """

    codes: Numbers
    values: list[Any]


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """A file as it was read.

    Attributes:
        path: the file.
        sha256: of its bytes.
        columns: by name, in order.
        numbers: [R], of each row, from 1; rows without any value are left out.
        lines: [R], on which each begins, from 1; None where the file has no lines.
    """

    path: Path
    sha256: str
    columns: dict[str, Column]
    numbers: Numbers
    lines: Numbers | None

    @property
    def n_rows(self) -> int:
        """Rows with a value."""
        return len(self.numbers)

    def place(self, row: int) -> str:
        """Where a row is, for errors."""
        return f"{self.path}, {self.short_place(row)}"

    def short_place(self, row: int) -> str:
        """Where a row is in this file."""
        return f"row {self.numbers[row]}" if self.lines is None else f"line {self.lines[row]}"


def read_columns(path: Path, check: Callable[[Sequence[str]], object] = lambda names: None) -> ColumnTable:
    """Read a table of values by columns.

    Args:
        path: the file.
        check: is given the names of the columns and raises where they will not do; before the rows are read, where
            the file has its names first.

    Raises:
        RbpxError: it is missing, is not what its suffix says, has no rows, or two columns differ only in case.
    """

    def check_all(names: Sequence[str]) -> None:
        check_names(names, path)
        check(names)

    check_table(path)
    check_size(path)
    try:
        sha256, names, columns, lines = _read(path, format_of(path), Bounds(), check_all)
    except READING as problem:
        raise RbpxError(unreadable(path, problem)) from None
    columns = [Column(column.codes, [stripped(value) for value in column.values]) for column in columns]
    kept = np.zeros(len(columns[0].codes) if columns else 0, bool)
    for column in columns:
        kept |= np.asarray([value is not None for value in column.values] or [False], bool)[column.codes]
    if not kept.any():
        raise RbpxError(f"{path} has no rows; give a file with at least one observation")
    by_name = {name: Column(column.codes[kept], column.values) for name, column in zip(names, columns, strict=True)}
    return ColumnTable(path, sha256, by_name, np.flatnonzero(kept) + 1, None if lines is None else lines[kept])


_Read = tuple[str, Sequence[str], list[Column], Numbers | None]  # digest, names, columns, lines
_Check = Callable[[Sequence[str]], None]


def _read(path: Path, suffix: str | None, bounds: Bounds, check: _Check) -> _Read:
    if suffix == ".parquet":
        content, sha256 = read_bytes(path, bounds)
        schema, batches = parquet_batches(content, path, bounds)
        check(schema.names)
        return sha256, schema.names, _of_batches(schema, list(batches)), None
    if suffix == ".csv":
        return _read_csv(path, bounds, check)
    table = read_rows(path, bounds=bounds)
    check(table.columns)
    lines = [row.line for row in table.rows]
    columns = [_of_values([row.values.get(name) for row in table.rows]) for name in table.columns]
    return table.sha256, table.columns, columns, None if None in lines else np.asarray(lines, np.int64)


def _read_csv(path: Path, bounds: Bounds, check: _Check) -> _Read:
    content, sha256 = read_bytes(path, bounds)
    plain = _of_plain_csv(content, check)
    if plain is not None:
        names, columns = plain
        return sha256, names, columns, np.arange(len(columns[0].codes), dtype=np.int64) + 2
    with unpacked(path, bounds) as file:
        names, rows = csv_rows(Lines(file, path, bounds, newline=""), path)
        check(names)
        return sha256, names, *_of_cells(len(names), rows)


def _of_plain_csv(content: bytes, check: _Check) -> tuple[Sequence[str], list[Column]] | None:
    """The columns of a CSV file that is lines of cells between commas, by Arrow in place of Python, ten times as fast.

    None where it has quotes, carriage returns, blank lines or anything that Arrow refuses: then Python reads it, with
    the same cells, and says what is wrong.
    """
    if b'"' in content or b"\r" in content or b"\n\n" in content or content[:1] == b"\n":
        return None
    names = content.split(b"\n", 1)[0].decode("utf-8-sig").split(",")
    if len(names) < 2:
        return None
    check(names)
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(content),
            read_options=pa_csv.ReadOptions(column_names=[str(n) for n in range(len(names))], skip_rows=1),
            parse_options=pa_csv.ParseOptions(quote_char=False),
            convert_options=pa_csv.ConvertOptions(column_types={str(n): _ARROWS for n in range(len(names))}),
        )
    except pa.ArrowInvalid:
        return None
    return names, [_of_chunks(column) for column in table.columns]


def _of_cells(n_columns: int, rows: Iterator[tuple[int, list[str]]]) -> tuple[list[Column], Numbers]:
    """The columns of cells, and the line of each row."""
    parts: list[list[pa.Array]] = [[] for _ in range(n_columns)]
    lines: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    while block := list(islice(rows, _BLOCK)):
        lines.append(np.fromiter((line for line, _ in block), np.int64, len(block)))
        for part, cells in zip(parts, zip(*(cells for _, cells in block), strict=True), strict=True):
            part.append(pa.array(cells, pa.large_string()).dictionary_encode())
    return [_of_chunks(pa.chunked_array(part, _ENCODED)) for part in parts], np.concatenate(lines)


_ARROWS: Final = pa.dictionary(pa.int32(), pa.string())
_ENCODED: Final = pa.dictionary(pa.int32(), pa.large_string())


def _of_batches(schema: pa.Schema, batches: list[pa.RecordBatch]) -> list[Column]:
    columns = []
    for number, field in enumerate(schema):
        chunks = [batch.column(number) for batch in batches]
        if pa.types.is_nested(field.type) or not chunks:
            columns.append(_of_values([value for chunk in chunks for value in chunk.to_pylist()]))
            continue
        whole = pa.chunked_array(chunks)
        columns.append(_of_chunks(whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()))
    return columns


def _of_chunks(encoded: pa.ChunkedArray) -> Column:
    chunks = encoded.unify_dictionaries().chunks
    if not chunks:
        return Column(np.empty(0, np.int64), [])
    values = chunks[0].dictionary.to_pylist()
    codes = np.concatenate([chunk.indices.fill_null(len(values)).to_numpy(zero_copy_only=False) for chunk in chunks])
    return Column(codes.astype(np.int64), [*values, None])


def _of_values(values: list[Any]) -> Column:
    """Values of any kind: 1, 1.0 and true are different ones."""
    index: dict[Any, int] = {}
    distinct: list[Any] = []
    codes = np.empty(len(values), np.int64)
    for row, value in enumerate(values):
        key = (type(value), value) if isinstance(value, str | int | float | bool | None) else (dict, id(value))
        code = index.setdefault(key, len(distinct))
        if code == len(distinct):
            distinct.append(value)
        codes[row] = code
    return Column(codes, distinct)


_LONG: Final = ("quantity", "value", "stderr")


def is_long(names: Mapping[str, str]) -> bool:
    """Whether rows name what their value is."""
    return "quantity" in names and "value" in names


def long_columns(columns: list[str], chosen: Mapping[str, str]) -> dict[str, str]:
    """quantity, value and stderr -> their columns, as chosen, otherwise by their names; those that there are."""
    by_name = {column.strip().lower(): column for column in columns}
    named = {name: chosen.get(name, name).strip().lower() for name in _LONG}
    return {name: by_name[column] for name, column in named.items() if column in by_name}


def widened(table: ColumnTable, named: Mapping[str, str]) -> ColumnTable:
    """The same rows with a column for each quantity, which is empty in the rows of the others.

    Raises:
        RbpxError: a row names no quantity, or a quantity has the name of a column.
    """
    quantity = table.columns[named["quantity"]]
    columns = {name: column for name, column in table.columns.items() if name not in named.values()}
    taken = {name.strip().lower() for name in columns}
    for code, name in enumerate(quantity.values):
        rows = quantity.codes == code
        if not rows.any():
            continue
        if is_empty(name):
            raise RbpxError(
                f"{table.place(int(np.argmax(rows)))}: {named['quantity']} is empty; name what the value is"
            )
        if str(name).strip().lower() in taken:
            raise RbpxError(f"{table.path}: the quantity {name} is also a column; rename one of them")
        columns[str(name)] = _only(table.columns[named["value"]], rows)
        if "stderr" in named:
            columns[f"{name}_stderr"] = _only(table.columns[named["stderr"]], rows)
    return replace(table, columns=columns)


def _only(column: Column, rows: np.typing.NDArray[np.bool_]) -> Column:
    """A column that is empty outside of some rows."""
    return Column(np.where(rows, column.codes, len(column.values)), [*column.values, None])
