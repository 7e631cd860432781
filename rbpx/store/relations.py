"""The relations of a store as Arrow tables and datasets, made from its records and files without the corrupt ones."""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from rbpx.store import schema
from rbpx.store.forecasts import rows_of
from rbpx.store.integrity import sound_files, sound_runs, warn_of_losses
from rbpx.store.known_rows import Stamps, known_rows
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
OF_ONE_ROW = ("fits", "rank_fits", "failures")  # relations with a row for each record
_VERIFIED = pyarrow.dataset.ParquetFileFormat(
    default_fragment_scan_options=pyarrow.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
)


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
    return [str(store.run_folder(run_id) / f"{relation}.parquet") for run_id in _sound(store, run_ids)]


def dataset(store: Store, relation: str, run_ids: Sequence[str] | None = None) -> Any:
    """The files of a relation (`files`) as one Arrow dataset; without files it is empty but has its columns.

    Each file of a run is declared to contain only that run, so that a question about one run opens no other file, and
    the run_id that all of its rows share is not read.
    """
    columns = {**BY_FILE, **ALSO_BY_FILE}[relation]
    paths = files(store, relation, run_ids)
    if not paths:
        return columns.empty_table()
    if relation in ALSO_BY_FILE:
        return pyarrow.dataset.dataset(paths, schema=columns, format=_VERIFIED)
    system, run_id = store.file_system(), pyarrow.dataset.field("run_id")
    parts = [_VERIFIED.make_fragment(path, system, run_id == Path(path).parent.name) for path in paths]
    return pyarrow.dataset.FileSystemDataset(parts, columns, _VERIFIED, system)


def table(store: Store, relation: str, run_ids: Sequence[str] | None = None) -> pa.Table:
    """`runs`, of sound runs that the caller may know, or a relation of `BY_RECORD`, as a table."""
    if relation == "runs":
        return _table(_run_rows(store, _sound(store, run_ids)), schema.RUNS)
    if relation == "forecasts":
        return _table([row for record in store.records(relation) for row in rows_of(record)], schema.FORECASTS)
    return _table(list(store.records(relation)), BY_RECORD[relation])


def record_tables(store: Store, stamps: Mapping[str, Stamps]) -> dict[str, pa.Table]:
    """Relations of `OF_ONE_ROW` as tables, in name order; only the records are read that the index does not have.

    Args:
        store: the store.
        stamps: of all records of each relation that is wanted, taken before.
    """
    known, tables = known_rows(store, stamps), {}
    for relation in stamps:
        columns = BY_RECORD[relation]
        names, rows = known.get(relation, ([], columns.empty_table()))
        had = set(names)
        others = {name: store.record(relation, name) for name in stamps[relation] if name not in had}
        read = {name: record for name, record in others.items() if record is not None}
        at = {name: place for place, name in enumerate([*names, *read])}
        both = pa.concat_tables([rows, _table(list(read.values()), columns)])
        order = pa.array([at[name] for name in stamps[relation] if name in at], pa.int64())
        tables[relation] = both.take(order)
    return tables


def _sound(store: Store, run_ids: Sequence[str] | None) -> Sequence[str]:
    return sound_runs(store) if run_ids is None else run_ids


def _run_rows(store: Store, run_ids: Sequence[str]) -> list[Record]:
    """A row for each request that was answered: the facts of its run, with the names in the request."""
    sound = set(run_ids)
    rows = []
    for cell in store.records("cells"):
        if cell["run_id"] in sound:
            rows.append(store.manifest(cell["run_id"]) | cell)
        elif not store.has_run(cell["run_id"]):
            warn_damage(
                _LOGGER,
                store.root,
                f"run {cell['run_id']} ({cell['family']} {cell['size']} on {cell['dataset']}) is gone from "
                f"store={store.name}; run the line that measured it again",
            )
    warn_of_losses(store, [row["tokenizer_hash"] for row in rows])
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
