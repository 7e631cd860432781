"""Copies what another store holds and this one lacks: from a folder (`merge`) or from object storage (`pull`).

Everything is checked as it enters, by the checks of `verify`, and trusted afterwards.
"""

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from rbpx.errors import MeasureError, RbpxError, reason
from rbpx.store.imports.storage import adopt
from rbpx.store.records import (
    BESIDE,
    MANIFEST,
    MANIFESTS,
    RECORDS,
    Record,
    contradiction,
    is_name,
    place_of,
    read_record,
)
from rbpx.store.verify import imported_runs, read_own, run_fault, runs_of

if TYPE_CHECKING:
    from rbpx.store.store import Store

REFERRED: Final = ("vocab", "samples")  # runs refer to these, so they are copied first
FILES: Final = (*BESIDE, "imports")
_RECORD: Final = "record.json"  # what was fetched last


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

    def __init__(self, store: "Store") -> None:
        self.name, self._store, self._runs = store.name, store, store.run_ids()

    def names(self, kind: str) -> list[str]:
        """As `Source`; links are not followed, since they may lead anywhere."""
        if kind == MANIFESTS:
            return self._runs
        return [path.stem for path in self._store.paths(kind) if not path.is_symlink()]

    def get(self, path: str, to: Path) -> None:
        """As `Source`."""
        source = self._store.root / path
        if source.is_symlink() or (source.exists() and not source.is_file()):
            raise ValueError(f"{path} is no regular file")
        shutil.copyfile(source, to)

    def get_table(self, run_id: str, name: str, sha256: str, to: Path) -> None:
        """As `Source`."""
        self.get(f"runs/{run_id}/{name}", to)


@dataclass
class Merged:
    """How many of each kind were copied or here already, and a line for each thing skipped."""

    copied: Counter[str] = field(default_factory=Counter)
    already_here: Counter[str] = field(default_factory=Counter)
    skipped: list[str] = field(default_factory=list)


def missing(
    source: Source, kind: str, has: Callable[[str], bool], merged: Merged, advance: Callable[[], None] = lambda: None
) -> Iterator[str]:
    """The names of a kind that a source has and a target has not; counts the others."""
    for name in source.names(kind):
        if not is_name(name):
            of, none = ("run ", "run") if kind == MANIFESTS else (f"{kind}/", "record")
            merged.skipped.append(f"{of}{name!r} has a name that no {none} has")
        elif has(name):
            merged.already_here[kind] += 1
        else:
            yield name
        if kind == MANIFESTS:
            advance()


def merge(store: "Store", other: Source, advance: Callable[[], None] = lambda: None) -> Merged:
    """Merge another store into this one; a repeated merge copies nothing, a stopped one resumes.

    Raises:
        RbpxError: a run of the other store has a newer format than this version reads.
        MeasureError: the store cannot be written.
    """
    with store.scratch() as folder:
        return _Merging(store, other, folder).everything(advance)


