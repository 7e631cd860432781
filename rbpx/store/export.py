"""Exports a relation or a query of a store as CSV, JSON or Parquet, or all relations as one DuckDB file."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import duckdb

from rbpx.errors import RbpxError
from rbpx.files.output import output_file, write
from rbpx.spelling import typed
from rbpx.store.relations import check_read
from rbpx.store.schema import COLUMNS
from rbpx.store.sql import SqlLimits, connect, user_rows
from rbpx.store.store import Store

SUFFIXES: Final = (".csv", ".json", ".parquet")
WHOLE: Final = ".duckdb"


def export(
    store: str, what: str, output: str | None, suffix: str | None = None, limits: SqlLimits | None = None
) -> None:
    """Write a relation or the answer to a query, atomically.

    `what` is a relation, which has no time limit, or one SELECT; FILE.duckdb is a copy of all relations as tables.
    `output` None is stdout; `suffix` is for an output that does not end in one.

    Raises:
        RbpxError: there is no such store or relation, DuckDB refuses the query, or the file cannot be written.
        MeasureError: a file of the store cannot be read.
    """
    opened = Store(store)
    if not opened.root.is_dir():
        raise RbpxError(f"store={store} does not exist; measure or import first, or name it: {typed(store='DIR')}")
    limits = limits or SqlLimits()
    if what.endswith(WHOLE):
        _export_all(opened, what, limits)
        return
    kind = _kind(output, suffix)
    if re.fullmatch(r"[^\s()]+", what):
        if what not in COLUMNS:
            raise RbpxError(f"{what} is not a relation; known: {', '.join(COLUMNS)}; or give a query in quotes")
        what, limits = f"SELECT * FROM {what}", replace(limits, timeout_s=None)
    with connect(opened, limits=limits) as connection, user_rows(connection, what, limits) as rows:
        write(rows, kind.removeprefix("."), output)


def _export_all(store: Store, output: str, limits: SqlLimits) -> None:
    with connect(store, limits=limits) as connection, output_file(output) as path:
        check_read(connection, " ".join(COLUMNS))
        with duckdb.connect(str(path), config={"storage_compatibility_version": "v1.0.0"}) as copy:
            for name in COLUMNS:
                copy.register("rows_of_relation", connection.sql(f"FROM {name}").to_arrow_reader())
                copy.execute(f"CREATE TABLE {name} AS FROM rows_of_relation")
                copy.unregister("rows_of_relation")


def _kind(output: str | None, suffix: str | None) -> str:
    if output is None:
        return suffix or ".csv"
    own = Path(output).suffix.lower()
    said = {own, suffix} & set(SUFFIXES)
    if len(said) != 1:
        raise RbpxError(
            f"output={output} {'and format= differ in' if said else 'does not say'} its format; end it in "
            f"{', '.join(SUFFIXES)}, or in none of them beside {typed(format='csv')}"
        )
    return str(said.pop())
