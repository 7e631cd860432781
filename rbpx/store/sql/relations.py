"""The relations of a store as Arrow tables and datasets, made from its records and files without the corrupt ones.

What the index has already is not read again: a record is known by its name and the stamp of its file, a row of `runs`
by those of its record and of the manifest that it was made of. What is corrupt is not in the index, so every command
reads it again and reports it; an index that is damaged, or of an older version, knows nothing.

Files in object storage are fetched when a question first opens them.
"""

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from pyarrow import fs

from rbpx.errors import RbpxError
from rbpx.files.entries import stamp
from rbpx.store import schema
from rbpx.store.checks.integrity import sound_files, sound_runs, warn_of_losses
from rbpx.store.forecasts import rows_of
from rbpx.store.messages import warn_damage
from rbpx.store.store import BESIDE, MANIFEST, Record, Store

_problems: Final[list[RbpxError]] = []  # of files that could not be fetched, until someone takes them


def fetched_when_opened(fetch: Callable[[Path], None]) -> fs.PyFileSystem:
    """Local files, before each of which `fetch` is called with its path."""
    return fs.PyFileSystem(_Lazy(fetch))


def take_problem() -> RbpxError | None:
    """Why a file could not be fetched since this was last asked; what opened it says only that it is empty."""
    problem = _problems[0] if _problems else None
    _problems.clear()
    return problem


