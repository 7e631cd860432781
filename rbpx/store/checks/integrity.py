"""Integrity of a store's files: which of them are as they were written, and what is wrong with the others.

Every file of a run is checked against the sha256 in its manifest, once per command, on all cores. That costs 2 s of
a core per GiB (538 MB/s) and 0.3 ms a manifest, so for a store above 256 MiB, or of more than 256 runs, the results are
cached in `.checked.json` until the size, a time or the inode of a file changes. A bit that flips on the disk itself
changes none of these. Such a flip is left to the checksums of Parquet pages, which are verified whenever pages are read
(a fifth more time) and do not cover the few bytes of the page headers; when a file fails, `doubt` discards the cached
results, so that all files are checked again. `store verify` always reads every byte.
"""

import contextlib
import hashlib
import logging
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rbpx.errors import DamageError, RbpxError, number_of, reason
from rbpx.files.digest import digest, read_cache, read_sealed, write_cache
from rbpx.files.entries import NoFileError, plain_file, stamp
from rbpx.store.checks.values import COPY_OF, copied_folders, copy_of_run, file_misnamed, named_tables, value_fault
from rbpx.store.files.inside import TABLES_OF_RUN, inside, is_plain
from rbpx.store.files.ledger import missing
from rbpx.store.messages import warn_damage
from rbpx.store.schema import FORMAT
from rbpx.store.store import BESIDE, MANIFEST, RUN_TABLES, Record, Store

_LOGGER = logging.getLogger(__name__)
_CACHE = ".checked.json"
_RUN_FILES = (MANIFEST, *(f"{table}.parquet" for table in RUN_TABLES))
_REMEMBERED_FROM_BYTES, _REMEMBERED_FROM_ITEMS = 1 << 28, 256
TABLE_MIB = 1 << 16  # of a Parquet file: ten billion tokens
UNREADABLE = (OSError, ValueError, LookupError, pa.ArrowException)  # what reading a damaged Parquet file raises
_CORRUPT = "corrupt and left out: {}; remove it, and make it again"
_checked_before: dict[tuple[Path, str], dict[str, Any]] = {}  # results of this process, for smaller stores
_PROMISED = {"protocol", "dtype", "vocab_size", "text_hash", "tokenizer_hash", "cross_entropy_nats", "files"} | {
    f"n_{what}" for what in ("documents", "skipped", "tokens", "bytes")
}


def sound_runs(store: Store) -> list[str]:
    """Runs whose files are as they were written, in name order; each of the others is logged once per command.

    Raises:
        RbpxError: a run has a newer format than this version reads.
    """
    sound, faults = checked_runs(store)
    if faults:
        cells = {cell["run_id"]: cell for cell in store.records("cells")}
        for run_id, fault in faults.items():
            what = "not counted" if is_copy(fault) else "corrupt and left out"
            warn_damage(
                _LOGGER,
                store.root,
                f"run {run_id}{_called(cells.get(run_id))} is {what}: {fault}; {run_remedy(run_id, fault)}",
            )
    return sound


def checked_runs(store: Store) -> tuple[list[str], dict[str, str]]:
    """Runs that are sound, and what is wrong with each of the others; read again only where a file has changed.

    Raises:
        RbpxError: a run has a newer format than this version reads.
    """
    folders = {run_id: str(store.run_folder(run_id)) for run_id in store.run_ids()}
    files = {
        run_id: [folder] if os.path.islink(folder) else [f"{folder}/{name}" for name in _RUN_FILES]
        for run_id, folder in folders.items()
    }
    return _checked(store, "runs", files, lambda run_id: run_fault(store, run_id))


def is_copy(fault: str) -> bool:
    """Whether a fault is that of a copy under another name, which is cured by removing it."""
    return fault.startswith(COPY_OF)


def run_remedy(run_id: str, fault: str) -> str:
    """What to do about a run that is not counted."""
    again = "" if is_copy(fault) else ", then run the line that measured it again"
    return f"rbpx store rm {shlex.quote(run_id)}{again}"


