"""The folder of a store: reads and writes runs, records and files, each of them complete or absent.

runs/<run_id>/        tokens, rank_counts, documents (Parquet) and manifest.json, renamed into place together
cells/<cell_key>.json which run answers which request
vocab/<hash>.parquet  the texts of a tokenizer's ids
temperatures/<run_id>.parquet   losses of a run's documents at other temperatures
best/<run_id>.parquet the best tokens at each place of a run, where they were asked for
imports/<source>-<digest>.parquet   other people's observations, with their provenance
samples/<key>.parquet   the documents drawn from a hub's dataset
fits/ rank_fits/ failures/   one JSON record per file
forecasts/            predictions registered before their model came (`forecasts`), a JSON record per file
written/<kind>/<file>   what was written beside the runs (`ledger`), so that a deletion is noticed
"""

import errno
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from rbpx.errors import MeasureError, RbpxError
from rbpx.files.digest import read_sealed, write_sealed
from rbpx.files.entries import NoFileError, atomic_remove, atomic_write, folder_at, is_full, is_refusal, names_in
from rbpx.store.checks.values import RecordError, read_record
from rbpx.store.files import ledger
from rbpx.store.files.inside import (
    check_folders,
    clear_unfinished,
    inside,
    is_harmless,
    is_plain,
    unfinished,
    whole_run,
)
from rbpx.store.messages import warn_damage
from rbpx.store.schema import FORMAT, LAYOUT

Record = dict[str, Any]
_LOGGER = logging.getLogger(__name__)
RUN_TABLES = ("tokens", "rank_counts", "documents")
MANIFEST = "manifest.json"  # of a run
BESIDE = ("temperatures", "best")  # measured of a run on request, and kept beside it in a file of its name
# Computed from runs, hundreds at once, and recomputed by the same command: waiting for the disk after each would take
# longer than the fits (10 ms a record). After a crash of the machine the seal shows which of them were lost.
_COMPUTED = ("fits", "rank_fits")


def now() -> str:
    """The current time in UTC, ISO 8601 without a zone, like all times in the store."""
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


