"""Verifies a store: checksums and row counts of tables against manifests, and records against what they name.

`merge` and `pull` apply the same checks to what another store sends.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rbpx.errors import reason
from rbpx.files.digest import digest_of_rows, sha256_of
from rbpx.store.schema import check_format
from rbpx.store.store import (
    BESIDE,
    MANIFEST,
    NAMED_BY,
    NEEDED,
    RECORDS,
    RUN_TABLES,
    Record,
    Store,
    is_name,
    read_json,
)

_UNREADABLE: Final = (OSError, ValueError, LookupError, pa.ArrowException)
_FACTS: Final = (
    *("protocol", "dtype", "vocab_size", "text_hash", "tokenizer_hash", "cross_entropy_nats"),
    *("n_documents", "n_skipped", "n_tokens"),
)
_NAMES: Final = ("run_id", "cell_key", "fit_id", "failure_key", "tokenizer_hash")  # of files and folders of a store


@dataclass(frozen=True)
class Fault:
    """A fault in a store.

    Attributes:
        kind: `run`, `cell`, `fit`, `rank_fit`, `failure`, `forecast`, `vocab`, `best`, `import`.
        name: of the run, the record or the file.
        fault: what is wrong.
        remedy: what to do.
    """

    kind: str
    name: str
    fault: str
    remedy: str


@dataclass(frozen=True)
class Verified:
    """The result of a verification.

    Attributes:
        faults: runs first.
        n_runs: runs checked.
        n_records: requests, fits, failures and forecasts checked.
        n_files: vocabularies, imports, samples and files of `BESIDE` checked.
        n_bytes: bytes of runs read and hashed.
        n_tokens: rows of `tokens` in sound runs.
        n_orphaned: sound runs that no cell names; the command that measured them links them again.
        leftovers: temporary files and folders of running or killed processes.
    """

    faults: list[Fault]
    n_runs: int
    n_records: int
    n_files: int
    n_bytes: int
    n_tokens: int
    n_orphaned: int
    leftovers: list[str]


def verify(store: Store, advance: Callable[[int], None] = lambda n_bytes: None) -> Verified:
    """Read every byte of a store and check it against manifests, names and counts; `advance` counts the bytes."""
    faults: list[Fault] = []
    run_ids, sound, n_bytes, n_tokens = store.run_ids(), set[str](), 0, 0
    for run_id in run_ids:
        fault = run_fault(run_id, store.run_folder(run_id))
        if fault is None:
            facts = store.manifest(run_id)
            sound.add(run_id)
            n_tokens += facts["n_tokens"]
            if not store.has_vocab(facts["tokenizer_hash"]):
                lost = f"vocab/{facts['tokenizer_hash']}.parquet is gone, to which it refers"
                faults.append(Fault("run", run_id, lost, "rbpx store merge OTHER from a copy that has it"))
        else:
            again = f"rbpx store rm {run_id}, then run the line that measured it again"
            faults.append(Fault("run", run_id, fault, again))
        read = store.run_bytes(run_id)
        n_bytes += read
        advance(read)
    known = {*run_ids, *imported_runs(store)}
    named, n_records = set[str](), 0
    for kind in RECORDS:
        for path in store.record_files(kind):
            n_records += 1
            fault, remedy = _record_fault(store, kind, path, known, named)
            if fault:
                faults.append(Fault(kind.removesuffix("s"), path.stem, fault, remedy))
    files = [(kind, path) for kind in ("vocab", "imports", "samples", *BESIDE) for path in store.files(kind)]
    for kind, path in files:
        try:
            read_own(kind, path)
        except _UNREADABLE as problem:
            of = kind.removesuffix("s") if kind in ("imports", "samples") else kind
            remedy = f"remove {kind}/{path.name}, and make it again"
            faults.append(Fault(of, path.stem, reason(problem), remedy))
    leftovers = [str(path.relative_to(store.root)) for path in store.leftovers()]
    n_orphaned = len(sound - named)
    return Verified(faults, len(run_ids), n_records, len(files), n_bytes, n_tokens, n_orphaned, leftovers)


def _record_fault(store: Store, kind: str, path: Path, known: set[str], named: set[str]) -> tuple[str | None, str]:
    """The fault of a record, or of what it names, with its remedy; adds the runs of requests to `named`."""
    again = f"remove {kind}/{path.name}, then run the line that made it again"
    try:
        record = read_json(path)
    except (OSError, ValueError) as problem:
        return reason(problem), again
    fault = record_fault(kind, path.stem, record)
    if fault is not None:
        return fault, again
    if kind == "cells":
        named.add(record["run_id"])
        called = f"{record['family']} {record['size']} on {record['dataset']}"
        lost = None if store.has_run(record["run_id"]) else f"its run {record['run_id']} ({called}) is missing"
        return lost, "run the line that measured it again"
    gone = [run_id for run_id in runs_of(kind, record) if run_id not in known]
    if gone:
        return f"its run {gone[0]} is missing", "rbpx store gc"
    if kind == "forecasts":
        for run_id, sha256 in (record.get("runs") or {}).items():
            if store.has_run(run_id) and sha256 != tables_hash(store.manifest(run_id)):
                return f"it rests on run {run_id}, which is another one by now", "ask whoever wrote it"
    return None, again


def imported_runs(store: Store) -> set[str]:
    """The run_ids of imported observations, to which fits may refer; logs each file that cannot be read."""
    found = set[str]()
    for path in store.import_files():
        try:
            found.update(pq.read_table(path, columns=["run_id"])["run_id"].unique().to_pylist())
        except _UNREADABLE as problem:
            store.warn(f"imports/{path.name}", reason(problem), "remove it, and import it again")
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


def record_fault(kind: str, name: str, record: Record) -> str | None:
    """The fault of a record from this store or another; None without one.

    It ensures that every name in the record is a plain file name, and that the record's own is that of its file.
    """
    missing = [key for key in NEEDED[kind] if record.get(key) is None]
    if missing:
        return f"it has no {missing[0]}"
    if any(record.get(key) is not None and not is_name(record[key]) for key in _NAMES):
        return "it names what is no name"
    if kind == "fits" and not (isinstance(record["run_ids"], list) and all(map(is_name, record["run_ids"]))):
        return "its run_ids are no names"
    predictions = record.get("predictions") if kind == "forecasts" else [{}]
    if not (isinstance(predictions, list) and predictions and all(isinstance(each, dict) for each in predictions)):
        return "it has no predictions"
    own = NAMED_BY.get(kind)
    if own is not None and record[own] != name:
        return f"it is the record {record[own]} under another name"
    return None


def manifest_fault(run_id: str, facts: Record) -> str | None:
    """The fault of a manifest; None without one.

    Raises:
        RbpxError: it has a newer format than this version reads.
    """
    if facts.get("run_id") != run_id:
        return f"manifest.json is that of run {facts.get('run_id')!r}"
    check_format(run_id, facts.get("format"))
    missing = [name for name in _FACTS if facts.get(name) is None]
    if missing or not is_name(facts["tokenizer_hash"]):
        return f"manifest.json has no {missing[0] if missing else 'tokenizer_hash'}"
    files = facts.get("files")
    hashes = files if isinstance(files, dict) else {}
    if sorted(hashes) != sorted(f"{table}.parquet" for table in RUN_TABLES):
        return "manifest.json does not name the tables of a run"
    if not all(isinstance(each, str) and re.fullmatch("[0-9a-f]{64}", each) for each in hashes.values()):
        return "manifest.json does not give the SHA-256 of each table"
    return None


def run_fault(run_id: str, folder: Path) -> str | None:
    """The fault of the folder of a run, None without one; reads every byte.

    Raises:
        RbpxError: the run has a newer format than this version reads.
    """
    try:
        facts = read_json(folder / MANIFEST)
        fault = manifest_fault(run_id, facts)
        if fault is not None:
            return fault
        for name, sha256 in facts["files"].items():
            if (folder / name).is_symlink() or sha256_of(folder / name) != sha256:
                return f"{name} has changed since it was written (its sha256 is not the manifest's)"
        for table in RUN_TABLES:
            rows = pq.read_table(folder / f"{table}.parquet", columns=["run_id"])
            if rows["run_id"].unique().to_pylist() not in ([], [run_id]):
                return f"{table}.parquet has rows of another run"
        n_tokens = _n_counted(folder / "tokens.parquet")
        if n_tokens != facts["n_tokens"]:
            return f"{n_tokens:,} rows of tokens, expected {facts['n_tokens']:,}"
    except FileNotFoundError as problem:
        return f"{Path(problem.filename).name} is missing"
    except _UNREADABLE as problem:
        return f"it cannot be read ({reason(problem)})"
    return None


def read_whole(path: Path) -> pa.Table:
    """Read a whole Parquet file and verify the checksums of its pages."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        return file.read()


def read_own(kind: str, path: Path) -> pa.Table:
    """As `read_whole`, for a file outside the runs, whose rows must match its name.

    Raises:
        ValueError: the rows belong to another name, as those of a copy, or have changed.
    """
    table, column = read_whole(path), {"vocab": "tokenizer_hash", **dict.fromkeys(BESIDE, "run_id")}.get(kind)
    is_other = kind == "imports" and path.stem.rpartition("-")[2] != digest_of_rows(table)
    if is_other or (column and table[column].unique().to_pylist() != [path.stem]):
        raise ValueError("its rows are of another name")
    return table


def _n_counted(tokens: Path) -> int:
    """The number of tokens that count: those of wrong choices of an item do not."""
    file = pq.ParquetFile(tokens)
    if "correct" not in file.schema_arrow.names:
        return int(file.metadata.num_rows)
    wrong = pc.equal(file.read(columns=["correct"])["correct"], False)
    return int(file.metadata.num_rows - (pc.sum(wrong).as_py() or 0))