def warn_of_losses(store: Store, tokenizer_hashes: Iterable[str]) -> None:
    """Log in one line what was written to a store and is gone, and in one what looks like a copy of its folders.

    Args:
        store: the store.
        tokenizer_hashes: to whose vocabularies its runs refer.
    """
    gone = [f"{path.parent.name}/{path.name}" for path in missing(store.root)]
    gone += [f"vocab/{name}.parquet" for name in sorted(set(tokenizer_hashes)) if not store.has_vocab(name)]
    if gone:
        warn_damage(
            _LOGGER,
            store.root,
            f"{number_of(len(gone), 'file')} of store={store.name} {'is' if len(gone) == 1 else 'are'} gone and not "
            f"counted: {_first(gone)}; rbpx store verify --store {store.name} says what to do",
        )
    folders = [path.name for path, _ in copied_folders(store.root)]
    if folders:
        warn_damage(
            _LOGGER,
            store.root,
            f"{_first(folders)} in store={store.name} {'looks' if len(folders) == 1 else 'look'} like a copy of its "
            "folders and is not read; rbpx store verify says what to do",
        )


def lost_vocabularies(store: Store) -> dict[str, str]:
    """The vocabularies that runs refer to and that are not here: tokenizer_hash -> one of the runs."""
    lost: dict[str, str] = {}
    for run_id in store.run_ids():
        with contextlib.suppress(OSError, ValueError):  # of a corrupt run, which is reported as such
            tokenizer_hash = store.manifest(run_id).get("tokenizer_hash")
            if isinstance(tokenizer_hash, str) and not store.has_vocab(tokenizer_hash):
                lost.setdefault(tokenizer_hash, run_id)
    return lost


