"""Copies what another store holds and this one lacks: from a folder (`merge`) or from object storage (`pull`).

Everything is checked as it enters, by the checks of `verify`, and trusted afterwards.
"""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from rbpx.errors import MeasureError, RbpxError, reason
from rbpx.store.imports.storage import adopt
from rbpx.store.store import BESIDE, MANIFEST, NO_ROWS, RECORDS, Record, Store, is_name, read_json
from rbpx.store.verify import imported_runs, manifest_fault, read_own, record_fault, run_fault, runs_of

REFERRED: Final = ("vocab", "samples")  # runs refer to these, so they are copied first
FILES: Final = (*BESIDE, "imports")


class Source(Protocol):
    """A store to copy from."""

    name: str

    def names(self, kind: str) -> list[str]:
        """The names in a folder of the store, without endings: of runs, records or Parquet files."""

    def get(self, path: str, to: Path) -> None:
        """Copy one file, by its path in a store."""

    def get_table(self, run_id: str, name: str, sha256: str, to: Path) -> None:
        """Copy one table of a run."""


class Folder:
    """A store on this machine."""

    def __init__(self, store: Store) -> None:
        """Copy from this store."""
        self.name, self._root = store.name, store.root
        self._runs = store.run_ids()

    def names(self, kind: str) -> list[str]:
        """As `Source`; links are not followed, since they may lead anywhere."""
        if kind == "runs":
            return self._runs
        ending = ".json" if kind in RECORDS else ".parquet"
        paths = sorted((self._root / kind).glob(f"[!.]*{ending}"))
        return [path.stem for path in paths if not path.is_symlink() and path.stem != NO_ROWS]

    def get(self, path: str, to: Path) -> None:
        """As `Source`."""
        source = self._root / path
        if source.is_symlink():
            raise ValueError(f"{path} is a link")
        shutil.copyfile(source, to)

    def get_table(self, run_id: str, name: str, sha256: str, to: Path) -> None:
        """As `Source`."""
        self.get(f"runs/{run_id}/{name}", to)


@dataclass
class Merged:
    """The result of a merge.

    Attributes:
        copied: kind -> how many: runs, cells, fits, rank_fits, failures, forecasts, vocab, samples, best,
            observations.
        already_here: kind -> how many this store had before.
        skipped: a line for each thing that was not copied, and why.
    """

    copied: Counter[str] = field(default_factory=Counter)
    already_here: Counter[str] = field(default_factory=Counter)
    skipped: list[str] = field(default_factory=list)


def merge(store: Store, other: Source, advance: Callable[[], None] = lambda: None) -> Merged:
    """Copy what another store has and this one lacks; a repeated merge copies nothing, a stopped one resumes.

    Raises:
        RbpxError: a run of the other store has a newer format than this version reads.
        MeasureError: the store cannot be written.
    """
    merged = Merged()
    store.prepare()
    for kind in REFERRED:
        for name in other.names(kind):
            _bring_file(store, other, kind, name, merged)
    for run_id in other.names("runs"):
        _bring_run(store, other, run_id, merged)
        advance()
    for kind in FILES:
        for name in other.names(kind):
            if kind not in BESIDE or store.has_run(name):
                _bring_file(store, other, kind, name, merged)
    known = {*store.run_ids(), *imported_runs(store)}
    for kind in RECORDS:
        answered = {_asked(cell) for cell in store.records("cells")} if kind == "failures" else set()
        for name in other.names(kind):
            _bring_record(store, other, kind, name, known, answered, merged)
    return merged


def _bring_run(store: Store, other: Source, run_id: str, merged: Merged) -> None:
    """Copy a run atomically; an existing one stays as it is."""
    if not is_name(run_id):
        merged.skipped.append(f"run {run_id!r} has a name that no run has")
        return

    def fill(folder: Path) -> None:
        folder.mkdir()
        facts = _manifest(other, run_id, folder)
        for name, sha256 in facts["files"].items():
            other.get_table(run_id, name, sha256, folder / name)
        fault = run_fault(run_id, folder)
        if fault is not None:
            raise ValueError(fault)

    try:
        if store.has_run(run_id):
            if _differs(store, other, run_id):
                merged.skipped.append(
                    f"run {run_id}: this store has it with other bytes and keeps those; to take the other copy, type "
                    f"rbpx store rm {run_id}, then merge again"
                )
            else:
                merged.already_here["runs"] += 1
            return
        store.place_run(run_id, fill)
        merged.copied["runs"] += 1
    except ValueError as problem:
        merged.skipped.append(f"run {run_id}: it is corrupt: {problem}")
    except FileNotFoundError as problem:
        merged.skipped.append(f"run {run_id}: {Path(problem.filename or '').name} is missing")
    except OSError as problem:
        if not store.has_run(run_id):  # otherwise another process has just copied it
            raise store.unwritten(problem) from None


def _manifest(other: Source, run_id: str, folder: Path) -> Record:
    other.get(f"runs/{run_id}/{MANIFEST}", folder / MANIFEST)
    facts = read_json(folder / MANIFEST)
    fault = manifest_fault(run_id, facts)
    if fault is not None:
        raise ValueError(fault)
    return facts


def _differs(store: Store, other: Source, run_id: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        theirs = _manifest(other, run_id, Path(folder))
    return bool(store.manifest(run_id).get("files") != theirs["files"])


def _bring_file(store: Store, other: Source, kind: str, name: str, merged: Merged) -> None:
    final = store.root / kind / f"{name}.parquet"
    if final.is_file() or not is_name(name):
        merged.already_here[kind] += 1
        return
    with store.scratch() as folder:
        copy = folder / f"{name}.parquet"
        try:
            other.get(f"{kind}/{name}.parquet", copy)
            read_own(kind, copy)
            if kind == "imports":
                n_new = adopt(store, copy)
                merged.copied["observations"] += n_new
                merged.already_here["imports"] += not n_new
                return
        except MeasureError:
            raise
        except (RbpxError, OSError, ValueError, LookupError) as problem:
            merged.skipped.append(f"{kind}/{name}.parquet: {reason(problem)}")
            return
        store.place_file(final, lambda to: shutil.copyfile(copy, to))
        merged.copied[kind] += 1


def _bring_record(
    store: Store, other: Source, kind: str, name: str, known: set[str], answered: set[tuple[str, ...]], merged: Merged
) -> None:
    """Copy a request or a fit whose runs are here, a failure, or a forecast; an existing one stays as it is."""
    if not is_name(name):
        merged.skipped.append(f"{kind}/{name!r} has a name that no record has")
        return
    is_here = store.record_file(kind, name).exists()
    if is_here and kind != "cells":
        merged.already_here[kind] += 1
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            other.get(f"{kind}/{name}.json", Path(folder) / "record.json")
            record = read_json(Path(folder) / "record.json")
            json.dumps(record, allow_nan=False)
            fault = record_fault(kind, name, record)
        except (OSError, ValueError) as problem:
            fault = reason(problem)
    if fault is not None:
        merged.skipped.append(f"{kind}/{name}.json: {fault}")
    elif is_here:
        here = store.record(kind, name)
        if here is None or here["run_id"] == record["run_id"]:
            merged.already_here[kind] += 1
        else:
            merged.skipped.append(f"cell {name}: run {here['run_id']} answers it here, run {record['run_id']} there")
    elif known.issuperset(runs_of(kind, record)) and (kind != "failures" or _asked(record) not in answered):
        store.write_record(kind, name, record)
        merged.copied[kind] += 1


def _asked(record: Record) -> tuple[str, ...]:
    return record["family"], record["size"], record["dataset"]