class _Merging:
    def __init__(self, store: "Store", other: Source, folder: Path) -> None:
        self.store, self.other, self.folder, self.merged = store, other, folder, Merged()

    def everything(self, advance: Callable[[], None]) -> Merged:
        """Copy what runs refer to, each run with its cells, and what refers to runs."""
        for kind in REFERRED:
            self._files(kind)
        cells = defaultdict[str, list[tuple[str, Record]]](list)
        for name, cell in self._records("cells"):
            cells[cell["run_id"]].append((name, cell))
        for run_id in missing(self.other, MANIFESTS, lambda run_id: False, self.merged, advance):
            self._run(run_id)
            for name, cell in cells[run_id] if self.store.has_run(run_id) else ():  # at once: no answer has a bare run
                self._cell(name, cell)
        for kind in FILES:
            self._files(kind)
        known = {*self.store.run_ids(), *imported_runs(self.store)}
        answered = {_asked(cell) for cell in self.store.records("cells")}
        for kind in (kind for kind in RECORDS if kind != "cells"):
            for name, record in self._records(kind):
                if known.issuperset(runs_of(kind, record)) and (kind != "failures" or _asked(record) not in answered):
                    self.store.write_record(kind, name, record)
                    self.merged.copied[kind] += 1
        return self.merged

    def _run(self, run_id: str) -> None:
        is_here, skipped = self.store.has_run(run_id), self.merged.skipped
        try:
            facts = self._fetched(MANIFESTS, run_id)
            if not is_here:
                self.store.place_run(run_id, lambda folder: self._fill(run_id, facts, folder))
        except ValueError as problem:
            skipped.append(f"run {run_id}: it is corrupt: {problem}")
        except FileNotFoundError as problem:
            skipped.append(f"run {run_id}: {Path(problem.filename or '').name} is missing")
        except OSError as problem:
            if not self.store.has_run(run_id):  # otherwise another process has just copied it
                raise self.store.unwritten(problem) from None
        else:
            ours = self.store.record(MANIFESTS, run_id)
            if ours is None or ours["files"] != facts["files"]:
                skipped.append(
                    f"run {run_id}: this store has it with other bytes and keeps those; to take the other copy, type "
                    f"rbpx store rm {run_id}, then merge again"
                )
            else:
                (self.merged.already_here if is_here else self.merged.copied)[MANIFESTS] += 1

    def _fill(self, run_id: str, facts: Record, folder: Path) -> None:
        folder.mkdir()
        shutil.copyfile(self.folder / _RECORD, folder / MANIFEST)
        for name, sha256 in facts["files"].items():
            self.other.get_table(run_id, name, sha256, folder / name)
        fault = run_fault(run_id, folder)
        if fault is not None:
            raise ValueError(fault)

    def _fetched(self, kind: str, name: str) -> Record:
        """A record of the other store, of which nothing is wrong."""
        self.other.get(place_of(kind, name), self.folder / _RECORD)
        return read_record(kind, name, self.folder / _RECORD)

    def _files(self, kind: str) -> None:
        """Copy the Parquet files of a folder that may come alone, or whose runs are here."""
        copied = self.merged.copied
        for name in missing(self.other, kind, lambda name: self.store.file(kind, name).is_file(), self.merged):
            copy = self.folder / f"{name}.parquet"
            if kind in BESIDE and not self.store.has_run(name):
                continue
            try:
                self.other.get(place_of(kind, name), copy)
                read_own(kind, copy)
                if kind == "imports":
                    n_new = adopt(self.store, copy)
                    copied["observations"] += n_new
                    self.merged.already_here["imports"] += not n_new
                    continue
            except MeasureError:
                raise
            except (RbpxError, OSError, ValueError, LookupError) as problem:
                self.merged.skipped.append(f"{place_of(kind, name)}: {reason(problem)}")
                continue
            self.store.place_file(self.store.file(kind, name), copy.replace)
            copied[kind] += 1

    def _records(self, kind: str) -> Iterator[tuple[str, Record]]:
        """The sound records of a kind, by name; of other kinds than cells those that are not here."""
        file = self.store.file
        for name in missing(self.other, kind, lambda name: kind != "cells" and file(kind, name).exists(), self.merged):
            try:
                record = self._fetched(kind, name)
            except (OSError, ValueError) as problem:
                self.merged.skipped.append(f"{place_of(kind, name)}: {reason(problem)}")
            else:
                yield name, record

    def _cell(self, name: str, cell: Record) -> None:
        here, run_id = self.store.record("cells", name), cell["run_id"]
        if here is not None and here["run_id"] == run_id:
            self.merged.already_here["cells"] += 1
            return
        try:
            fault = contradiction(cell, self.store.manifest(run_id))
        except (OSError, ValueError) as problem:
            fault = f"its run {run_id} is damaged here: {reason(problem)}"
        if here is not None:
            self.merged.skipped.append(f"cell {name}: run {here['run_id']} answers it here, run {run_id} there")
        elif fault is not None:
            self.merged.skipped.append(f"cells/{name}.json: {fault}")
        else:
            self.store.write_record("cells", name, cell)
            self.merged.copied["cells"] += 1


def _asked(record: Record) -> tuple[str, ...]:
    return record["family"], record["size"], record["dataset"]
