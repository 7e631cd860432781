"""The relations of a store as Arrow tables and datasets, made from its records and files without the corrupt ones."""

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset

from rbpx.store import schema
from rbpx.store.checks.integrity import sound_files, sound_runs, warn_of_losses
from rbpx.store.forecasts import rows_of
from rbpx.store.index.known_rows import MANIFESTS, Stamps, known_rows, opened_index, stamps_of, stamps_of_manifests
from rbpx.store.messages import warn_damage
from rbpx.store.store import BESIDE, Record, Store

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
OF_ONE_ROW = ("fits", "rank_fits", "failures")  # relations with a row for each record, beside `runs`
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


def stamps_of_runs(store: Store, run_ids: Sequence[str]) -> dict[str, Stamps]:
    """The stamps by which the rows of `runs` are known: of all requests, and of the manifests of sound runs."""
    return {"runs": stamps_of(store, "runs"), MANIFESTS: stamps_of_manifests(store, run_ids)}


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
