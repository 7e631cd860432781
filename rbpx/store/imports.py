"""Imported observations: results of others, kept in the store as immutable Parquet files with their provenance."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from rbpx.config.imports import ImportConfig
from rbpx.errors import RbpxError
from rbpx.files.columns import match_columns
from rbpx.files.digest import digest
from rbpx.files.rows import read_table
from rbpx.store import ledger
from rbpx.store.integrity import file_fault, is_copy, read_whole, sound_files
from rbpx.store.observations import Observation, merge, read_observations, run_ids
from rbpx.store.schema import OBSERVATIONS
from rbpx.store.store import Record, Store, now

_PROVENANCE = b"rbpx.import"  # key in the metadata of the Parquet schema


@dataclass(frozen=True)
class Imported:
    """The result of one import.

    Attributes:
        observations: all those in the file, each once.
        n_new: how many of them were not in the store before.
        ignored: columns of the file that were not recognised.
    """

    observations: tuple[Observation, ...]
    n_new: int
    ignored: tuple[str, ...]


def import_file(store: Store, path: Path, config: ImportConfig) -> Imported:
    """Check every row of a file, then write the new ones to the store as one Parquet file; all of them or none.

    Raises:
        RbpxError: the file, its columns or a row are invalid, or contradict the store.
        MeasureError: the store cannot be written.
    """
    table = read_table(path)
    columns = match_columns(table.columns, config.columns or {}, str(path))
    if config.ties is None and "ties" not in columns.named:
        raise RbpxError(f"{path} has no column ties, so give ties=pessimistic, ties=optimistic or ties=mid")
    read = read_observations(table.rows, columns, config)
    whole = merge(read, ())
    store.prepare()
    with FileLock(store.root / ".imports.lock"):  # two imports at once must not contradict each other
        new = merge(read, observations_of(store, str(config.source)))
        if new:
            origin = {
                "source": config.source,
                "file": path.name,
                "sha256": table.sha256,
                "imported_at": now(),
                "columns": columns.mapping,
            }
            _write(store, new, origin)
    return Imported(tuple(whole), len(new), columns.ignored)


def adopt(store: Store, path: Path) -> int:
    """Copy one import of another store, with its provenance; returns how many of its observations were new.

    Raises:
        RbpxError: it contradicts observations in this store, or was not imported by rbpx.
        MeasureError: the store cannot be written.
    """
    origin = provenance(path)
    with FileLock(store.root / ".imports.lock"):
        read = [(path.name, one) for one in _observations(read_whole(path))]
        new = merge(read, observations_of(store, origin["source"]))
        if new:
            _write(store, new, origin)
    return len(new)


def _write(store: Store, new: list[Observation], origin: Record) -> None:
    runs = run_ids(new)
    records = [asdict(one) | {"run_id": runs[one.run]} for one in new]
    columns = OBSERVATIONS.with_metadata({_PROVENANCE: json.dumps(origin)})
    store.write_import(name_of_rows(origin["source"], records), pa.Table.from_pylist(records, schema=columns))


def name_of_rows(source: str, records: list[Record]) -> str:
    """The name of a file of observations: their source, and a digest of all their values."""
    return f"{source}-{digest(records)}"


def observations_of(store: Store, source: str) -> list[Observation]:
    """The observations of one source.

    Raises:
        RbpxError: a file of imports is corrupt or not written by rbpx, so that its observations are unknown.
    """
    for path in store.import_files():
        provenance(path)
        fault = file_fault(path)
        if fault is not None and not is_copy(fault):
            raise RbpxError(f"{path} is corrupt: {fault}; move it out of the store, and import its file again")
    return [one for origin, table in _tables(store) if origin["source"] == source for one in _observations(table)]


def _observations(table: pa.Table) -> list[Observation]:
    return [Observation(**{n: v for n, v in record.items() if n != "run_id"}) for record in table.to_pylist()]


def dataset_names(store: Store) -> list[str]:
    """The names of the texts that a store holds, measured or imported, sorted."""
    imported = {name for one in list_imports(store) for name in one["dataset"]}
    return sorted(imported | {cell["dataset"] for cell in store.records("cells")})


def list_imports(store: Store) -> list[Record]:
    """Each import: source, file, sha256, imported_at, columns, and its n_observations, families, datasets, sizes, k."""
    rows = []
    for origin, table in _tables(store):
        contents = {name: _distinct(table, name) for name in ("family", "dataset", "size", "k", "n")}
        rows.append(origin | {"n_observations": table.num_rows} | contents)
    return sorted(rows, key=lambda row: (row["source"], row["imported_at"]))


def imported_run_ids(store: Store) -> set[str]:
    """The run_ids of imported observations, to which fits may refer."""
    return {run_id for _, table in _tables(store) for run_id in _distinct(table, "run_id")}


def provenance_of(store: Store, run_id: str) -> Record | None:
    """Where an imported run comes from, with its rows; None if there is no run with that id."""
    for origin, table in _tables(store):
        rows = [record for record in table.to_pylist() if record["run_id"] == run_id]
        if rows:
            return {"run_id": run_id, **origin, "rows": rows}
    return None


def remove_source(store: Store, source: str) -> int:
    """Remove all that was imported from a source; returns the number of imports removed."""
    with FileLock(store.root / ".imports.lock"):
        paths = [path for path in sound_files(store, store.import_files()) if provenance(path)["source"] == source]
        for path in paths:
            ledger.remove(path)
    return len(paths)


def _tables(store: Store) -> Iterator[tuple[Record, pa.Table]]:
    for path in sound_files(store, store.import_files()):
        yield provenance(path), read_whole(path)


def provenance(path: Path) -> Record:
    """Where the observations of one file come from.

    Raises:
        RbpxError: it cannot be read, or was not imported by rbpx.
    """
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, ValueError) as problem:
        raise RbpxError(f"{path} cannot be read: {' '.join(str(problem).split())}; move it out of the store") from None
    if _PROVENANCE not in metadata:
        raise RbpxError(f"{path} was not imported by rbpx; move it out of the store and import it from there")
    origin: Record = json.loads(metadata[_PROVENANCE])
    return origin


def _distinct(table: pa.Table, name: str) -> list[Any]:
    return list(dict.fromkeys(table[name].to_pylist()))
