"""Rows that the index has already: a record or a run that was not touched since is not read again.

A record is known by its name and the stamp of its file, a row of `runs` by those of its record and of the manifest that
it was made of. What is corrupt is not in the index, so every command reads it again and says so; an index that is
damaged, or of an older version, knows nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import duckdb
import pyarrow as pa

from rbpx.files.entries import stamp
from rbpx.store import schema
from rbpx.store.store import MANIFEST, Store

V = TypeVar("V")
INDEX: Final = "rbpx.duckdb"
TABLE: Final = "index_records"  # relation, name and stamp of each record that was there when the index was built
COLUMNS: Final = "index_columns"  # of each file of each of these runs, as Parquet has them
MANIFESTS: Final = "manifests"  # in the place of a relation, for the manifests of the runs of `runs`
# The relations and, as SQL, the names of their records. Failures are few, and old ones do not say their names.
_NAMES: Final = {
    "runs": "cell_key",
    "fits": "fit_id",
    "rank_fits": "concat_ws('-', run_id, ties, distribution)",
}
_SCHEMAS: Final = {"runs": schema.RUNS, "fits": schema.FITS, "rank_fits": schema.RANK_FITS}

Stamps = dict[str, str]
"""The stamp of each record of a kind by its name, in name order."""


def stamps_of(store: Store, relation: str) -> Stamps:
    """The stamps of all records of a relation; to be taken before they are read."""
    kind = "cells" if relation == "runs" else relation
    return {path.stem: str(stamp(path)) for path in store.record_files(kind)}


def stamps_of_manifests(store: Store, run_ids: Iterable[str]) -> Stamps:
    """The stamps of the manifests of runs; to be taken before they are read."""
    runs = store.root / "runs"
    return {run_id: str(stamp(f"{runs}/{run_id}/{MANIFEST}")) for run_id in run_ids}


@contextmanager
def opened_index(store: Store) -> Iterator[duckdb.DuckDBPyConnection | None]:
    """The index for all that is asked of it, as DuckDB takes 20 ms to open one; None where it cannot be opened.

    A connection of its own: what is damaged must not harm another.
    """
    path = store.root / INDEX
    if path.is_symlink() or not path.is_file():
        yield None
        return
    try:
        index = duckdb.connect(str(path), read_only=True)
    except duckdb.Error:  # truncated, or of another version: the files are authoritative
        yield None
        return
    with index:
        yield index


def known_state(index: duckdb.DuckDBPyConnection | None) -> str | None:
    """The state of the store that the index was built from."""

    def read(index: duckdb.DuckDBPyConnection) -> str | None:
        rows = index.execute("SELECT state FROM index_state").fetchall()  # all, or nothing else can be asked
        return str(rows[0][0]) if rows else None

    return _ask(index, read, None)


def known_rows(
    index: duckdb.DuckDBPyConnection | None, stamps_by_relation: Mapping[str, Stamps]
) -> dict[str, tuple[list[str], pa.Table]]:
    """For each relation the names of the records that the index has as they are now, and their rows.

    Those of `runs` are known where `stamps_by_relation` has their manifests too.
    """
    manifests = stamps_by_relation.get(MANIFESTS, {})
    wanted = {relation: stamps for relation, stamps in stamps_by_relation.items() if relation in _NAMES}

    def read(index: duckdb.DuckDBPyConnection) -> dict[str, tuple[list[str], pa.Table]]:
        return {name: _known(index, name, stamps, manifests) for name, stamps in wanted.items()}

    return _ask(index, read, {})


def known_columns(index: duckdb.DuckDBPyConnection | None, manifests: Stamps) -> dict[tuple[str, str], str]:
    """The columns of the files of runs that the index has as they are now: (relation, run_id) -> columns."""

    def read(index: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], str]:
        rows = index.execute(
            f"SELECT c.relation, c.run_id, c.columns, m.stamp FROM {COLUMNS} AS c "
            f"JOIN {TABLE} AS m ON m.relation = '{MANIFESTS}' AND m.name = c.run_id"
        ).fetchall()
        return {(name, run_id): columns for name, run_id, columns, seen in rows if manifests.get(run_id) == seen}

    return _ask(index, read, {})


def _ask(index: duckdb.DuckDBPyConnection | None, question: Callable[[duckdb.DuckDBPyConnection], V], nothing: V) -> V:
    """What the index says; nothing where there is none, or it turns out to be damaged or of another version."""
    if index is None:
        return nothing
    try:
        return question(index)
    except (duckdb.Error, pa.ArrowException, KeyError, UnicodeDecodeError):  # KeyError: it lacks a column
        return nothing


def _known(
    index: duckdb.DuckDBPyConnection, relation: str, stamps: Stamps, manifests: Stamps
) -> tuple[list[str], pa.Table]:
    of_runs = relation == "runs"
    rows = index.sql(
        f"SELECT r.name, r.stamp, {'m.stamp' if of_runs else 'NULL'} AS manifest, f.* "
        f"FROM {relation} AS f JOIN {TABLE} AS r ON r.relation = '{relation}' AND r.name = {_NAMES[relation]} "
        + (f"JOIN {TABLE} AS m ON m.relation = '{MANIFESTS}' AND m.name = f.run_id" if of_runs else "")
    ).to_arrow_table()
    names, then = rows["name"].to_pylist(), rows["stamp"].to_pylist()
    same = [at for at, (name, seen) in enumerate(zip(names, then, strict=True)) if stamps.get(name) == seen]
    if of_runs:
        run_ids, of_manifests = rows["run_id"].to_pylist(), rows["manifest"].to_pylist()
        same = [at for at in same if manifests.get(run_ids[at]) == of_manifests[at]]
    columns = _SCHEMAS[relation]
    return [names[at] for at in same], rows.take(pa.array(same, pa.int64())).select(columns.names).cast(columns)


def write_stamps(index: duckdb.DuckDBPyConnection, stamps_by_relation: Mapping[str, Stamps]) -> None:
    """Note in an index that is being built which records its rows are of."""
    noted = [(relation, *each) for relation, stamps in stamps_by_relation.items() for each in stamps.items()]
    _write(index, TABLE, ("relation", "name", "stamp"), noted)


def write_columns(index: duckdb.DuckDBPyConnection, columns: Mapping[tuple[str, str], str]) -> None:
    """Note in an index that is being built which columns the files of its runs have."""
    _write(index, COLUMNS, ("relation", "run_id", "columns"), [(*names, each) for names, each in columns.items()])


def _write(
    index: duckdb.DuckDBPyConnection, name: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]
) -> None:
    """A table of texts."""
    texts = {column: pa.array([row[at] for row in rows], pa.string()) for at, column in enumerate(columns)}
    index.register("noted", pa.table(texts))
    index.execute(f"CREATE TABLE {name} AS FROM noted")
    index.unregister("noted")
