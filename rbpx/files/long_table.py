"""A table with one value a row, named by a column `quantity`, in; a table with a column for each quantity out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from rbpx.errors import RbpxError
from rbpx.files.column_table import Column, ColumnTable
from rbpx.files.numbers import is_empty

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
