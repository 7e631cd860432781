"""Copies what another store holds and this one lacks: from a folder (`merge`) or from object storage (`pull`).

Everything is checked as it enters, by the checks of `verify`, and trusted afterwards.
"""

import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from rbpx.errors import MeasureError, RbpxError, reason
from rbpx.store.imports.storage import adopt
from rbpx.store.records import BESIDE, MANIFESTS, NO_ROWS, RECORDS, Record, contradiction, is_name, read_record
from rbpx.store.store import MANIFEST, Store
from rbpx.store.verify import imported_runs, read_own, run_fault, runs_of

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
        if source.is_symlink() or (source.exists() and not source.is_file()):
            raise ValueError(f"{path} is no regular file")
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
    cells = defaultdict[str, list[tuple[str, Record]]](list)
    for name, cell in _records(store, other, "cells", merged):
        cells[cell["run_id"]].append((name, cell))
    for run_id in other.names("runs"):
        _bring_run(store, other, run_id, merged)
        for name, cell in cells[run_id] if store.has_run(run_id) else ():  # at once, as no answer has a run without
            _bring_cell(store, name, cell, merged)
        advance()
    for kind in FILES:
        for name in other.names(kind):
            if kind not in BESIDE or store.has_run(name):
                _bring_file(store, other, kind, name, merged)
    known = {*store.run_ids(), *imported_runs(store)}
    answered = {_asked(cell) for cell in store.records("cells")}
    for kind in (kind for kind in RECORDS if kind != "cells"):
        for name, record in _records(store, other, kind, merged):
            if known.issuperset(runs_of(kind, record)) and (kind != "failures" or _asked(record) not in answered):
                store.write_record(kind, name, record)
                merged.copied[kind] += 1
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
    return read_record(MANIFESTS, run_id, folder / MANIFEST)[0]


def _differs(store: Store, other: Source, run_id: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        theirs = _manifest(other, run_id, Path(folder))
    ours = store.read(MANIFESTS, run_id, store.manifest_file(run_id))
    return ours is None or bool(ours[0]["files"] != theirs["files"])


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


def _records(store: Store, other: Source, kind: str, merged: Merged) -> Iterator[tuple[str, Record]]:
    """The sound records of a kind in another store, by name; but for cells those alone that are not here."""
    for name in other.names(kind):
        if not is_name(name):
            merged.skipped.append(f"{kind}/{name!r} has a name that no record has")
            continue
        if kind != "cells" and store.record_file(kind, name).exists():
            merged.already_here[kind] += 1
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                other.get(f"{kind}/{name}.json", Path(folder) / "record.json")
                record, _ = read_record(kind, name, Path(folder) / "record.json")
            except (OSError, ValueError) as problem:
                merged.skipped.append(f"{kind}/{name}.json: {reason(problem)}")
                continue
        yield name, record


def _bring_cell(store: Store, name: str, cell: Record, merged: Merged) -> None:
    """Copy a cell whose run is here; an existing one stays as it is."""
    here = store.record("cells", name)
    if here is not None:
        if here["run_id"] == cell["run_id"]:
            merged.already_here["cells"] += 1
        else:
            merged.skipped.append(f"cell {name}: run {here['run_id']} answers it here, run {cell['run_id']} there")
        return
    try:
        fault = contradiction(cell, store.manifest(cell["run_id"]))
    except (OSError, ValueError) as problem:
        fault = f"its run {cell['run_id']} is damaged here: {reason(problem)}"
    if fault is None:
        store.write_record("cells", name, cell)
        merged.copied["cells"] += 1
    else:
        merged.skipped.append(f"cells/{name}.json: {fault}")


def _asked(record: Record) -> tuple[str, ...]:
    return record["family"], record["size"], record["dataset"]
