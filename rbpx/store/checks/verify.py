"""Verifies a whole store: finds what is not as it was written or does not add up, and says what to do about it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb

from rbpx.errors import DamageError, RbpxError, first_line
from rbpx.store.checks.integrity import (
    UNREADABLE,
    file_fault,
    is_copy,
    lost_vocabularies,
    read_whole,
    run_fault,
    run_files,
    run_remedy,
)
from rbpx.store.checks.values import RecordError, copied_folders, read_record
from rbpx.store.files.inside import KINDS
from rbpx.store.files.ledger import is_evicted, missing
from rbpx.store.forecasts import backdated, forecast_id, lost_before
from rbpx.store.imports.kept import imported_run_ids, provenance
from rbpx.store.schema import with_all
from rbpx.store.sql.queries import ask
from rbpx.store.sql.relations import BY_FILE
from rbpx.store.store import RUN_TABLES, Record, Store

_RELATIVE = 1e-6  # logprob is kept in float32
_BYTES = ("n_bytes", "n_bytes_scored")
_AGAIN = {
    "vocab": "measure that tokenizer's runs again",
    "temperatures": "ask temperature again",
    "best": "measure with best=5 again",
    "import": "import the file again",
    "sample": "measure on that dataset again",
}

_MADE_AGAIN = {"forecasts": "rbpx store merge OTHER from a store that has it"}  # the model may have come meanwhile


@dataclass(frozen=True)
class Fault:
    """Something wrong in a store.

    Attributes:
        kind: `run`, `cell`, `fit`, `rank_fit`, `failure`, `forecast`, `vocab`, `temperatures`, `best`, `import`,
            `sample` or `folder`.
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
        faults: what is wrong, runs first.
        n_runs: runs checked.
        n_cells: requests checked.
        n_records: fits, rank_fits, failures and forecasts checked.
        n_files: vocabularies, temperatures, imports and samples checked.
        n_bytes: read and hashed, of all runs.
        n_tokens: rows of `tokens` in sound runs.
        n_orphaned: sound runs that no cell names; the command that measured them links them again.
        leftovers: files and folders that processes are writing, or left when they were killed.
    """

    faults: list[Fault]
    n_runs: int
    n_cells: int
    n_records: int
    n_files: int
    n_bytes: int
    n_tokens: int
    n_orphaned: int
    leftovers: list[str]


def verify(store: Store, advance: Callable[[int], None] = lambda n_bytes: None) -> Verified:
    """Read every byte of a store, and check everything in it against manifests, names and counts.

    Args:
        store: the store.
        advance: called with the number of bytes read.

    Raises:
        RbpxError: a run has a newer format than this version reads.
    """
    faults: list[Fault] = []
    store.drop_copies()
    run_ids, broken, n_bytes, n_tokens = store.run_ids(), set(), 0, 0
    for run_id in run_ids:
        fault = run_fault(store, run_id)
        if fault is None:
            facts = store.manifest(run_id)
            fault = sums_fault(facts, partial(store.part, run_id))
            n_tokens += 0 if fault else facts["n_tokens"]
        if fault is not None:
            broken.add(run_id)
            faults.append(Fault("run", run_id, fault, run_remedy(run_id, fault)))
        read = sum(path.stat().st_size for path in run_files(store, run_id) if path.is_file())
        n_bytes += read
        advance(read)
    named_by_cells = set()
    for kind in KINDS:
        for record in _readable(store, kind, faults):
            if kind == "cells":
                named_by_cells.add(record["run_id"])
            faults += _record_faults(store, kind, record)
    faults += _file_faults(store)
    faults += _losses(store)
    faults += _copied_folders(store)
    return Verified(
        faults=faults,
        n_runs=len(run_ids),
        n_cells=len(store.record_files("cells")),
        n_records=sum(len(store.record_files(kind)) for kind in KINDS if kind != "cells"),
        n_files=len([*store.vocab_files(), *store.import_files(), *store.all_beside(), *store.sample_files()]),
        n_bytes=n_bytes,
        n_tokens=n_tokens,
        n_orphaned=len(set(run_ids) - broken - named_by_cells),
        leftovers=[str(path.relative_to(store.root)) for path in store.leftovers()],
    )


def sums_fault(facts: Record, part: Callable[[str], Path]) -> str | None:
    """How the rows of a run differ from its manifest; None where they do not.

    Args:
        facts: of the manifest.
        part: the name of a table -> its file.
    """
    try:
        with duckdb.connect(":memory:") as connection:
            for table in RUN_TABLES:
                connection.register(table, with_all(read_whole(part(table)), BY_FILE[table]))
            limits = {"vocab_size": facts["vocab_size"], "relative": _RELATIVE}
            (n,) = ask(connection, "run_counts", run_id=facts["run_id"], **limits).to_pylist()
    except (*UNREADABLE, duckdb.Error, DamageError) as problem:  # sealed so: not by rbpx
        return f"its tables are not those of a run ({first_line(problem)})"
    promised = facts["n_tokens"]
    sums = {
        "rows of tokens": (n["n_tokens"], promised),
        "different (doc_id, position)": (n["n_places"], n["n_rows"]),
        "rows of another run": (n["n_strangers"], 0),
        "tokens in rank_counts": (n["n_counted"], promised),
        "ranks that rank_counts counts differently": (n["n_apart"], 0),
        "scored tokens in documents": (n["n_scored"], promised),
        "documents whose number of tokens is not what they state": (n["n_misplaced"], 0),
        "documents": (n["n_documents"], facts["n_documents"] + facts["n_skipped"]),
        "documents with scored tokens": (n["n_scored_documents"], facts["n_documents"]),
    }
    beyond = {
        f"tokens that no vocabulary of {facts['vocab_size']:,} has, or without a log-probability": (n["n_beyond"], 0),
        "ranks whose log-probabilities rank_counts adds up differently": (n["n_sums_apart"], 0),
        **{f"{name} in documents": (n[name], facts[name]) for name in _BYTES if None not in (n[name], facts.get(name))},
    }
    apart = _first_apart(sums)
    if apart is not None:
        return apart
    mean = facts["cross_entropy_nats"]
    if promised and abs(n["cross_entropy_nats"] - mean) > _RELATIVE * abs(mean):
        return f"its tokens have a cross-entropy of {n['cross_entropy_nats']:.9g} nats, its manifest says {mean:.9g}"
    return _first_apart(beyond)


def _first_apart(sums: Mapping[str, tuple[int | None, int]]) -> str | None:
    for what, (counted, expected) in sums.items():
        if (counted or 0) != expected:
            return f"{counted or 0:,} {what}, expected {expected:,}"
    return None


def _readable(store: Store, kind: str, faults: list[Fault]) -> Iterator[Record]:
    for path in store.record_files(kind):
        try:
            record = read_record(path)
        except FileNotFoundError:  # removed by another process since it was listed
            continue
        except RecordError as problem:
            fault, remedy = str(problem), problem.remedy
        except (OSError, ValueError) as problem:
            remedy = f"remove {kind}/{path.name}, then {_MADE_AGAIN.get(kind, 'run the line that made it again')}"
            fault = f"it is corrupt ({problem})"
        else:
            yield record
            continue
        faults.append(Fault(kind.removesuffix("s"), path.stem, fault, remedy))


def _record_faults(store: Store, kind: str, record: Record) -> Iterator[Fault]:
    if kind == "cells" and not store.has_run(record["run_id"]):
        called = f"{record['family']} {record['size']} on {record['dataset']}"
        lost = f"its run {record['run_id']} ({called}) is missing"
        yield Fault("cell", record["cell_key"], lost, "run the line that measured it again")
    if kind in ("fits", "rank_fits"):
        named = record["run_ids"] if kind == "fits" else [record["run_id"]]
        imported = imported_run_ids(store) if not all(map(store.has_run, named)) else set()
        gone = [run_id for run_id in named if not store.has_run(run_id) and run_id not in imported]
        if gone:
            name = record["fit_id"] if kind == "fits" else record["run_id"]
            yield Fault(kind.removesuffix("s"), name, f"its run {gone[0]} is missing", "rbpx store gc")
    if kind == "forecasts":
        own = forecast_id(record)
        for before in lost_before(store, record):
            fault = f"it was registered after {before}, which is gone or has changed"
            yield Fault("forecast", own, fault, _MADE_AGAIN["forecasts"])
        if early := backdated(store, record):
            yield Fault("forecast", own, early, f"remove forecasts/{own}.json, or ask whoever wrote it")


def _file_faults(store: Store) -> list[Fault]:
    """Files beside the runs that are corrupt, not those of their names, or do not add up."""
    kinds = (
        ("vocab", store.vocab_files(), _vocab_fault),
        ("temperatures", store.beside_files("temperatures"), partial(_temperatures_fault, store)),
        ("best", store.beside_files("best"), partial(_best_fault, store)),
        ("import", store.import_files(), _import_fault),
        ("sample", store.sample_files(), lambda path: None),
    )
    faults = []
    for kind, paths, fault_of in kinds:
        for path in paths:
            try:
                fault = file_fault(store.fetch(path)) or fault_of(path)
            except DamageError as problem:
                fault = str(problem)
            if fault is not None:
                name = f"{path.parent.name}/{path.name}"
                then = "" if is_copy(fault) else f", then {_AGAIN[kind]}"
                faults.append(Fault(kind, path.stem, fault, f"remove {name}{then}"))
    return faults


def _losses(store: Store) -> Iterator[Fault]:
    """What was written and is gone."""
    for path in missing(store.root):
        folder = path.parent.name
        kind = folder if folder in _AGAIN else folder.removesuffix("s")
        fault, remedy = f"{folder}/{path.name} is in iCloud, not on this machine", "download it"
        if not is_evicted(path):
            fault = f"{folder}/{path.name} was written and is gone"
            again = _AGAIN.get(kind) or _MADE_AGAIN.get(folder, "run the line that made it again")
            remedy = f"{again}; if it was meant to go, rbpx store gc"
        yield Fault(kind, path.stem, fault, remedy)
    for tokenizer_hash, run_id in lost_vocabularies(store).items():
        fault = f"vocab/{tokenizer_hash}.parquet is gone, and run {run_id} refers to it"
        remedy = f"rbpx store merge OTHER from a copy that has it, or rbpx store rm {run_id} and measure it again"
        yield Fault("vocab", tokenizer_hash, fault, remedy)


def _copied_folders(store: Store) -> Iterator[Fault]:
    """Copies of whole folders, and of files within runs, which nothing reads."""
    for path, kind in copied_folders(store.root):
        yield Fault("folder", path.name, f"it looks like a copy of {kind}/ and is not read", "move it out of the store")
    for run_id in store.run_ids():
        own = {path.name for path in run_files(store, run_id)}
        for path in sorted(store.run_folder(run_id).glob("[!.]*")):
            if path.suffix in (".json", ".parquet") and path.name not in own:
                fault = f"runs/{run_id}/{path.name} does not belong to the run and is not read"
                yield Fault("run", run_id, fault, "remove that file")


def _temperatures_fault(store: Store, path: Path) -> str | None:
    table = read_whole(path)
    if run_fault(store, path.stem) is not None:
        return None  # which is said of the run
    facts = store.manifest(path.stem)
    for at in table.group_by("beta").aggregate([("n_tokens", "sum")]).to_pylist():
        if at["n_tokens_sum"] != facts["n_tokens"]:
            return f"{at['n_tokens_sum']:,} tokens at beta = {at['beta']:g}, expected {facts['n_tokens']:,}"
    return None


def _best_fault(store: Store, path: Path) -> str | None:
    if run_fault(store, path.stem) is not None:
        return None  # which is said of the run
    tokens = read_whole(store.part(path.stem, "tokens")).select(["doc_id", "position"])
    same = read_whole(path).select(["doc_id", "position"]).equals(tokens)
    return None if same else "its positions are not those of the tokens of its run"


def _vocab_fault(path: Path) -> str | None:
    ids = read_whole(path)["token_id"].to_pylist()
    return None if ids == list(range(len(ids))) else "its token ids are not 0, 1, 2, ... without a gap"


def _import_fault(path: Path) -> str | None:
    try:
        provenance(path)
    except RbpxError as problem:
        return str(problem)
    return None