def _first(names: list[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def sound_files(store: Store, paths: Iterable[Path]) -> list[Path]:
    """Which of some Parquet files (vocab, imports) can be read completely; each of the others is logged."""
    by_name = {str(path.relative_to(store.root)): path for path in paths}
    kind = "files " + " ".join(sorted({path.parent.name for path in by_name.values()}))

    def fault_of(name: str) -> str | None:
        path = by_name[name]
        if store.is_elsewhere(path):  # checked when it is fetched
            return None
        return file_fault(path) if path.exists() else store.absence(path)

    sound, faults = _checked(store, kind, {name: [path] for name, path in by_name.items()}, fault_of)
    for name, fault in faults.items():
        says = f"not counted: {fault}; remove it" if is_copy(fault) else _CORRUPT.format(fault)
        warn_damage(_LOGGER, store.root, f"{name} in store={store.name} is {says}")
    return [by_name[name] for name in sound]


def left_beside(store: Store) -> list[Path]:
    """Sound files with what was measured beside runs that are gone."""
    gone = (path for kind in BESIDE for path in store.beside_files(kind, gone=True))
    return [path for path in gone if fetched_fault(store, path) is None]


def fetched_fault(store: Store, path: Path) -> str | None:
    """What is wrong with a file that is of no run, fetched if it is elsewhere; None if nothing is."""
    try:
        return file_fault(store.fetch(path))
    except DamageError as problem:
        return str(problem)


def trust(store: Store, path: Path) -> None:
    """A Parquet file that this process has just written is sound as long as it is not touched."""
    checked = _checked_before.setdefault((store.root, f"files {path.parent.name}"), {})
    checked[str(path.relative_to(store.root))] = [_seen([stamp(path)]), None]


def doubt(store: Store) -> None:
    """Discard the cached results: a file failed when it was read, though neither its size nor its times had changed."""
    for checked in [key for key in _checked_before if key[0] == store.root]:
        del _checked_before[checked]
    with contextlib.suppress(OSError):  # a read-only store: the query fails again, and says why
        inside(store.root, _CACHE).unlink(missing_ok=True)


def run_files(store: Store, run_id: str, folder: Path | None = None) -> list[Path]:
    """The files that make up a run, its manifest first; in its own folder, or in a copy of it."""
    folder = folder or store.run_folder(run_id)
    return [folder / name for name in _RUN_FILES]


def run_fault(store: Store, run_id: str, folder: Path | None = None) -> str | None:
    """What is wrong with the files of a run, or of a copy of its folder; None if nothing is. Every byte is read.

    Raises:
        RbpxError: the run has a newer format than this version reads.
    """
    manifest, *tables = run_files(store, run_id, folder)
    if manifest.parent.is_symlink():
        return f"it is a link to {manifest.parent.readlink()}"
    try:
        facts = read_sealed(manifest)
    except FileNotFoundError:
        return "manifest.json is missing"
    except (OSError, ValueError) as problem:
        return f"manifest.json is corrupt ({_line(problem)})"
    copied = copy_of_run(run_id, facts, store.root)
    if copied is not None:
        return copied
    _refuse_newer(store, run_id, facts)
    if not _PROMISED <= facts.keys():
        return f"manifest.json has no {min(_PROMISED - facts.keys())}"
    wrong = value_fault("runs", facts) or _sense_fault(facts)
    if wrong is not None:
        return f"manifest.json does not describe a run: {wrong}"
    for path in tables:
        if store.is_elsewhere(path):  # checked when it is fetched
            continue
        promised = facts["files"].get(path.name)
        try:
            with plain_file(path, TABLE_MIB).open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return store.absence(path)
        except (OSError, NoFileError) as problem:
            return f"{path.name} cannot be read ({_line(problem)})"
        if sha256 != promised:
            return f"{path.name} has changed since it was written (its sha256 is not the manifest's)"
    return None


def _sense_fault(facts: Record) -> str | None:
    """What is wrong with the names in a manifest, on which others act, and with the numbers that no table shows."""
    try:
        lacking = set(TABLES_OF_RUN) - named_tables(facts).keys()
    except ValueError as problem:
        return str(problem)
    if lacking:
        return f"its files does not name {min(lacking)}"
    if not is_plain(facts["tokenizer_hash"]):
        return "its tokenizer_hash is not a valid name"
    S, total = facts.get("non_embedding_params"), facts.get("total_params")
    if S is not None and not 0 < S <= (S if total is None else total):
        return f"its non_embedding_params is {S:,}, of {'unknown' if total is None else f'{total:,}'} parameters in all"
    return None


def file_fault(path: Path, content: Path | None = None) -> str | None:
    """What is wrong with a file that is of no run, None if nothing is.

    It has no manifest; what can be checked are the checksums of its pages, and that its rows are those of its name.

    Args:
        path: the file, or the place that `content` is for.
        content: the file that is read.
    """
    try:
        if path.suffix != ".parquet":  # a sample of an early version
            plain_file(content or path, TABLE_MIB)
            return None
        return file_misnamed(path, read_whole(content or path))
    except UNREADABLE as problem:
        return _line(problem)


def read_whole(path: Path) -> pa.Table:
    """A whole Parquet file of a store, with the checksums of its pages verified."""
    with pq.ParquetFile(plain_file(path, TABLE_MIB), page_checksum_verification=True) as file:
        return file.read()


def _refuse_newer(store: Store, run_id: str, facts: Record) -> None:
    """Refuse a format newer than this version: its numbers may mean something else."""
    newer = facts.get("format", FORMAT)
    if not isinstance(newer, int) or newer > FORMAT:
        raise RbpxError(
            f"run {run_id} in store={store.name} has format {newer}, but this rbpx reads formats up to {FORMAT}; "
            "update rbpx, or name another store with --store DIR"
        )


def _checked(
    store: Store, kind: str, items: Mapping[str, Sequence[Path | str]], fault_of: Callable[[str], str | None]
) -> tuple[list[str], dict[str, str]]:
    """Names of what is sound, and what is wrong with the rest; checked again where the stamp of a file has changed."""
    stamps = {name: [stamp(path) for path in paths] for name, paths in items.items()}
    n_bytes = sum(seen[0] for of_one in stamps.values() for seen in of_one if seen)
    large = n_bytes > _REMEMBERED_FROM_BYTES or len(items) > _REMEMBERED_FROM_ITEMS
    cache = read_cache(store.root / _CACHE) if large else {}
    before: dict[str, Any] = cache.get(kind, {}) | _checked_before.get((store.root, kind), {})
    seen = {name: _seen(of_one) for name, of_one in stamps.items()}
    new = [name for name in seen if name not in before or before[name][0] != seen[name]]
    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter's lock
        new_faults = dict(zip(new, pool.map(fault_of, new), strict=True))
    now = {name: [seen[name], new_faults[name]] if name in new_faults else before[name] for name in seen}
    if not large:
        _checked_before[store.root, kind] = now
    elif now != cache.get(kind):
        write_cache(inside(store.root, _CACHE), cache | {kind: now})
    return [name for name, (_, fault) in now.items() if fault is None], {
        name: fault for name, (_, fault) in now.items() if fault is not None
    }


def _seen(stamps: list[list[int] | None]) -> str:
    return digest([FORMAT, stamps])


def _called(cell: Record | None) -> str:
    return "" if cell is None else f" ({cell.get('family')} {cell.get('size')} on {cell.get('dataset')})"


def _line(problem: Exception) -> str:
    return problem.strerror if isinstance(problem, OSError) and problem.strerror else reason(problem)
