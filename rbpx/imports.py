"""Imports: a file of other people's results and what is said beside it in, observations in the store out."""

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rbpx.config import ImportRequest
from rbpx.content import digest
from rbpx.observations import Given, read_observations, table, without_known
from rbpx.store import Record, Store, now

_ABOUT = b"rbpx"  # the key of the Parquet metadata under which an import says where it comes from


def bring(path: Path, request: ImportRequest, store: Store) -> tuple[str, list[str]]:
    """Import one file, all of it or nothing; what is there already is not written twice.

    Returns:
        One line that says what came in, and the columns that were not understood.

    Raises:
        RbpxError: the file or a row of it is wrong, or says something else than what is there from this source.
    """
    given = Given(
        source=request.source,
        ties=request.ties,
        family=request.family,
        dataset=request.dataset_name,
        protocol=request.protocol,
        dtype=request.dtype,
        revision=request.revision,
        columns=request.columns or {},
    )
    rows, ignored = read_observations(path, given)
    known = [row for about in imported(store, request.source) for row in about["observations"]]
    fresh = without_known(rows, known, path)
    if fresh:
        store.prepare()
        about = {
            "source": request.source,
            "file": path.name,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "imported_at": now(),
            "said": {name: value for name, value in vars(given).items() if value not in (None, {}, "")},
        }
        whole = table(fresh).replace_schema_metadata({_ABOUT: json.dumps(about).encode()})
        store.write_import(f"{request.source}-{digest(fresh)}", whole)
    models, texts, ks = (len({row[name] for row in rows}) for name in ("size", "dataset", "k"))
    there = "" if len(fresh) == len(rows) else f", {len(rows) - len(fresh)} of them there already"
    line = (
        f"{path.name}: {len(rows)} observations of {models} model(s) on {texts} text(s) at {ks} k from "
        f"source={request.source}{there}; store={store.root}"
    )
    return line, ignored


def imported(store: Store, source: str | None = None) -> list[Record]:
    """What each imported file was: source, file, sha256, imported_at, said, and its observations."""
    found = []
    for path in store.import_files():
        about = _about(pq.read_schema(path))
        if source in (None, about["source"]):
            found.append(about | {"path": path, "observations": pq.read_table(path).to_pylist()})
    return found


def _about(columns: pa.Schema) -> Record:
    about: Record = json.loads((columns.metadata or {})[_ABOUT])
    return about


def provenance(store: Store, run_id: str) -> list[Record]:
    """Where the observations of an imported run come from: one record a file."""
    found = []
    for about in imported(store):
        rows = [row for row in about["observations"] if row["run_id"] == run_id]
        if rows:
            known = {name: value for name, value in about.items() if name not in ("path", "observations")}
            found.append({"run_id": run_id, **known, "observations": rows})
    return found


def forget(store: Store, source: str) -> int:
    """Remove all that was imported under a source; returns how many observations that were."""
    gone = imported(store, source)
    for about in gone:
        about["path"].unlink()
    return sum(len(about["observations"]) for about in gone)
