"""Selects the rows of a user's table: those that meet an SQL condition on its columns, and those of finished runs."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, compress
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rbpx.errors import RbpxError, number_of
from rbpx.files.cells import is_no_value
from rbpx.files.rows import Rows
from rbpx.spelling import typed
from rbpx.store.imports.faults import named_of
from rbpx.store.imports.rules import plain
from rbpx.store.sql import SqlLimits, meets

# States of runs in tables of Weights & Biases
_STATES: Final = {"finished", "running", "crashed", "failed", "killed", "preempted", "preempting", "pending"}
_KINDS: Final = (pa.int64(), pa.float64(), pa.bool_())  # types of a column of texts, the first that fits all


def rows_where(table: Rows, condition: str) -> Rows:
    """The rows of a table for which a condition is true.

    A column whose cells are all numbers, or all true or false, has that type; any other is text. A cell that is empty
    or NaN is NULL.

    Raises:
        RbpxError: the condition is not valid SQL, names a missing column, takes too long, or no row meets it.
    """
    names = dict.fromkeys(chain(table.columns, *(row.values for row in table.rows)))  # nested names too
    rows = pa.table({name: _typed(table.cells(name)) for name in names})
    truths = meets(rows, "where", condition, SqlLimits())
    kept = list(compress(table.rows, pc.fill_null(truths, False).to_pylist()))
    if not kept:
        raise RbpxError(f"where={condition} is true of none of the {len(table.rows):,} rows of {table.path}; change it")
    return replace(table, rows=kept)


def finished(table: Rows, condition: str | None) -> tuple[Rows, str]:
    """The rows of a table of runs that are finished, and which others were left out.

    A condition that names the column of states chooses by itself. Raises RbpxError where no run is finished.
    """
    names = {plain(column): column for column in table.columns}
    name = names.get("state")
    states = [] if name is None else [str(cell).lower() for cell in table.cells(name)]
    if name is None or not set(states) <= _STATES or named_in(condition or "", [name]) or set(states) == {"finished"}:
        return table, ""
    rows = [row for row, state in zip(table.rows, states, strict=True) if state == "finished"]
    run = next((names[each] for each in ("name", "run", "model") if each in names), None)
    others = [(row, state) for row, state in zip(table.rows, states, strict=True) if state != "finished"]
    told = named_of(f"{row.within if run is None else row.values.get(run)} ({state})" for row, state in others)
    whole = typed(where=f"{name} IS NOT NULL" if condition is None else f"({condition}) AND {name} IS NOT NULL")
    if not rows:
        raise RbpxError(f"{table.path}: no run is finished: {told}; {whole} takes them as they are")
    line = f"left out {number_of(len(others), 'run')} of {table.path} of which {name} is not finished: {told}; "
    return replace(table, rows=rows), f"{line}{whole} takes them too"


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
