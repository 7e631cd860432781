"""Reads and writes a store: a folder of runs and of what was computed from them, each complete or absent.

runs/RUN_ID/          manifest.json, tokens.parquet, rank_counts.parquet, documents.parquet, renamed into place together
cells/KEY.json        which run answers which request
fits/ rank_fits/ failures/ forecasts/               a JSON record a file
vocab/ best/ imports/ samples/                      a Parquet file each
rbpx.duckdb           views over these files, for other clients (`relations.write_views`)

Files that cannot be parsed are logged and skipped. Other folders, such as those of earlier versions, are not read.
"""

import errno
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from rbpx.errors import MeasureError, RbpxError, reason
from rbpx.files.digest import sha256_of
from rbpx.files.entries import (
    age_s,
    atomic_remove,
    atomic_write,
    atomic_write_text,
    folder_at,
    is_full,
    is_refusal,
    is_temporary,
    names_in,
)
from rbpx.spelling import typed
from rbpx.store.messages import warn_damage, warn_run
from rbpx.store.records import (
    BESIDE,
    MANIFEST,
    MANIFESTS,
    NO_ROWS,
    RUN_TABLES,
    ending_of,
    is_name,
    place_of,
    read_record,
    sealed,
)
from rbpx.store.records import Record as Record
from rbpx.store.schema import FORMAT, LAYOUT

_LOGGER = logging.getLogger(__name__)
RUNNING: Final = "running"  # heartbeats, and parts of runs in progress
# Questions write hundreds of these at once; synchronising each would take longer than the fits.
_COMPUTED: Final = ("fits", "rank_fits")
_UNFINISHED_S: Final = 24 * 3600  # no run takes that long to write,
_SCRATCH_S: Final = 30 * _UNFINISHED_S  # nor that long to measure or to resume
_RECENT_S: Final = 60.0  # a run younger than this may have got its cell since cells were listed,
_LINKED_S: Final = 1.0  # and one younger than this may be about to get it


def now() -> str:
    """The current time in UTC, ISO 8601 without a zone, as everywhere in the store."""
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def is_remote(name: str) -> bool:
    """Whether a place is a URL, which can only hold a copy of a store."""
    return "://" in name


