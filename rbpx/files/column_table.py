"""A user's table by columns: each as its distinct values, and which of them every row has.

A million rows have few names and few k: what is distinct is checked once, wherever it stands.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.errors import RbpxError
from rbpx.files.rows import Check, no_rows, scan_table, stripped

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

    @classmethod
    def of(cls, cells: Sequence[Any]) -> "Column":
        """Cells as they are written: 1, 1.0 and true are different ones, and so is each that is nested."""
        with suppress(pa.ArrowException, UnicodeEncodeError, OverflowError):
            array = pa.array(cells)
            if array.type == pa.string():
                encoded = array.dictionary_encode("encode")
                return cls(encoded.indices.to_numpy(), [stripped(cell) for cell in encoded.dictionary.to_pylist()])
        keys = ((type(cell), cell) if cell.__hash__ is not None else (dict, id(cell)) for cell in cells)
        index: dict[Any, int] = {}
        codes = np.fromiter((index.setdefault(key, len(index)) for key in keys), np.int64, len(cells))
        _, first = np.unique(codes, return_index=True)
        return cls(codes, [stripped(cells[at]) for at in first.tolist()])

    def where(self, kept: npt.NDArray[np.bool_]) -> "Column":
        """The same, empty outside of some rows."""
        return Column(np.where(kept, self.codes, len(self.values)), [*self.values, None])


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

    def only(self, kept: npt.NDArray[np.bool_]) -> "ColumnTable":
        """Some of its rows."""
        columns = {name: Column(column.codes[kept], column.values) for name, column in self.columns.items()}
        lines = None if self.lines is None else self.lines[kept]
        return replace(self, columns=columns, numbers=self.numbers[kept], lines=lines)


def read_columns(path: Path, check: Check = lambda names: None) -> ColumnTable:
    """Read a table of values by columns.

    Args:
        path: the file.
        check: as in `scan_table`.

    Raises:
        RbpxError: as in `scan_table`, or it has no rows.
    """
    scan = scan_table(path, check)
    if not scan.records:
        raise no_rows(path)
    lines, values = zip(*scan.records, strict=True)
    cells: Iterable[Sequence[Any]] = zip(*values, strict=True)
    if isinstance(values[0], dict):
        cells = ([record.get(name) for record in values] for name in scan.columns)
    whole = ColumnTable(
        path,
        scan.sha256,
        {name: Column.of(each) for name, each in zip(scan.columns, cells, strict=True)},
        np.arange(1, len(values) + 1),
        None if lines[0] is None else np.array(lines, np.int64),
    )
    kept = np.zeros(len(values), bool)
    for column in whole.columns.values():
        kept |= np.array([value is not None for value in column.values])[column.codes]
    if not kept.any():
        raise no_rows(path)
    return whole if kept.all() else whole.only(kept)


_LONG: Final = ("quantity", "value", "stderr")


def is_long(names: Mapping[str, str]) -> bool:
    """Whether rows name what their value is."""
    return "quantity" in names and "value" in names


def long_columns(columns: Sequence[str], chosen: Mapping[str, str]) -> dict[str, str]:
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
        if name is None:
            raise RbpxError(
                f"{table.place(int(np.argmax(rows)))}: {named['quantity']} is empty; name what the value is"
            )
        if str(name).strip().lower() in taken:
            raise RbpxError(f"{table.path}: the quantity {name} is also a column; rename one of them")
        columns[str(name)] = table.columns[named["value"]].where(rows)
        if "stderr" in named:
            columns[f"{name}_stderr"] = table.columns[named["stderr"]].where(rows)
    return replace(table, columns=columns)
