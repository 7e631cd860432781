"""Verifies a store: checksums and row counts of tables against manifests, and records against what they name.

`merge` and `pull` apply the same checks to what another store sends.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from rbpx.errors import reason
from rbpx.files.digest import digest_of_rows
from rbpx.store.messages import warn_damage
from rbpx.store.parquet import UNREADABLE, changed, read_whole
from rbpx.store.records import BESIDE, MANIFEST, MANIFESTS, RECORDS, Record, contradiction, read_record
from rbpx.store.relations import LINK, UNLINKED, list_of, read_sql, scan
from rbpx.store.schema import BY_FILE, columns_fault

if TYPE_CHECKING:
    from rbpx.store.store import Store


@dataclass(frozen=True)
class Fault:
    """A fault of a run, or of a record or file by its kind, as `cell`, `rank_fit` or `import`."""

    kind: str
    name: str
    fault: str
    remedy: str


@dataclass(frozen=True)
class Verified:
    """The result of a verification.

    Attributes:
        faults: runs first.
        n_records: requests, fits, failures and forecasts.
        n_files: vocabularies, imports, samples and files of `BESIDE`.
        n_bytes: of runs; n_tokens in sound ones.
        leftovers: unfinished files of running or killed processes.
    """

    faults: list[Fault]
    n_runs: int
    n_records: int
    n_files: int
    n_bytes: int
    n_tokens: int
    leftovers: list[str]


def verify(store: "Store", advance: Callable[[int], None] = lambda n_bytes: None) -> Verified:
    """Check every byte of a store against manifests, names and counts; `advance` counts them."""
    faults: list[Fault] = []
    run_ids, manifests, sound, n_bytes = store.run_ids(), dict[str, Record](), list[str](), 0
    for run_id in run_ids:
        fault = run_fault(run_id, store.run_folder(run_id))
        with suppress(OSError, ValueError):  # which is its fault
            manifests[run_id] = store.manifest(run_id)
        if fault is not None:
            again = f"rbpx store rm {run_id}, then run the line that measured it again"
            faults.append(Fault("run", run_id, fault, again))
        else:
            sound.append(run_id)
            if not store.has_vocab(vocab := manifests[run_id]["tokenizer_hash"]):
                lost = f"vocab/{vocab}.parquet is gone, to which it refers"
                faults.append(Fault("run", run_id, lost, "rbpx store merge OTHER from a copy that has it"))
        read = store.run_bytes(run_id)
        n_bytes += read
        advance(read)
    linked, n_records, imported = set[str](), 0, imported_runs(store)
    of_records = list[Fault]()
    for kind in RECORDS:
        for path in store.paths(kind):
            n_records += 1
            fault, remedy = _record_fault(store, kind, path, manifests, imported, linked)
            if fault:
                of_records.append(Fault(kind.removesuffix("s"), path.stem, fault, remedy))
    faults += [Fault("run", run_id, UNLINKED, LINK) for run_id in store.unlinked(sound, linked)]
    faults += of_records
    files = [(kind, path) for kind in ("vocab", "imports", "samples", *BESIDE) for path in store.paths(kind)]
    for kind, path in files:
        try:
            read_own(kind, path)
        except UNREADABLE as problem:
            of = kind.removesuffix("s") if kind in ("imports", "samples") else kind
            remedy = f"remove {kind}/{path.name}, and make it again"
            faults.append(Fault(of, path.stem, reason(problem), remedy))
    leftovers = [str(path.relative_to(store.root)) for path in store.leftovers()]
    n_tokens = sum(manifests[run_id]["n_tokens"] for run_id in sound)
    return Verified(faults, len(run_ids), n_records, len(files), n_bytes, n_tokens, leftovers)


def _record_fault(
    store: "Store", kind: str, path: Path, manifests: Mapping[str, Record], imported: set[str], linked: set[str]
) -> tuple[str | None, str]:
    """The fault of a record, or of what it names, with its remedy; adds the runs of cells to `linked`."""
    again = f"remove {kind}/{path.name}, then run the line that made it again"
    try:
        record = read_record(kind, path.stem, path)
    except (OSError, ValueError) as problem:
        return reason(problem), again
    gone = [run_id for run_id in runs_of(kind, record) if not store.has_run(run_id) and run_id not in imported]
    if kind == "cells":
        run_id = record["run_id"]
        linked.add(run_id)
        called = f"{record['family']} {record['size']} on {record['dataset']}"
        if gone:
            return f"its run {run_id} ({called}) is missing", "run the line that measured it again"
        return contradiction(record, manifests[run_id]) if run_id in manifests else None, again
    if gone:
        return f"its run {gone[0]} is missing", "rbpx store gc"
    if kind == "forecasts":
        for run_id, sha256 in (record.get("runs") or {}).items():
            if run_id in manifests and sha256 != tables_hash(manifests[run_id]):
                return f"it rests on run {run_id}, which is another one by now", "ask whoever wrote it"
    return None, again


def imported_runs(store: "Store") -> set[str]:
    """The run_ids of imported observations; logs each file that cannot be read."""
    found = set[str]()
    for path in store.files("imports"):
        try:
            found.update(pq.read_table(path, columns=["run_id"])["run_id"].unique().to_pylist())
        except UNREADABLE as problem:
            warn_damage(store.root, f"imports/{path.name}", reason(problem), "remove it, and import it again")
    return found


def runs_of(kind: str, record: Record) -> list[str]:
    """The runs that a record names."""
    if kind == "fits":
        return list(record["run_ids"])
    return [record["run_id"]] if kind in ("cells", "rank_fits") else []


def tables_hash(manifest: Mapping[str, object]) -> str:
    """The SHA-256 of the tokens of a run, which identifies its tables."""
    files = manifest.get("files")
    return str(files.get("tokens.parquet")) if isinstance(files, dict) else ""


# --------------------------------------------------------------------------------------------------------- one by one


def run_fault(run_id: str, folder: Path) -> str | None:
    """The fault of the folder of a run; reads every byte; raises as `check_format`."""
    try:
        try:
            facts = read_record(MANIFESTS, run_id, folder / MANIFEST)
        except ValueError as problem:
            return reason(problem)
        for name, sha256 in facts["files"].items():
            path = folder / name
            if path.is_symlink() or (path.exists() and not path.is_file()):
                return f"{name} is no regular file"
            differs = changed(path, sha256)
            if differs is not None:
                return differs
        return _tables_fault(folder, facts)
    except FileNotFoundError as problem:
        return f"{Path(problem.filename).name} is missing"
    except UNREADABLE as problem:
        return f"it cannot be read ({reason(problem)})"


def _tables_fault(folder: Path, facts: Record) -> str | None:
    with _database().cursor() as connection:
        for table, columns in BY_FILE.items():
            path = folder / f"{table}.parquet"
            strange = columns_fault(table, pq.read_schema(path), columns)
            if strange is not None:
                return f"{path.name} {strange}"
            connection.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS FROM {scan(columns, list_of([str(path)]))}")
        (query,) = connection.extract_statements(read_sql("run_fault"))
        (found,) = connection.execute(query, {name: facts.get(name) for name in query.named_parameters}).fetchall()
    fault: str | None = found[0]
    return fault


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for all runs, as opening one takes longer than the query."""
    return duckdb.connect(":memory:")


def read_own(kind: str, path: Path) -> pa.Table:
    """As `read_whole`, for a file outside the runs; ValueError where rows are not of its name, as those of a copy."""
    table, column = read_whole(path), {"vocab": "tokenizer_hash", **dict.fromkeys(BESIDE, "run_id")}.get(kind)
    is_other = kind == "imports" and path.stem.rpartition("-")[2] != digest_of_rows(table)
    if is_other or (column and table[column].unique().to_pylist() != [path.stem]):
        raise ValueError("its rows are of another name")
    return table