class Store:
    """A folder of runs and what was computed from them. Any number of processes may write different runs at once.

    Attributes:
        root: the folder.
        name: as users call it.
        indexed: whether it has an index, which needs all of its files.
    """

    indexed = True

    def __init__(self, root: Path) -> None:
        """Open a store; its folder is made when something is first written to it.

        Raises:
            RbpxError: the path is a file, or none that a folder can have, or a link stands for a folder in it.
        """
        self.root = folder_at(root, f"store={root}")
        self.name = str(self.root)
        check_folders(self.root)

    def prepare(self) -> None:
        """Make the folder, and remove unfinished files of processes that were killed long ago.

        Raises:
            RbpxError: the folder cannot be written; raised before anything is measured.
        """
        try:
            (self.root / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            if self.root.is_dir() and is_refusal(problem):
                raise self.unwritten(problem) from None
            raise RbpxError(f"store={self.name} cannot be made: {problem.strerror}; name another folder") from None
        for folder in (self.root, *(self.root / name for name in ("runs", "cells", "vocab", "failures"))):
            if folder.is_dir() and not os.access(folder, os.W_OK):
                read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
                number = errno.EROFS if read_only else errno.EACCES
                raise self.unwritten(OSError(number, os.strerror(number)))
        self.clear_leftovers()

    def clear_leftovers(self) -> None:
        """Remove unfinished files of processes that were killed long ago."""
        clear_unfinished(self.root)

    def leftovers(self) -> list[Path]:
        """Temporary files and folders of processes that are writing, or were killed while they wrote."""
        return unfinished(self.root)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A temporary folder inside the store; it is removed with all its contents."""
        self.prepare()
        with TemporaryDirectory(prefix=".scratch.", suffix=".tmp", dir=self.root, ignore_cleanup_errors=True) as folder:
            yield Path(folder)

    def run_folder(self, run_id: str) -> Path:
        """The path of a run's folder, whether or not the run exists."""
        return self.root / "runs" / run_id

    def has_run(self, run_id: str) -> bool:
        """Whether the run exists; its folder appears in one rename, manifest included."""
        return is_plain(run_id) and self.run_folder(run_id).is_dir()

    def write_run(self, run_id: str, facts: Record, tables: dict[str, pa.Table]) -> None:
        """Write a run to a temporary folder and rename it. A run that another process wrote meanwhile stays."""

        def fill(folder: Path) -> None:
            folder.mkdir()
            files = {}
            for name in RUN_TABLES:
                path = folder / f"{name}.parquet"
                pq.write_table(tables[name], path, compression="zstd", write_page_checksum=True, **LAYOUT[name])
                with path.open("rb") as file:
                    files[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
            write_sealed(folder / MANIFEST, facts | {"format": FORMAT, "files": files}, in_lines=True)

        try:
            self.place_run(run_id, fill)
        except OSError as problem:
            if not self.has_run(run_id):
                raise RbpxError(
                    f"the run cannot be written to store={self.name}: {problem.strerror or problem}; no part of it was "
                    f"kept; {_next(problem)}"
                ) from None

    def place_run(self, run_id: str, fill: Callable[[Path], None]) -> None:
        """Let `fill` make the folder of a run at a temporary path, and rename it.

        Raises:
            OSError: it cannot be written, or another process wrote the run meanwhile.
        """
        with atomic_write(inside(self.root, self.run_folder(run_id))) as folder:
            fill(folder)

    def clear_run(self, run_id: str) -> None:
        """Remove the files of a run, and nothing beside them; it is seen complete or not at all."""
        atomic_remove(whole_run(self.root, self.run_folder(run_id)))

    def is_damaged(self, run_id: str, sound: Path) -> bool:
        """Whether a table that is elsewhere is not the one in a sound folder of the run."""
        return False

    def take_run(self, run_id: str) -> bool:
        """Whether the run exists by now, looked up where others may have written it since the store was opened."""
        return self.has_run(run_id)

    def part(self, run_id: str, table: str) -> Path:
        """The file of one table of a run, to be read, as `fetch` brings it."""
        return self.fetch(self.run_folder(run_id) / f"{table}.parquet")

    def fetch(self, path: Path) -> Path:
        """A file of a store that may be elsewhere, to be read.

        Raises:
            MeasureError: it is elsewhere, and cannot be fetched.
        """
        return path

    def has_file(self, path: Path) -> bool:
        """Whether there is a file, here or elsewhere."""
        return path.is_file() or self.is_elsewhere(path)

    def run_bytes(self, run_id: str) -> int:
        """The size of a run."""
        return sum(path.stat().st_size for path in self.run_folder(run_id).iterdir())

    def is_elsewhere(self, path: Path) -> bool:
        """Whether a file is not on this machine, but can be fetched."""
        return False

    def absence(self, path: Path) -> str:
        """Why a file is not here, where it should be."""
        return f"{path.name} is missing"

    def file_system(self) -> Any:
        """The file system by which Arrow reads the files of runs."""
        return LocalFileSystem()

    def finish(self) -> None:
        """Send what could not be sent when it was written; nothing where the store is a folder."""

    def remove(self, path: Path) -> None:
        """Remove a file beside the runs, if it exists, and its entry in the ledger."""
        ledger.remove(path)

    def send_heartbeat(self, path: Path) -> None:
        """Show the heartbeat that was just written to others."""

    def end_heartbeat(self, path: Path) -> None:
        """Remove a heartbeat."""
        inside(self.root, path).unlink(missing_ok=True)

    def drop_copies(self, run_id: str | None = None) -> None:
        """Remove what is on this machine only to be read: of one run, or of all."""

    def manifest(self, run_id: str) -> Record:
        """The facts of a run.

        Raises:
            ValueError: they are not what was written.
        """
        return read_sealed(self.run_folder(run_id) / MANIFEST)

    @property
    def hashes(self) -> Path:
        """The hashes of the files of models, a cache."""
        return inside(self.root, "hashes.json")

    def has_vocab(self, tokenizer_hash: str) -> bool:
        """Whether the texts of a tokenizer's ids are in the store."""
        return is_plain(tokenizer_hash) and (self.root / "vocab" / f"{tokenizer_hash}.parquet").is_file()

    def write_vocab(self, tokenizer_hash: str, table: pa.Table) -> None:
        """Write the texts of a tokenizer's ids, once."""
        self._write_table(self.root / "vocab" / f"{tokenizer_hash}.parquet", table)

    def beside_file(self, kind: str, run_id: str) -> Path:
        """The path of what is measured beside a run, one of `BESIDE`, whether or not the file exists."""
        return self.root / kind / f"{run_id}.parquet"

    def write_beside(self, kind: str, run_id: str, table: pa.Table) -> None:
        """Write what was measured beside a run, once."""
        self._write_table(self.beside_file(kind, run_id), table)

    def beside_files(self, kind: str, gone: bool = False) -> list[Path]:
        """The Parquet files of a relation of `BESIDE` whose runs exist, or else those whose runs are `gone`."""
        return [path for path in self._files(kind, ".parquet") if self.has_run(path.stem) is not gone]

    def all_beside(self) -> list[Path]:
        """The Parquet files of all relations of `BESIDE`."""
        return [path for kind in BESIDE for path in self.beside_files(kind)]

    def write_import(self, name: str, table: pa.Table) -> None:
        """Write one file of other people's observations, once; its name contains a digest of its rows."""
        self._write_table(self.root / "imports" / f"{name}.parquet", table)

    def sample_file(self, key: str) -> Path:
        """The path of the documents drawn from a hub's dataset, whether or not the file exists."""
        return self.root / "samples" / f"{key}.parquet"

    def sample_files(self) -> list[Path]:
        """The documents drawn from datasets of a hub; other than Parquet in stores of early versions."""
        return self._files("samples", "")

    def write_sample(self, key: str, table: pa.Table) -> None:
        """Write the documents drawn from a hub's dataset, once."""
        self._write_table(self.sample_file(key), table)

    def _write_table(self, path: Path, table: pa.Table) -> None:
        if not path.is_file():
            self.place_file(path, lambda to: pq.write_table(table, to, compression="zstd", write_page_checksum=True))

    def place_file(self, path: Path, fill: Callable[[Path], object]) -> None:
        """Let `fill` make a file beside the runs at a temporary path, and rename it.

        Raises:
            MeasureError: the disk is full, or fails.
            RbpxError: the store is read-only.
        """
        try:
            with atomic_write(inside(self.root, path)) as temporary:
                fill(temporary)
        except OSError as problem:
            raise self.unwritten(problem) from None
        if path.parent.name in ledger.KINDS:
            ledger.enter(path)

    def write_record(self, kind: str, name: str, record: Record) -> None:
        """Write one record of one of `KINDS`; a record of the same name is replaced.

        What is computed from runs is only logged as not kept where the store is read-only or the disk is full: the same
        question computes it again.

        Raises:
            MeasureError: the disk fails, or is full and the record is not computed.
            RbpxError: the store is read-only, and the record is not computed.
        """
        path = self.record_file(kind, name)
        try:
            write_sealed(inside(self.root, path), record, durable=kind not in _COMPUTED)
        except OSError as problem:
            if kind not in _COMPUTED or not (is_refusal(problem) or is_full(problem)):
                raise self.unwritten(problem) from None
            _LOGGER.warning(f"store={self.name} cannot be written: {problem.strerror}; the answer is not kept in it")
            return
        if kind in ledger.KINDS:
            ledger.enter(path)

    def unwritten(self, problem: OSError) -> RbpxError:
        """The error to raise where something cannot be written, with what to do about it."""
        line = f"store={self.name} cannot be written: {problem.strerror or problem}; {_next(problem)}"
        return RbpxError(line) if is_refusal(problem) else MeasureError(line)

    def record(self, kind: str, name: str) -> Record | None:
        """One record by its name; None where there is none, or where it is corrupt or another's, which is logged."""
        path = self.record_file(kind, name)
        try:
            return read_record(path)
        except FileNotFoundError:  # perhaps removed by another process since it was listed
            return None
        except RecordError as problem:
            line = f"not counted: {problem}; {problem.remedy}"
        except (OSError, ValueError) as problem:
            what = f"corrupt ({problem})" if isinstance(problem, NoFileError) else "corrupt"
            line = f"{what} and left out; remove that file, then run the line that made it again"
        warn_damage(_LOGGER, self.root, f"{kind}/{path.name} in store={self.name} is {line}")
        return None

    def drop_record(self, kind: str, name: str) -> None:
        """Remove one record, if it exists."""
        self.remove(self.record_file(kind, name))

    def record_file(self, kind: str, name: str) -> Path:
        """The path of a record, whether or not it exists."""
        if not is_plain(name):
            raise RbpxError(
                f"{name!r} in {kind} of store={self.name} is not a valid name, as it leads elsewhere; remove it"
            )
        return self.root / kind / f"{name}.json"

    def records(self, kind: str) -> Iterator[Record]:
        """All records of a kind, in name order."""
        for path in self.record_files(kind):
            record = self.record(kind, path.stem)
            if record is not None:
                yield record

    def record_files(self, kind: str) -> list[Path]:
        """The files of all records of a kind, in name order."""
        return self._files(kind, ".json")

    def cell(self, cell_key: str) -> Record | None:
        """The record of a request whose run exists, else None."""
        record = self.record("cells", cell_key)
        return record if record is not None and self.has_run(record["run_id"]) else None

    def run_ids(self) -> list[str]:
        """Runs that were written completely, in name order; `integrity` checks which of them still are."""
        return [name for name in names_in(self.root / "runs", only_folders=True) if not is_harmless(name)]

    def drop_run(self, run_id: str) -> None:
        """Remove a run with nothing else in it, and the requests that it answers."""
        whole_run(self.root, self.run_folder(run_id))
        for cell in [cell for cell in self.records("cells") if cell["run_id"] == run_id]:
            self.drop_record("cells", cell["cell_key"])
        for kind in BESIDE:
            self.remove(self.beside_file(kind, run_id))
        self.clear_run(run_id)

    def vocab_files(self) -> list[Path]:
        """The Parquet files of the relation `vocab`."""
        return self._files("vocab", ".parquet")

    def import_files(self) -> list[Path]:
        """The Parquet files of other people's observations, in name order."""
        return self._files("imports", ".parquet")

    def _files(self, kind: str, ending: str) -> list[Path]:
        folder = self.root / kind
        return [folder / name for name in names_in(folder) if name.endswith(ending)]


def _next(problem: OSError) -> str:
    """What to do where something could not be written."""
    if is_refusal(problem):
        return "name another folder with --store DIR"
    return f"{'make room and ' if is_full(problem) else ''}run the same line again"
