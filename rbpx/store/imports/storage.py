"""Stores imported observations as immutable Parquet files with their provenance."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from rbpx.errors import RbpxError, reason
from rbpx.files.digest import digest_of_rows
from rbpx.store.imports.contradictions import not_stored
from rbpx.store.imports.identity import LATER, run_ids
from rbpx.store.imports.observations import ROW, SAID, stated
from rbpx.store.messages import warn_damage
from rbpx.store.parquet import read_whole
from rbpx.store.relations import OWN_STEM
from rbpx.store.schema import OBSERVATIONS, with_all, with_varied
from rbpx.store.store import Record, Store
from rbpx.store.verify import read_own

LOCK: Final = ".imports.lock"  # two imports at once must not contradict each other
_NOTHING: Final = SAID.empty_table()
_PROVENANCE: Final = b"rbpx.import"  # key in the metadata of the Parquet schema


def write(store: Store, new: pa.Table, origin: Record) -> str:
    """Store new observations of one source; returns the name of their file."""
    empty = [name for name in LATER if new[name].null_count == new.num_rows]  # so earlier files keep their names
    columns = pa.schema([each for each in with_varied(OBSERVATIONS, new.column_names) if each.name not in empty])
    rows = new.append_column(OBSERVATIONS.field("run_id"), run_ids(new)).select(columns.names)
    name = f"{origin['source']}-{digest_of_rows(rows)}"
    store.write_file("imports", name, rows.cast(columns.with_metadata({_PROVENANCE: json.dumps(origin)})))
    return name


def _read(path: Path, read: Callable[[Path], Any] = read_whole) -> tuple[Record, Any]:
    try:
        origin: Record = json.loads((pq.read_schema(path).metadata or {})[_PROVENANCE])
        if not all(isinstance(origin[name], str) for name in ("source", "file", "sha256", "imported_at")):
            raise ValueError("it does not say where it comes from")
        return origin, read(path)
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException) as problem:
        raise RbpxError(
            f"{path} is not as rbpx imported it ({reason(problem)}); move it out of the store, and import its file "
            "again"
        ) from None


def _each(store: Store, read: Callable[[Path], Any] = read_whole) -> Iterator[tuple[Path, Record, Any]]:
    """Each import with its provenance and observations; logs those that cannot be read."""
    for path in store.files("imports"):
        try:
            yield path, *_read(path, read)
        except RbpxError as problem:
            warn_damage(store.root, f"imports/{path.name}", str(problem), "import its file again")


def files_of(store: Store, source: str, file: str | None = None) -> dict[Path, str]:
    """The imports of one source with the names of their files; raises RbpxError for one not written by rbpx."""
    told = {path: _read(path, lambda path: None)[0] for path in store.files("imports")}
    of_source = {path: str(of["file"]) for path, of in told.items() if of["source"] == source}
    return {path: name for path, name in of_source.items() if file in (None, name)}


def observations_of(store: Store, source: str, file: str | None = None) -> tuple[pa.Table, pa.Table]:
    """The observations of one source that files of a name gave, and those of its others; raises as `files_of`."""
    tables: dict[bool, list[pa.Table]] = {True: [_NOTHING], False: [_NOTHING]}
    for path, name in files_of(store, source).items():
        if re.fullmatch(OWN_STEM, path.stem):  # no copies
            tables[name == file].append(_read(path, partial(read_own, "imports"))[1])
    # earlier versions had fewer columns, and S in whole numbers
    own, others = (pa.concat_tables(tables[is_of], promote_options="permissive") for is_of in (True, False))
    return own, others


def adopt(store: Store, path: Path) -> int:
    """Copy one import of another store with its provenance; returns the number of new observations.

    Raises:
        RbpxError: it is corrupt, contradicts observations in this store, or was not imported by rbpx.
        MeasureError: the store cannot be written.
    """
    origin, whole = _read(path, partial(read_own, "imports"))
    read = with_all(whole, with_varied(_NOTHING.schema, whole.column_names))
    read = read.append_column(ROW, pa.array(np.arange(read.num_rows)))
    with FileLock(store.root / LOCK):
        stored = observations_of(store, origin["source"])[1]
        judged = not_stored(read, stored, lambda row: f"row {row + 1}")
        faults = judged.faults.lines(lambda row: f"{path.name}, row {row + 1}")
        if faults:
            more = f" (and {len(judged.faults) - 1:,} more)" if len(judged.faults) > 1 else ""
            raise RbpxError(f"{faults[0]}{more}")
        if judged.new.num_rows:
            write(store, judged.new, origin)
    return int(judged.new.num_rows)


def remove_source(store: Store, source: str) -> int:
    """Remove all imports of a source; returns their number."""
    with FileLock(store.root / LOCK):
        paths = [path for path, of, _ in _each(store, lambda path: None) if of["source"] == source]
        for path in paths:
            path.unlink(missing_ok=True)
    return len(paths)


def list_imports(store: Store) -> list[Record]:
    """Each import with its provenance, its number of observations, and their names, sizes, k and n."""
    rows = []
    for _, origin, table in _each(store):
        contents = {name: table[name].unique().to_pylist() for name in ("family", "dataset", "size", "k", "n")}
        rows.append(origin | {"n_observations": int(stated(with_all(table, SAID)).sum())} | contents)
    return sorted(rows, key=lambda row: (row["source"], row["imported_at"]))


def provenance_of(store: Store, run_id: str) -> Record | None:
    """The provenance of an imported run, with its rows."""
    for _, origin, table in _each(store):
        rows = [record for record in table.to_pylist() if record["run_id"] == run_id]
        if rows:
            return {"run_id": run_id, **origin, "rows": rows}
    return None
