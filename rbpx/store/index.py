"""The index `rbpx.duckdb` over a store: rebuilt from its files under a lock and never the only copy of anything."""

import errno
import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from rbpx.errors import MeasureError
from rbpx.files.digest import digest
from rbpx.files.entries import atomic_write, is_full, is_refusal, leftovers, stamp
from rbpx.store.checks.integrity import sound_files, sound_runs
from rbpx.store.files import ledger
from rbpx.store.files.inside import KINDS, inside
from rbpx.store.files.ledger import HeldError, locked
from rbpx.store.sql import relations
from rbpx.store.sql.queries import read_sql
from rbpx.store.sql.relations import (
    INDEX,
    MANIFESTS,
    Stamps,
    known_columns,
    known_state,
    opened_index,
    write_columns,
    write_stamps,
)
from rbpx.store.store import Store

_LOGGER = logging.getLogger(__name__)
_STORAGE = "v1.0.0"  # DuckDB 1.x clients open it too


def refresh_index(store: Store, required: bool = True) -> Path:
    """Bring the index up to date with the files; a store that was moved has another state, so it is indexed again.

    Args:
        store: the store.
        required: whether a store that is read-only, or a full disk, is an error. Questions are answered from the files,
            so for them its index stays as it is.

    Raises:
        MeasureError: the index cannot be written.
    """
    path = store.root / INDEX
    if not store.indexed:
        store.finish()
        return path
    if re.search(r"[?\\]", str(path)):  # DuckDB takes what follows the one for options, and the other for a slash
        _LOGGER.warning(
            f"store={store.name} has a ? or a backslash in its path, where DuckDB can open no index; answered from the "
            "files, without it: move the store to have one"
        )
        return path
    if not required and not os.access(store.root, os.W_OK):
        return path
    try:
        store.root.mkdir(parents=True, exist_ok=True)
        with locked(store.root, f".{INDEX}.lock", waits=required):
            # Listed under the lock, so that what another process added meanwhile is included; corrupt files are not.
            run_ids = sound_runs(store)
            state = digest([_state(store), run_ids, *(columns.names for columns in relations.BY_RECORD.values())])
            with opened_index(store) as index:
                is_built = known_state(index) == state
                if not is_built:
                    _rebuild(store, path, state, run_ids, index)
            if not is_built:
                _enter_all(store)
    except HeldError as problem:
        _LOGGER.warning(f"{problem}; answered from the files, without the index")
        return path
    except OSError as problem:
        if not required and (is_refusal(problem) or is_full(problem)):
            return path
        raise _unwritten(path, problem.strerror or str(problem)) from None
    except duckdb.Error as problem:
        if not required and os.strerror(errno.ENOSPC) in str(problem):
            return path
        unwritten = re.search(r"Could not write file .*?: (.+)", str(problem))
        if unwritten is None and not isinstance(problem, duckdb.IOException | duckdb.OutOfMemoryException):
            raise
        raise _unwritten(path, unwritten[1] if unwritten else str(problem).partition("\n")[0]) from None
    return path


def _state(store: Store) -> str:
    """A digest of the store's contents; it changes when anything is added, replaced or removed."""
    beside = [*store.vocab_files(), *store.import_files(), *store.all_beside()]
    records = [path for kind in KINDS for path in store.record_files(kind)]
    stamps = [[path.name, stamp(path)] for path in records]
    return digest([str(store.root), store.run_ids(), [path.as_posix() for path in beside], stamps])


def _enter_all(store: Store) -> None:
    """Enter in the ledger what an earlier version wrote; copies get no entry."""
    for kind in ledger.KINDS:
        if kind in KINDS:
            unnoted = (path for path in store.record_files(kind) if not ledger.has(path))
            ledger.enter_all(path for path in unnoted if store.record(kind, path.stem))
        else:
            sound = sound_files(store, (store.root / kind).glob("[!.]*.parquet"))
            ledger.enter_all(path for path in sound if not ledger.has(path))


def _unwritten(path: Path, reason: str) -> MeasureError:
    return MeasureError(
        f"the index {path} cannot be written: {' '.join(reason.split())}; the files are whole: make room, then "
        "rbpx store rebuild"
    )


def _rebuild(
    store: Store, path: Path, state: str, run_ids: Sequence[str], before: duckdb.DuckDBPyConnection | None
) -> None:
    """Write the index from scratch; the caller has the lock, so its other temporary files are of killed processes.

    What has not changed since the index `before` is taken from it and not read again.
    """
    _remove_leftovers(store, path)
    try:
        with (
            atomic_write(inside(store.root, path), durable=False) as temporary,
            duckdb.connect(":memory:") as connection,
        ):
            connection.execute(f"ATTACH {_quoted(str(temporary))} AS built (STORAGE_VERSION '{_STORAGE}'); USE built")
            connection.execute("BEGIN")  # written once, not a statement at a time
            connection.execute("CREATE TABLE index_state AS SELECT ? AS state", [state])
            stamps = relations.stamps_of_runs(store, run_ids, with_fits=True)
            relations.create_tables(connection, store, stamps, before)
            write_stamps(connection, stamps)
            columns_of_files = _columns_of_files(store, stamps[MANIFESTS], before)
            write_columns(connection, columns_of_files)
            for name, columns in {**relations.BY_FILE, **relations.ALSO_BY_FILE}.items():
                paths = relations.files(store, name, run_ids)
                connection.register(f"{name}_arrow", columns.empty_table())
                if paths:
                    alike: dict[str, list[str]] = {}
                    for each in paths:
                        alike.setdefault(columns_of_files.get((name, Path(each).parent.name), ""), []).append(each)
                    connection.execute(f"CREATE TABLE {name}_columns AS FROM {name}_arrow")  # which older files lack
                    parts = [_read(of_these, of_any=not known) for known, of_these in alike.items()]
                    every = " UNION ALL BY NAME ".join([*parts, f"FROM {name}_columns"])
                    connection.execute(f"CREATE VIEW {name} AS {every}")
                else:
                    connection.execute(f"CREATE TABLE {name} AS FROM {name}_arrow")
            connection.execute(read_sql("relations"))
            connection.execute("COMMIT; USE memory; DETACH built")
    finally:
        _remove_leftovers(store, path)


def _columns_of_files(
    store: Store, manifests: Stamps, before: duckdb.DuckDBPyConnection | None
) -> dict[tuple[str, str], str]:
    """The columns of each file of the runs; only the files are opened that the index does not have."""
    known = known_columns(before, manifests)
    return {
        (name, run_id): known.get((name, run_id)) or str(pq.read_schema(store.run_folder(run_id) / f"{name}.parquet"))
        for name in relations.BY_FILE
        for run_id in manifests
    }


def _read(paths: Sequence[str], of_any: bool) -> str:
    """SQL for the rows of files; unless they are `of_any` columns, DuckDB opens only one of them to make a view."""
    quoted_paths = ", ".join(map(_quoted, paths))
    return f"FROM read_parquet([{quoted_paths}], hive_partitioning = false, union_by_name = {str(of_any).lower()})"


def _remove_leftovers(store: Store, path: Path) -> None:
    for leftover in leftovers(path):  # write-ahead logs among them
        inside(store.root, leftover).unlink(missing_ok=True)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def refresh_if_writable(store: Store) -> None:
    """Bring the index up to date where the store is writable; otherwise questions are answered from the files."""
    if store.root.is_dir():
        try:
            refresh_index(store, required=False)
        except MeasureError as problem:
            _LOGGER.warning(str(problem))
