"""Merges stores: copies what another store has and this one lacks, and checks it; nothing is replaced."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rbpx.errors import DamageError, MeasureError, RbpxError
from rbpx.files.digest import read_sealed
from rbpx.store.checks.integrity import checked_runs, fetched_fault, file_fault, run_fault
from rbpx.store.checks.values import RecordError, read_record
from rbpx.store.checks.verify import sums_fault
from rbpx.store.forecasts import backdated
from rbpx.store.imports.kept import adopt, imported_run_ids
from rbpx.store.store import BESIDE, MANIFEST, RUN_TABLES, Record, Store


class _CorruptCopy(Exception):
    """A run whose copy does not match its manifest."""


@dataclass
class Merged:
    """What one store copied from another.

    Attributes:
        copied: kind -> how many: runs, mended runs (damaged here before), cells, fits, rank_fits, failures, forecasts,
            vocab, samples, temperatures, best, observations.
        already_here: kind -> how many were in this store before.
        skipped: a line for each thing that was not copied, and why.
    """

    copied: Counter[str] = field(default_factory=Counter)
    already_here: Counter[str] = field(default_factory=Counter)
    skipped: list[str] = field(default_factory=list)


def merge(store: Store, other: Store, advance: Callable[[], None] = lambda: None) -> Merged:
    """Copy what another store has and this one lacks; a second merge copies nothing.

    Args:
        store: the store that is added to.
        other: the store that is read; it is not changed.
        advance: called after each run.

    Raises:
        RbpxError: a run of the other store has a newer format than this version reads.
        MeasureError: the store cannot be written.
    """
    merged = Merged()
    store.prepare()
    for path in [*other.vocab_files(), *other.sample_files()]:  # named by their contents
        _bring_file(store, other, path, path.parent.name, merged)
    _, damaged = checked_runs(store)
    for run_id in other.run_ids():
        _bring_run(store, other, run_id, run_id in damaged, merged)
        advance()
    for kind in BESIDE:
        for path in other.beside_files(kind):
            if store.has_run(path.stem):
                _bring_file(store, other, path, kind, merged)
    for path in other.import_files():
        _bring_import(store, path, merged)
    _bring_records(store, other, merged)
    return merged


def _bring_run(store: Store, other: Store, run_id: str, is_damaged: bool, merged: Merged) -> None:
    """Copy a run completely or not at all; one that is already here stays as it is, unless a table of it is damaged."""
    kind = "runs"
    if store.has_run(run_id):
        if not _same_files(store, other, run_id):
            merged.skipped.append(
                f"run {run_id}: this store has it with other bytes and keeps those; to take the other copy, type "
                f"rbpx store rm {run_id}, then merge again"
            )
            return
        if not is_damaged and not store.is_damaged(run_id, other.run_folder(run_id)):
            merged.already_here["runs"] += 1
            return
        kind = "mended runs"

    def copy(folder: Path) -> None:
        folder.mkdir()
        for path in (other.run_folder(run_id) / MANIFEST, *(other.part(run_id, table) for table in RUN_TABLES)):
            shutil.copyfile(path, folder / path.name)
        fault = run_fault(store, run_id, folder)
        if fault is None:  # a seal is no secret: what it says of its rows is held against them
            fault = sums_fault(read_sealed(folder / MANIFEST), lambda table: folder / f"{table}.parquet")
        if fault is not None:
            raise _CorruptCopy(fault)
        if kind != "runs":
            store.clear_run(run_id)

    fault = run_fault(other, run_id)
    if fault is None:
        try:
            store.place_run(run_id, copy)
        except (_CorruptCopy, DamageError) as problem:
            fault = str(problem)
        except OSError as problem:
            if not store.has_run(run_id):  # otherwise another process copied it meanwhile
                raise store.unwritten(problem) from None
    for each in (store, other):
        each.drop_copies(run_id)
    if fault is None:
        merged.copied[kind] += 1
    else:
        merged.skipped.append(f"run {run_id}: it is corrupt: {fault}")


def _same_files(store: Store, other: Store, run_id: str) -> bool:
    try:
        return bool(store.manifest(run_id)["files"] == other.manifest(run_id)["files"])
    except (OSError, ValueError, KeyError):
        return False


def _bring_file(store: Store, other: Store, path: Path, kind: str, merged: Merged) -> None:
    final = store.root / path.relative_to(other.root)
    if store.has_file(final):
        merged.already_here[kind] += 1
        return
    fault = fetched_fault(other, path)
    if fault is not None:
        merged.skipped.append(f"{kind}/{path.name}: it is corrupt: {fault}")
        return
    store.place_file(final, lambda copy: shutil.copyfile(path, copy))
    merged.copied[kind] += 1


def _bring_import(store: Store, path: Path, merged: Merged) -> None:
    try:
        fault = file_fault(path)
        n_new = 0 if fault else adopt(store, path)
    except MeasureError:
        raise
    except RbpxError as problem:
        fault = str(problem)
    if fault is None:
        merged.copied["observations"] += n_new
        merged.already_here["imports"] += not n_new
    else:
        merged.skipped.append(f"imports/{path.name}: {fault}")


def _bring_records(store: Store, other: Store, merged: Merged) -> None:
    """Copy requests whose run is here, fits whose runs are all here, failures that no run answers, and forecasts."""
    for name, cell in _records(other, "cells", merged):
        here = store.record("cells", name)
        if here is not None and here["run_id"] != cell["run_id"]:
            merged.skipped.append(f"cell {name}: run {here['run_id']} answers it here, run {cell['run_id']} there")
        elif store.has_run(cell["run_id"]):
            _bring_record(store, "cells", name, cell, merged)
    all_run_ids = {*store.run_ids(), *imported_run_ids(store)}
    for kind in ("fits", "rank_fits"):
        for name, fit in _records(other, kind, merged):
            if all_run_ids.issuperset(fit["run_ids"] if kind == "fits" else [fit["run_id"]]):
                _bring_record(store, kind, name, fit, merged)
    answered = {(cell["family"], cell["size"], cell["dataset"]) for cell in store.records("cells")}
    for name, failure in _records(other, "failures", merged):
        if (failure["family"], failure["size"], failure["dataset"]) not in answered:
            _bring_record(store, "failures", name, failure, merged)
    for name, forecast in _records(other, "forecasts", merged):
        if early := backdated(store, forecast):
            merged.skipped.append(f"forecasts/{name}.json: {early}")
        else:
            _bring_record(store, "forecasts", name, forecast, merged)


def _records(other: Store, kind: str, merged: Merged) -> Iterator[tuple[str, Record]]:
    for path in other.record_files(kind):
        try:
            yield path.stem, read_record(path)
        except RecordError as problem:
            merged.skipped.append(f"{kind}/{path.name}: {problem}")
        except (OSError, ValueError) as problem:
            merged.skipped.append(f"{kind}/{path.name}: it is corrupt ({problem})")


def _bring_record(store: Store, kind: str, name: str, record: Record, merged: Merged) -> None:
    if store.record(kind, name) is None:
        store.write_record(kind, name, record)
        merged.copied[kind] += 1
    else:
        merged.already_here[kind] += 1
