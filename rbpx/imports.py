"""Imported observations in the store: a file in, immutable Parquet with its provenance out, and back again."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from rbpx.columns import match_columns
from rbpx.config import ImportConfig
from rbpx.content import digest
from rbpx.errors import RbpxError
from rbpx.observations import Observation, merge, read_observations, run_ids
from rbpx.rows import read_rows
from rbpx.schema import OBSERVATIONS
from rbpx.store import Record, Store, now

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
    rows = read_rows(path)
    columns = match_columns(rows.columns, config.columns or {}, str(path))
    if config.ties is None and "ties" not in columns.named:
        raise RbpxError(f"{path} has no column ties, so give ties=pessimistic, ties=optimistic or ties=mid")
    read = read_observations(rows.rows, columns, config)
    whole = merge(read, ())
    store.prepare()
    with FileLock(store.root / ".imports.lock"):  # two imports at once must not contradict each other
        new = merge(read, held(store, str(config.source)))
        if new:
            provenance = {
                "source": config.source,
                "file": path.name,
                "sha256": rows.sha256,
                "imported_at": now(),
                "columns": columns.mapping,
            }
            _write(store, new, provenance)
    return Imported(tuple(whole), len(new), columns.ignored)


def _write(store: Store, new: list[Observation], provenance: Record) -> None:
    runs = run_ids(new)
    records = [asdict(one) | {"run_id": runs[one.run]} for one in new]
    columns = OBSERVATIONS.with_metadata({_PROVENANCE: json.dumps(provenance)})
    store.write_import(f"{provenance['source']}-{digest(records)}", pa.Table.from_pylist(records, schema=columns))


def held(store: Store, source: str) -> list[Observation]:
    """The observations of one source."""
    return [
        Observation(**{name: value for name, value in record.items() if name != "run_id"})
        for provenance, table in _tables(store)
        if provenance["source"] == source
        for record in table.to_pylist()
    ]


def listed(store: Store) -> list[Record]:
    """Each import: source, file, sha256, imported_at, columns, and its n_observations, families, datasets, sizes, k."""
    rows = []
    for provenance, table in _tables(store):
        held = {name: _distinct(table, name) for name in ("family", "dataset", "size", "k", "n")}
        rows.append(provenance | {"n_observations": table.num_rows} | held)
    return sorted(rows, key=lambda row: (row["source"], row["imported_at"]))


def imported_run_ids(store: Store) -> set[str]:
    """The run_ids of imported observations, to which fits may point."""
    return {run_id for _, table in _tables(store) for run_id in _distinct(table, "run_id")}


def provenance_of(store: Store, run_id: str) -> Record | None:
    """Where an imported run comes from, with its rows; None if there is none of that id."""
    for provenance, table in _tables(store):
        rows = [record for record in table.to_pylist() if record["run_id"] == run_id]
        if rows:
            return {"run_id": run_id, **provenance, "rows": rows}
    return None


def remove_source(store: Store, source: str) -> int:
    """Forget all that was imported from a source; returns how many imports that were."""
    with FileLock(store.root / ".imports.lock"):
        paths = [path for path in store.import_files() if _provenance(path)["source"] == source]
        for path in paths:
            path.unlink()
    return len(paths)


def _tables(store: Store) -> Iterator[tuple[Record, pa.Table]]:
    for path in store.import_files():
        yield _provenance(path), pq.ParquetFile(path).read()


def _provenance(path: Path) -> Record:
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
