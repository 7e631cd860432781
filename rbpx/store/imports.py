"""Imported observations in the store: a file in, immutable Parquet with its provenance out, and back again."""

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
from rbpx.store.integrity import file_fault, read_whole, sound_files
from rbpx.store.observations import Observation, merge, read_observations, run_ids
from rbpx.store.schema import OBSERVATIONS
from rbpx.store.store import Record, Store, now

_PROVENANCE = b"rbpx.import"  # key in the metadata of the Parquet schema


@dataclass(frozen=True)
class Imported:
    """What one import brought.

    Attributes:
        observations: all that the file holds, each once.
        n_new: how many of them the store did not hold before.
        ignored: columns of the file that are not understood.
    """

    observations: tuple[Observation, ...]
    n_new: int
    ignored: tuple[str, ...]


def import_file(store: Store, path: Path, config: ImportConfig) -> Imported:
    """Check every row of a file, then keep those that are new as one Parquet file; all of them or none.

    Raises:
        RbpxError: the file, its columns or a row are not what they should be, or contradict the store.
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
        new = merge(read, held(store, str(config.source)))
        if new:
            said = {
                "source": config.source,
                "file": path.name,
                "sha256": table.sha256,
                "imported_at": now(),
                "columns": columns.mapping,
            }
            _write(store, new, said)
    return Imported(tuple(whole), len(new), columns.ignored)


def adopt(store: Store, path: Path) -> int:
    """Bring in one import of another store, with its provenance; returns how many of its observations were new.

    Raises:
        RbpxError: it contradicts what is held, or was not imported by rbpx.
        MeasureError: the store cannot be written.
    """
    said = provenance(path)
    with FileLock(store.root / ".imports.lock"):
        read = [(path.name, one) for one in _observations(read_whole(path))]
        new = merge(read, held(store, said["source"]))
        if new:
            _write(store, new, said)
    return len(new)


def _write(store: Store, new: list[Observation], said: Record) -> None:
    runs = run_ids(new)
    records = [asdict(one) | {"run_id": runs[one.run]} for one in new]
    columns = OBSERVATIONS.with_metadata({_PROVENANCE: json.dumps(said)})
    store.write_import(name_of_rows(said["source"], records), pa.Table.from_pylist(records, schema=columns))


def name_of_rows(source: str, records: list[Record]) -> str:
    """The name of a file of observations: whose they are, and a digest of all that they say."""
    return f"{source}-{digest(records)}"


def held(store: Store, source: str) -> list[Observation]:
    """The observations of one source.

    Raises:
        RbpxError: a file of imports is damaged or foreign, so that nobody knows what is held.
    """
    for path in store.import_files():
        provenance(path)
        fault = file_fault(path)
        if fault is not None:
            raise RbpxError(f"{path} is damaged: {fault}; move it out of the store, and import its file again")
    return [one for said, table in _tables(store) if said["source"] == source for one in _observations(table)]


def _observations(table: pa.Table) -> list[Observation]:
    return [Observation(**{n: v for n, v in record.items() if n != "run_id"}) for record in table.to_pylist()]


def listed(store: Store) -> list[Record]:
    """Each import: source, file, sha256, imported_at, columns, and its n_observations, families, datasets, sizes, k."""
    rows = []
    for said, table in _tables(store):
        held = {name: _distinct(table, name) for name in ("family", "dataset", "size", "k", "n")}
        rows.append(said | {"n_observations": table.num_rows} | held)
    return sorted(rows, key=lambda row: (row["source"], row["imported_at"]))


def imported_run_ids(store: Store) -> set[str]:
    """The run_ids of imported observations, to which fits may point."""
    return {run_id for _, table in _tables(store) for run_id in _distinct(table, "run_id")}


def provenance_of(store: Store, run_id: str) -> Record | None:
    """Where an imported run comes from, with its rows; None if there is none of that id."""
    for said, table in _tables(store):
        rows = [record for record in table.to_pylist() if record["run_id"] == run_id]
        if rows:
            return {"run_id": run_id, **said, "rows": rows}
    return None


def remove_source(store: Store, source: str) -> int:
    """Forget all that was imported from a source; returns how many imports that were."""
    with FileLock(store.root / ".imports.lock"):
        paths = [path for path in sound_files(store, store.import_files()) if provenance(path)["source"] == source]
        for path in paths:
            path.unlink()
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
    known: Record = json.loads(metadata[_PROVENANCE])
    return known


def _distinct(table: pa.Table, name: str) -> list[Any]:
    return list(dict.fromkeys(table[name].to_pylist()))