class _Lazy(fs.FileSystemHandler):  # type: ignore[misc]
    def __init__(self, fetch: Callable[[Path], None]) -> None:
        self._fetch, self._local = fetch, fs.LocalFileSystem()

    def open_input_file(self, path: str) -> pa.NativeFile:
        try:
            self._fetch(Path(path))
        except RbpxError as problem:  # an exception here would be raised in a thread of Arrow, and stop everything
            _problems.append(problem)
            return pa.BufferReader(b"")
        return self._local.open_input_file(path)

    open_input_stream = open_input_file

    def get_type_name(self) -> str:
        return "rbpx"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        return self._local.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return self._local.get_file_info(selector)

    def _read_only(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError("only read")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _read_only
    move = copy_file = open_output_stream = open_append_stream = _read_only

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__


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
    return _ask(index, lambda index: {of: _known(index, of, stamps, manifests) for of, stamps in wanted.items()}, {})


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
    _create(index, TABLE, _texts(("relation", "name", "stamp"), noted))


def write_columns(index: duckdb.DuckDBPyConnection, columns: Mapping[tuple[str, str], str]) -> None:
    """Note in an index that is being built which columns the files of its runs have."""
    noted = [(*names, each) for names, each in columns.items()]
    _create(index, COLUMNS, _texts(("relation", "run_id", "columns"), noted))


def _texts(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> pa.Table:
    return pa.table({name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(names)})


def _create(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    connection.register("rows_of_table", rows)
    connection.execute(f"CREATE TABLE {name} AS FROM rows_of_table")
    connection.unregister("rows_of_table")


_LOGGER = logging.getLogger(__name__)
BY_FILE = {
    "tokens": schema.ITEMS_TOKENS,
    "rank_counts": schema.RANK_COUNTS,
    "documents": schema.ITEMS_DOCUMENTS,
}
ALSO_BY_FILE = {  # beside the runs
    "vocab": schema.VOCAB,
    "imported": schema.OBSERVATIONS,
    "temperatures": schema.TEMPERATURES,
    "best": schema.BEST,
}
BY_RECORD = {
    "fits": schema.FITS,
    "rank_fits": schema.RANK_FITS,
    "failures": schema.FAILURES,
    "forecasts": schema.FORECASTS,
}
_OF_ONE_ROW = ("fits", "rank_fits", "failures")  # relations with a row for each record, beside `runs`
_VERIFIED = pyarrow.dataset.ParquetFileFormat(
    default_fragment_scan_options=pyarrow.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
)


class _Runs(pyarrow.dataset.FileSystemDataset):  # type: ignore[misc]
    """A file for each run; a question about one of them reads its file as it is, without comparing each run_id."""

    def scanner(self, columns: Any = None, filter: Any = None, **options: Any) -> Any:
        parts = list(self.get_fragments(filter=filter))
        if filter is None or len(parts) != 1 or not filter.equals(parts[0].partition_expression):
            return super().scanner(columns=columns, filter=filter, **options)
        # In a thread of its own Arrow reads no faster, as questions are asked on all cores.
        return parts[0].scanner(schema=self.schema, columns=columns, use_threads=False, **options)


def files(store: Store, relation: str, run_ids: Sequence[str] | None = None) -> list[str]:
    """Parquet files of `tokens`, `rank_counts`, `documents`, `vocab`, `imported`, or one of `BESIDE`.

    Args:
        store: the store.
        relation: the relation.
        run_ids: the sound runs, where the caller knows them; to look again takes a second for some thousands.
    """
    if relation in ALSO_BY_FILE:
        if relation in BESIDE:
            paths = store.beside_files(relation)
        else:
            paths = store.vocab_files() if relation == "vocab" else store.import_files()
        return [str(path) for path in sound_files(store, paths)]
    runs = store.root / "runs"
    return [f"{runs}/{run_id}/{relation}.parquet" for run_id in _sound(store, run_ids)]


def dataset(store: Store, relation: str, run_ids: Sequence[str] | None = None) -> Any:
    """The files of a relation (`files`) as one Arrow dataset; without files it is empty but has its columns.

    Each file of a run is declared to contain only that run, so that a question about one run opens no other file, and
    the run_id that all of its rows share is not read.
    """
    columns = {**BY_FILE, **ALSO_BY_FILE}[relation]
    sound = _sound(store, run_ids) if relation in BY_FILE else None
    paths = files(store, relation, sound)
    if not paths:
        return columns.empty_table()
    if relation == "imported":
        columns = schema.with_varied(columns, (name for path in paths for name in pq.read_schema(path).names))
    if sound is None and relation not in BESIDE:
        return pyarrow.dataset.dataset(paths, schema=columns, format=_VERIFIED)
    system, of_run = store.file_system(), pyarrow.dataset.field("run_id")
    of_each = sound or [Path(path).stem for path in paths]
    parts = [
        _VERIFIED.make_fragment(path, system, of_run == run_id) for path, run_id in zip(paths, of_each, strict=True)
    ]
    return _Runs(parts, columns, _VERIFIED, system)


def table(store: Store, relation: str, run_ids: Sequence[str] | None = None) -> pa.Table:
    """`runs`, of sound runs that the caller may know, or a relation of `BY_RECORD`, as a table."""
    if relation == "runs":
        with opened_index(store) as index:
            return record_tables(store, stamps_of_runs(store, _sound(store, run_ids)), index)[relation]
    if relation == "forecasts":
        return _table([row for record in store.records(relation) for row in rows_of(store, record)], schema.FORECASTS)
    return _table(list(store.records(relation)), BY_RECORD[relation])


def stamps_of_runs(store: Store, run_ids: Iterable[str], with_fits: bool = False) -> dict[str, Stamps]:
    """The stamps by which rows are known, to be taken before any is read.

    They are those of all requests and of the manifests of sound runs, for `runs`; and of fits and failures if wanted.
    """
    runs = store.root / "runs"
    manifests = {run_id: str(stamp(f"{runs}/{run_id}/{MANIFEST}")) for run_id in run_ids}
    of_records = {name: stamps_of(store, name) for name in ("runs", *(_OF_ONE_ROW if with_fits else ()))}
    return {**of_records, MANIFESTS: manifests}


def create_tables(
    connection: duckdb.DuckDBPyConnection,
    store: Store,
    stamps: Mapping[str, Stamps],
    index: duckdb.DuckDBPyConnection | None,
) -> None:
    """Create the relations of records: forecasts, and those of which there are stamps."""
    _create(connection, "forecasts", table(store, "forecasts"))
    for name, rows in record_tables(store, stamps, index).items():
        _create(connection, name, rows)


def record_tables(
    store: Store, stamps: Mapping[str, Stamps], index: duckdb.DuckDBPyConnection | None
) -> dict[str, pa.Table]:
    """Relations with a row for each record as tables, in name order; what the index has is not read again.

    Args:
        store: the store.
        stamps: of all records of each relation that is wanted, taken before; for `runs` those of `stamps_of_runs`.
        index: as `opened_index` gives it.
    """
    known, tables = known_rows(index, stamps), {}
    for relation in stamps.keys() - {MANIFESTS}:
        columns = BY_RECORD.get(relation, schema.RUNS)
        names, rows = known.get(relation, ([], columns.empty_table()))
        had = set(names)
        others = [name for name in stamps[relation] if name not in had]
        if relation == "runs":
            read = _run_rows(store, others, stamps[MANIFESTS].keys())
        else:
            records = {name: store.record(relation, name) for name in others}
            read = {name: record for name, record in records.items() if record is not None}
        at = {name: place for place, name in enumerate([*names, *read])}
        both = pa.concat_tables([rows, _table(list(read.values()), columns)])
        order = pa.array([at[name] for name in stamps[relation] if name in at], pa.int64())
        tables[relation] = both.take(order)
    if "runs" in tables:
        warn_of_losses(store, tables["runs"]["tokenizer_hash"].unique().to_pylist())
    return tables


def _sound(store: Store, run_ids: Sequence[str] | None) -> Sequence[str]:
    return sound_runs(store) if run_ids is None else run_ids


def _run_rows(store: Store, names: Sequence[str], sound: Collection[str]) -> dict[str, Record]:
    """A row for each request of these names that was answered: the facts of its run, with the names in the request."""
    rows = {}
    for name in names:
        cell = store.record("cells", name)
        if cell is None:
            continue
        if cell["run_id"] in sound:
            rows[name] = store.manifest(cell["run_id"]) | cell
        elif not store.has_run(cell["run_id"]):
            warn_damage(
                _LOGGER,
                store.root,
                f"run {cell['run_id']} ({cell['family']} {cell['size']} on {cell['dataset']}) is gone from "
                f"store={store.name}; run the line that measured it again",
            )
    return rows


def _table(rows: list[Record], columns: pa.Schema) -> pa.Table:
    def value(row: Record, column: pa.Field) -> Any:
        cell = row.get(column.name)
        if cell is not None and pa.types.is_timestamp(column.type):
            return datetime.fromisoformat(cell)
        if cell is not None and pa.types.is_string(column.type) and not isinstance(cell, str):
            return json.dumps(cell)
        return cell

    return pa.table([pa.array([value(row, c) for row in rows], c.type) for c in columns], schema=columns)
