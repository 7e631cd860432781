"""Writes a relation of a store, or the answer to a query, as CSV, JSON or Parquet."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from rbpx.errors import DamageError, MeasureError, RbpxError
from rbpx.files.output import Rows, write_csv, write_json, write_parquet
from rbpx.store.checks.integrity import doubt
from rbpx.store.named import open_store
from rbpx.store.sql.bounded import SqlLimits
from rbpx.store.sql.queries import RELATIONS, connect, user_rows
from rbpx.store.store import Store

SUFFIXES: Final = (".csv", ".json", ".parquet")


def export(
    store: str, what: str, output: str | None, suffix: str | None = None, limits: SqlLimits | None = None
) -> None:
    """Write a relation, or the answer to a query, whole or not at all.

    Args:
        store: folder or URL.
        what: the name of a relation, or one SELECT.
        output: the file; None is stdout.
        suffix: `.csv`, `.json` or `.parquet` where the name of the output does not end in one of them.
        limits: of a query; a relation may take its time.

    Raises:
        RbpxError: the store does not exist, there is no such relation, DuckDB refuses the query, the file's kind is not
            known, or it cannot be written.
    """
    kind = _kind(output, suffix)
    if re.fullmatch(r"[^\s()]+", what):
        if what not in RELATIONS:
            raise RbpxError(f"{what} is not a relation; known: {', '.join(RELATIONS)}; or give a query in quotes")
        what, limits = f"SELECT * FROM {what}", replace(limits or SqlLimits(), timeout_s=None)
    limits = limits or SqlLimits()
    opened = open_store(store)
    if not opened.root.is_dir():
        raise RbpxError(f"store={store} does not exist; measure or import first, or name it with --store DIR")
    with connect(opened, limits=limits) as connection, user_rows(connection, what, limits) as rows:
        if kind == ".parquet" and output is not None:
            write_parquet(rows, output)
        else:
            (write_json if kind == ".json" else write_csv)(known_complete(rows, opened, output), output)


def _kind(output: str | None, suffix: str | None) -> str:
    """The kind of file: what the output's name says, else the one that was asked for, else CSV."""
    if output is None:
        return suffix or ".csv"
    own = Path(output).suffix.lower()
    if own in SUFFIXES and suffix not in (None, own):
        raise RbpxError(f"output={output} and format={str(suffix)[1:]} differ; leave one of them out")
    if own not in SUFFIXES and suffix is None:
        known = ", ".join(SUFFIXES)
        raise RbpxError(f"output={output} does not say its format; end it in {known}, or give --format csv")
    return own if own in SUFFIXES else str(suffix)


def known_complete(rows: Rows, store: Store, output: str | None) -> Rows:
    """Rows on their way to an output; where a file fails after some were printed, the error says that more are missing.

    Raises:
        MeasureError: a file of the store failed after rows were printed; files are written whole or not at all, so for
            an output that is a file the question can be repeated, as `read_again` does.
    """

    def parts() -> Iterator[pa.RecordBatch]:
        try:
            yield from rows
        except DamageError as problem:
            if output is not None:
                raise
            doubt(store)
            raise MeasureError(f"{problem}; the printed rows are not all: run the same line again") from None

    return Rows(rows.schema, parts())
