"""Selects the rows of a user's table that meet an SQL condition over the columns of its file alone."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, compress
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rbpx.errors import RbpxError
from rbpx.files.cells import is_no_value
from rbpx.files.rows import Rows
from rbpx.store.sql import SqlLimits, meets

_LIMITS: Final = SqlLimits()
_KINDS: Final = (pa.int64(), pa.float64(), pa.bool_())  # types of a column of texts, the first that fits all


def rows_where(table: Rows, condition: str, limits: SqlLimits = _LIMITS) -> Rows:
    """The rows of a table for which a condition is true.

    A column whose cells are all numbers, or all true or false, has that type; any other is text. A cell that is empty
    or NaN is NULL.

    Raises:
        RbpxError: the condition is not valid SQL, names a missing column, takes too long, or no row meets it.
    """
    names = dict.fromkeys(chain(table.columns, *(row.values for row in table.rows)))  # nested names too
    rows = pa.table({name: _typed(table.cells(name)) for name in names})
    truths = meets(rows, "where", condition, limits)
    kept = list(compress(table.rows, pc.fill_null(truths, False).to_pylist()))
    if not kept:
        raise RbpxError(f"where={condition} is true of none of the {len(table.rows):,} rows of {table.path}; change it")
    return replace(table, rows=kept)


def named_in(condition: str, columns: Sequence[str]) -> set[str]:
    """The columns that a condition names."""
    return {name for name in columns if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", condition, re.IGNORECASE)}


def _typed(cells: list[Any]) -> pa.Array:
    values = [None if is_no_value(cell) else cell for cell in cells]
    if not any(isinstance(value, str) for value in values):
        with suppress(pa.ArrowException, OverflowError):
            return pa.array(values)
    texts = pa.array([None if value is None else str(value) for value in values], pa.string())
    for kind in _KINDS:
        with suppress(pa.ArrowInvalid):
            return texts.cast(kind)
    return texts