class Store:
    """A folder of runs and of what was computed from them, into which many processes may write at once."""

    def __init__(self, root: Path | str) -> None:
        """Open a store, whose folder is made by the first write; raises RbpxError for a URL or a file."""
        if is_remote(str(root)):
            raise RbpxError(
                f"store={root} is not a folder, and a store is one; copy what is there into one: "
                f"rbpx store pull {root} --store DIR, and send it back with rbpx store push"
            )
        self.root = folder_at(Path(root), f"store={root}")
        self.name = str(self.root)

    # -------------------------------------------------------------------------------------------------------- reading

    def runs(self) -> list[Record]:
        """The rows of the relation `runs`, one for each request."""
        import duckdb

        from rbpx.store.relations import records_of

        with duckdb.connect(":memory:") as connection:
            records_of(connection, self, ["runs"])
            rows: list[Record] = connection.sql("FROM runs").to_arrow_table().to_pylist()
        return rows

    def sql(self, query: str) -> pa.Table:
        """The answer to one SELECT over the relations of the store; raises as `rbpx.store.sql.user_rows`."""
        from rbpx.store.sql import ask_user, connect

        with connect(self) as connection:
            return ask_user(connection, query)

    def records(self, kind: str) -> Iterator[Record]:
        """All records of a kind, in name order."""
        records = (self.record(kind, path.stem) for path in self.paths(kind))
        yield from (record for record in records if record is not None)

    def record(self, kind: str, name: str) -> Record | None:
        """One record, or a manifest by its run; None where it is missing or damaged, which is logged."""
        try:
            return read_record(kind, name, self.root / place_of(kind, name))
        except FileNotFoundError:  # another process may have removed it
            return None
        except (OSError, ValueError) as problem:
            if kind == MANIFESTS:
                warn_run(self.root, name, reason(problem))
            else:
                again = "remove that file, then run the line that made it again"
                warn_damage(self.root, place_of(kind, name), reason(problem), again)
            return None

    def paths(self, kind: str) -> list[Path]:
        """What lies in a folder of the store with the ending of its kind, in name order."""
        ending = ending_of(kind)
        names = (name for name in names_in(self.root / kind) if name.endswith(ending))
        return [self.root / kind / name for name in names if name != f"{NO_ROWS}{ending}"]

    def files(self, kind: str) -> list[Path]:
        """The Parquet files of a folder outside the runs, in name order; logs what is no regular file."""
        regular = []
        for path in self.paths(kind):
            if path.is_file():
                regular.append(path)
            else:
                warn_damage(self.root, f"{kind}/{path.name}", "it is no regular file", "remove it")
        return regular

    def file(self, kind: str, name: str) -> Path:
        """The path of a record, a manifest (by its run) or Parquet file; RbpxError for a name that leads elsewhere."""
        if not is_name(name):
            raise RbpxError(f"{name!r} in {kind} of store={self.name} is no name, as it leads elsewhere; remove it")
        return self.root / place_of(kind, name)

    def cell(self, cell_key: str) -> Record | None:
        """The record of a request whose run exists, else None."""
        record = self.record("cells", cell_key)
        return record if record is not None and self.has_run(record["run_id"]) else None

    @property
    def is_empty(self) -> bool:
        """Whether it holds neither runs nor imported results."""
        return not any(self.records("cells")) and not self.files("imports")

    def run_ids(self) -> list[str]:
        """The runs of the store, in name order."""
        folders = names_in(self.root / "runs", only_folders=True)
        return [name for name in folders if is_name(name) and self.has_run(name)]

    def has_run(self, run_id: str) -> bool:
        """Whether the run exists; its folder appears in one rename, manifest included."""
        return is_name(run_id) and os.path.isfile(f"{self.root}/runs/{run_id}/{MANIFEST}")

    def run_folder(self, run_id: str) -> Path:
        """The path of a run's folder."""
        return self.file(MANIFESTS, run_id).parent

    def manifest(self, run_id: str) -> Record:
        """The facts of a run.

        Raises:
            OSError, ValueError: they cannot be read, or something is wrong with them.
        """
        return read_record(MANIFESTS, run_id, self.file(MANIFESTS, run_id))

    def unlinked(self, run_ids: Iterable[str], linked: set[str]) -> list[str]:
        """Those of some runs that no cell names, given the runs that cells named when they were listed.

        A process that writes a run writes its cell next, so cells are read again where a run has just come.
        """
        bare = [run_id for run_id in run_ids if run_id not in linked]
        for young_s, wait_s in ((_RECENT_S, 0.0), (_LINKED_S, _LINKED_S)):
            if any(age_s(self.file(MANIFESTS, run_id)) < young_s for run_id in bare):
                time.sleep(wait_s)
                linked = {cell["run_id"] for cell in self.records("cells")}
                bare = [run_id for run_id in bare if run_id not in linked]
        return bare

    def part(self, run_id: str, table: str) -> Path:
        """The file of one table of a run."""
        return self.run_folder(run_id) / f"{table}.parquet"

    def run_bytes(self, run_id: str) -> int:
        """The size of a run."""
        return sum(path.stat().st_size for path in self.run_folder(run_id).iterdir())

    def has_vocab(self, tokenizer_hash: str) -> bool:
        """Whether the store has the texts of a tokenizer's ids."""
        return self.file("vocab", tokenizer_hash).is_file()

    @property
    def hashes(self) -> Path:
        """The cache of hashes of model files, by path, size and time."""
        return self.root / "hashes.json"

    # -------------------------------------------------------------------------------------------------------- writing

    def prepare(self) -> None:
        """Make the folder, and remove unfinished files of processes that were killed long ago.

        Raises:
            MeasureError, RbpxError: the folder cannot be written; raised before anything is measured.
        """
        try:
            (self.root / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise self.unwritten(problem) from None
        if not os.access(self.root / "runs", os.W_OK):
            raise self.unwritten(PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
        for path in self.leftovers():
            if age_s(path) > (_SCRATCH_S if path.name.startswith((".scratch.", ".parts.")) else _UNFINISHED_S):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

    def leftovers(self) -> list[Path]:
        """Temporary files and folders of running or killed processes."""
        hidden = [*self.root.glob(".*.tmp*"), *self.root.glob("[!.]*/.*.tmp*")]
        return sorted(path for path in hidden if is_temporary(path.name) or path.name.startswith(".scratch."))

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A temporary folder inside the store, removed at the end."""
        self.prepare()
        with TemporaryDirectory(prefix=".scratch.", suffix=".tmp", dir=self.root, ignore_cleanup_errors=True) as folder:
            yield Path(folder)

    def write_run(self, run_id: str, facts: Record, tables: dict[str, pa.Table]) -> None:
        """Write a run; an existing one stays. Its manifest has the SHA-256 of each table, by which they are checked."""

        def fill(folder: Path) -> None:
            folder.mkdir()
            files = {}
            for name in RUN_TABLES:
                path = folder / f"{name}.parquet"
                pq.write_table(tables[name], path, compression="zstd", write_page_checksum=True, **LAYOUT[name])
                files[path.name] = sha256_of(path)
            text = sealed(facts | {"format": FORMAT, "files": files}, indent=1)
            (folder / MANIFEST).write_text(text, encoding="utf-8")

        try:
            self.place_run(run_id, fill)
        except OSError as problem:
            if not self.has_run(run_id):
                raise self.unwritten(problem) from None

    def place_run(self, run_id: str, fill: Callable[[Path], None]) -> None:
        """Let `fill` make the folder of a run at a temporary path, and rename it.

        Raises:
            OSError: it cannot be written, or another process has just written the run.
        """
        with atomic_write(self.run_folder(run_id)) as folder:
            fill(folder)

    def place_file(self, path: Path, fill: Callable[[Path], object]) -> None:
        """Let `fill` make a file outside the runs at a temporary path, and rename it; raises as `unwritten`."""
        try:
            with atomic_write(path) as temporary:
                fill(temporary)
        except OSError as problem:
            raise self.unwritten(problem) from None

    def write_file(self, kind: str, name: str, table: pa.Table) -> None:
        """Write a Parquet file of a folder outside the runs, once: the name follows from what is in it."""
        if not self.file(kind, name).is_file():
            self.place_file(
                self.file(kind, name),
                lambda to: pq.write_table(table, to, compression="zstd", write_page_checksum=True),
            )

    def write_record(self, kind: str, name: str, record: Record) -> None:
        """Write one record of a kind, in place of one of the same name; raises as `unwritten`.

        Where the store is read-only or the disk is full, a record computed from runs is only logged as not kept: the
        same question computes it again.
        """
        text, durable = sealed(record), kind not in _COMPUTED
        try:
            atomic_write_text(self.file(kind, name), text, durable=durable)
        except OSError as problem:
            if durable or not (is_refusal(problem) or is_full(problem)):
                raise self.unwritten(problem) from None
            _LOGGER.warning(f"store={self.name} cannot be written: {problem.strerror}; the answer is not kept in it")

    def unwritten(self, problem: OSError) -> RbpxError:
        """The error to raise where something cannot be written: MeasureError, or RbpxError for a read-only store."""
        line = f"store={self.name} cannot be written: {problem.strerror or problem}; "
        if is_refusal(problem):
            return RbpxError(f"{line}name another folder: {typed(store='DIR')}")
        return MeasureError(f"{line}{'make room and ' if is_full(problem) else ''}run the same line again")

    def drop_record(self, kind: str, name: str) -> None:
        """Remove one record, if it exists."""
        self.file(kind, name).unlink(missing_ok=True)

    def drop_run(self, run_id: str) -> None:
        """Remove a run, its sidecar files, and the requests that it answers."""
        for cell in [cell for cell in self.records("cells") if cell["run_id"] == run_id]:
            self.drop_record("cells", cell["cell_key"])
        for kind in BESIDE:
            self.file(kind, run_id).unlink(missing_ok=True)
        atomic_remove(self.run_folder(run_id))
