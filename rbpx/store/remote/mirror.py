"""A store in object storage: its records are kept on this machine too, its tables are fetched when they are read.

Of the tables beside runs, vocabularies and imports are brought with the records, the others when a question reads them.

In the bucket lies what would lie in a folder (`store`), but for the names of the tables of a run, which say what they
contain: runs/<run_id>/tokens-<beginning of its sha256>.parquet. So two machines that measure the same run at once never
mix their tables: each sends its own, then the manifest unless there is one. The first manifest stays, and what it does
not name is removed. A run whose manifest is not there is not there.
"""

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from rbpx.errors import DamageError, MeasureError, RbpxError, number_of
from rbpx.files.digest import cache_folder, digest, read_cache, read_sealed, write_cache
from rbpx.files.entries import atomic_remove, atomic_write
from rbpx.store.checks.integrity import file_fault, run_fault
from rbpx.store.checks.values import named_tables
from rbpx.store.files import ledger
from rbpx.store.files.inside import KINDS, RUNNING, TABLES, inside, is_ours, whole_run
from rbpx.store.files.ledger import locked
from rbpx.store.messages import warn_damage
from rbpx.store.remote.bucket import Bucket, Entry, GoneError, ShortError, endpoint_of
from rbpx.store.remote.object_names import LAZY, is_of_run, list_objects, name_of_table, of_fair_length
from rbpx.store.remote.outbox import Outbox, place_manifest
from rbpx.store.sql.relations import fetched_when_opened
from rbpx.store.store import MANIFEST, RUN_TABLES, Record, Store

_LOGGER = logging.getLogger(__name__)
_OURS: Final = ("fits", "rank_fits")  # that questions computed here are not removed, nor sent where others write
_TAGS: Final = ".tags.json"  # of what was brought, by path
_THREADS: Final = 16
_BEAT_S: Final = 30.0  # between heartbeats that are sent
_PAUSE_S: Final = 60.0  # after storage did not answer, before anything is sent again
_ORPHANED_S: Final = 24 * 3600  # no run takes that long to send
_corrupt: dict[Path, str] = {}  # tables that this process fetched and that are not what their manifests say


class Mirror(Store):
    """A store in object storage, which this machine mirrors as far as it has read or written it."""

    indexed = False

    def __init__(self, url: str, writes: bool) -> None:
        """Bring what is new in the bucket.

        Args:
            url: s3://BUCKET/PATH, gs://... or az://...
            writes: whether what is written is sent; questions keep the fits that they compute on this machine.

        Raises:
            RbpxError: there is no such bucket, no access to it, or the library is not installed.
            MeasureError: the storage does not answer.
        """
        self._bucket = Bucket(url)
        url = self._bucket.url
        super().__init__(cache_folder() / "stores" / digest([url, endpoint_of(url)]))
        self.name, self._writes = url, writes
        self._listed: dict[str, Entry] = {}
        self._outbox = Outbox(self.root, self._bucket)
        self._silent_until = self._beaten = 0.0
        self.refresh()

    # ------------------------------------------------------------------------------------------------------- reading

    def refresh(self, again: bool = False) -> None:
        """Bring the records that are new in the bucket, or all of them `again`, and remove what is gone there."""
        self.root.mkdir(parents=True, exist_ok=True)
        with locked(self.root, ".refresh.lock"):
            here, unsent = self._mirrored(), self._outbox.names()  # before listing: what comes meanwhile is not gone
            try:
                self._listed = list_objects(self._bucket, self.root)
            except MeasureError as problem:
                hint = f"; what was read before is in {self.root}" if here else ""
                raise type(problem)(f"{problem}{hint}") from None
            tags: dict[str, Any] = read_cache(self.root / _TAGS)
            wanted = of_fair_length(self._listed, self._bucket, self.root)
            known = {} if again else tags
            new = [
                path
                for path, entry in wanted.items()
                if path not in unsent and (known.get(path) != entry.tag or not (self.root / path).is_file())
            ]
            with ThreadPoolExecutor(_THREADS) as pool:
                is_news = dict(zip(new, pool.map(self._bring, new), strict=True))
            brought = {path: wanted[path].tag for path in new if is_news[path] is not None}
            tags = {path: tag for path, tag in tags.items() if path in self._listed} | brought
            write_cache(inside(self.root, _TAGS), tags)
            for path in here - unsent - self._listed.keys():
                self._forget(path)
            for path in self._listed.keys() & here - wanted.keys() - unsent:
                if known.get(path) != self._listed[path].tag:  # replaced there, or written here and perhaps not kept
                    self._forget(path)
        news = [path for path in new if is_news[path] and not path.startswith(RUNNING)]
        if news:
            mib = sum(wanted[path].n_bytes for path in news) / 2**20
            _LOGGER.info(f"copied {number_of(len(news), 'file')} ({mib:,.1f} MiB) from {self.name} to {self.root}")

    def _mirrored(self) -> set[str]:
        """The files here that are removed when they are gone in the bucket."""
        kinds = (*(kind for kind in (*KINDS, *TABLES) if kind not in _OURS), RUNNING)
        beside = {
            f"{kind}/{path.name}"
            for kind in kinds
            for path in (self.root / kind).glob("[!.]*")
            if is_ours(kind, path.name)
        }
        return beside | {f"runs/{run_id}/{MANIFEST}" for run_id in self.run_ids()}

    def _bring(self, path: str) -> bool | None:
        """Copy one object here; returns whether it differed from the copy here, None where it is gone or incomplete."""
        try:
            content = self._bucket.get(path, self._listed[path].n_bytes)
        except GoneError:  # removed by another machine since it was listed
            return None
        except ShortError as problem:
            warn_damage(_LOGGER, self.root, f"{problem}; {path} is left out")
            return None
        final = self.root / path
        is_news = not (final.is_file() and final.read_bytes() == content)
        if is_news:
            if path.startswith("runs/"):
                place_manifest(final.parent, content)
            else:
                with atomic_write(inside(self.root, final), durable=False) as temporary:
                    temporary.write_bytes(content)
        if path.startswith(RUNNING) and path in self._listed:
            written = self._listed[path].written.timestamp()
            os.utime(inside(self.root, final), (written, written))
        return is_news

    def _forget(self, path: str) -> None:
        """Remove here what is gone in the bucket."""
        with suppress(FileNotFoundError):
            if path.startswith("runs/"):
                atomic_remove(whole_run(self.root, (self.root / path).parent))
            else:
                ledger.remove(self.root / path)

    def fetch(self, path: Path) -> Path:
        """A table, fetched if it is not here."""
        self._fetch(path)
        return path

    def _files(self, kind: str, ending: str) -> list[Path]:
        paths = super()._files(kind, ending)
        if kind not in LAZY:
            return paths
        there = {self.root / path for path in self._listed if path.startswith(f"{kind}/") and path.endswith(ending)}
        return sorted(there.union(paths))

    def file_system(self) -> Any:
        """Tables, each fetched when it is first opened."""
        return fetched_when_opened(self._fetch)

    def is_elsewhere(self, path: Path) -> bool:
        """Whether a table is only in the bucket, as far as is known."""
        return not path.exists() and path not in _corrupt and self._object_of(path) is not None

    def absence(self, path: Path) -> str:
        """Why a table is not here: what came of it was not what its manifest says, or was damaged."""
        return f"{path.name}: {_corrupt[path]}" if path in _corrupt else super().absence(path)

    def run_bytes(self, run_id: str) -> int:
        """The size of a run in the bucket."""
        sizes = [entry.n_bytes for path, entry in self._listed.items() if path.startswith(f"runs/{run_id}/")]
        return sum(sizes) or super().run_bytes(run_id)

    def _object_of(self, path: Path) -> str | None:
        """The object that holds a table: named by its contents, or, in a folder that was copied there, as here."""
        if path.parent.name in LAZY:
            name = f"{path.parent.name}/{path.name}"
            return name if name in self._listed else None
        with suppress(OSError, ValueError, KeyError, TypeError):
            sha256 = named_tables(read_sealed(path.parent / MANIFEST))[path.name]
            run = f"runs/{path.parent.name}"
            if f"{run}/{MANIFEST}" not in self._listed:  # sent or brought since it was listed
                self._listed |= self._bucket.below(run)
            names = (name_of_table(path, sha256), f"{run}/{path.name}")
            return next((name for name in names if name in self._listed), None)
        return None

    def _fetch(self, path: Path) -> None:
        """Bring a table, if it is not here, and check it: that of a run against the manifest.

        Raises:
            DamageError: it is not what the manifest says, or damaged.
            MeasureError: the storage does not answer.
        """
        if path.exists():
            return
        name = self._object_of(path)
        if name is None:
            raise self._corrupt_table(path, "it is gone")
        listed = self._listed[name]
        try:
            with atomic_write(inside(self.root, path), durable=False) as temporary:

                def bring(n_bytes: int) -> str | None:
                    with temporary.open("wb") as file:
                        sha256 = self._copy(name, n_bytes, file)
                    return self._fault_of(path, temporary, sha256)

                fault = bring(listed.n_bytes)
                if fault is not None:
                    now = self._bucket.entry(name)  # a listing may be wrong about its size
                    fault = bring(listed.n_bytes if now is None else now.n_bytes)
                if fault is not None:
                    raise self._corrupt_table(path, fault)
            _corrupt.pop(path, None)
            if path.parent.name in LAZY:
                with locked(self.root, ".refresh.lock"):
                    write_cache(inside(self.root, _TAGS), read_cache(self.root / _TAGS) | {name: listed.tag})
        except GoneError:
            raise self._corrupt_table(path, "it is gone") from None
        except OSError as problem:
            raise self.unwritten(problem) from None

    def _copy(self, name: str, n_bytes: int, file: IO[bytes]) -> str:
        """Copy an object into a file; returns the SHA-256 of its bytes."""
        sha256 = hashlib.sha256()
        for part in self._bucket.parts(name, n_bytes):
            sha256.update(part)
            file.write(part)
        return sha256.hexdigest()

    def _fault_of(self, path: Path, copy: Path, sha256: str) -> str | None:
        """What is wrong with the copy of a table, if anything."""
        if path.parent.name in LAZY:
            return file_fault(path, copy)
        if sha256 == named_tables(read_sealed(path.parent / MANIFEST))[path.name]:
            return None
        return f"its {copy.stat().st_size:,} bytes are not those of its manifest"

    def _corrupt_table(self, path: Path, fault: str) -> DamageError:
        _corrupt[path] = fault
        return DamageError(f"{path.relative_to(self.root)} of {self.name} cannot be read: {fault}")

    def take_run(self, run_id: str) -> bool:
        """Whether the run is here or was written to the bucket meanwhile; where that is not known, it is not."""
        with suppress(MeasureError):
            if not self.has_run(run_id):
                manifest = f"runs/{run_id}/{MANIFEST}"
                content = self._bucket.get(manifest)
                place_manifest(self.run_folder(run_id), content)
        return self.has_run(run_id)

    def drop_copies(self, run_id: str | None = None) -> None:
        """Remove tables that the bucket has too, of one run or of all; without a run, the records are read again."""
        if run_id is None:
            _corrupt.clear()
            self.refresh(again=True)
        for each in self.run_ids() if run_id is None else [run_id]:
            for table in RUN_TABLES:
                path = self.run_folder(each) / f"{table}.parquet"
                if path.is_file() and self._object_of(path) is not None:
                    inside(self.root, path).unlink(missing_ok=True)

    def leftovers(self) -> list[Path]:
        """Unfinished files here, and tables in the bucket that no manifest names."""
        return [*super().leftovers(), *(self.root / path for path in self._orphans())]

    def _orphans(self) -> Iterator[str]:
        for path in self._listed:
            if is_of_run(path) and not path.endswith(MANIFEST) and path not in self._named_by(path.split("/")[1]):
                yield path

    def _named_by(self, run_id: str) -> list[str | None]:
        if f"runs/{run_id}/{MANIFEST}" not in self._listed:
            return []
        return [self._object_of(self.run_folder(run_id) / f"{table}.parquet") for table in RUN_TABLES]

    # ------------------------------------------------------------------------------------------------------- writing

    def prepare(self) -> None:
        """Find out whether the bucket can be written, and send what an earlier command could not.

        Raises:
            RbpxError: it cannot be written.
            MeasureError: it does not answer.
        """
        super().prepare()
        if self._writes:
            self._bucket.mark(".rbpx", b"A store of rbpx\n")
            self.finish()

    def clear_leftovers(self) -> None:
        """Remove unfinished files of processes that were killed long ago, here and in the bucket."""
        super().clear_leftovers()
        if self._writes:
            self._bucket.remove(path for path in self._orphans() if self._listed[path].age_s > _ORPHANED_S)

    def finish(self) -> None:
        """Send what is not sent yet.

        Raises:
            MeasureError: the storage does not answer; what is to be sent stays on this machine.
        """
        self._silent_until = 0.0
        self._outbox.send_all()

    @contextmanager
    def _sent(self, path: Path) -> Iterator[None]:
        """Send what is written to a path here; where storage does not answer now, `finish` sends it later."""
        if not self._writes:
            yield
            return
        self._outbox.note(path)
        yield
        if time.monotonic() < self._silent_until:
            return
        try:
            self._outbox.send(path)
        except MeasureError as problem:
            self._silent_until = time.monotonic() + _PAUSE_S
            _LOGGER.warning(f"{problem}; it is kept in {self.root} and will be sent later")

    def place_run(self, run_id: str, fill: Callable[[Path], None]) -> None:
        """Write a run here, then send it."""
        with self._sent(self.run_folder(run_id)):
            super().place_run(run_id, fill)

    def place_file(self, path: Path, fill: Callable[[Path], object]) -> None:
        """Write a file here, then send it."""
        with self._sent(path):
            super().place_file(path, fill)

    def write_record(self, kind: str, name: str, record: Record) -> None:
        """Write a record here, then send it."""
        with self._sent(self.record_file(kind, name)):
            super().write_record(kind, name, record)

    def remove(self, path: Path) -> None:
        """Remove a file in the bucket, then here.

        Raises:
            MeasureError: the storage does not answer; a failure that is over stays there then.
        """
        name = f"{path.parent.name}/{path.name}"
        if self._writes and (name in self._listed or path.exists()):
            self._outbox.forget(path)
            try:
                self._bucket.remove([name])
            except MeasureError:
                if path.parent.name != "failures":
                    raise
        super().remove(path)

    def drop_run(self, run_id: str) -> None:
        """Remove a run in the bucket and here.

        Raises:
            RbpxError: it is sound there, and only the copy here was not; that copy is as it is there then.
        """
        folder = whole_run(self.root, self.run_folder(run_id))
        if not self._outbox.is_as_there(folder) and run_fault(self, run_id) is None:
            mended = f"{folder} differed from {self.name}, where the run is sound, and now is as there"
            raise RbpxError(f"{mended}; to remove the run all the same, run the same line again")
        self._outbox.forget(folder)
        super().drop_run(run_id)

    def clear_run(self, run_id: str) -> None:
        """Remove the files of a run in the bucket, its manifest first, then here."""
        self._outbox.remove_there(run_id)
        super().clear_run(run_id)

    def is_damaged(self, run_id: str, sound: Path) -> bool:
        """Whether a table in the bucket is gone, or is not the one in a sound folder."""
        for path in (sound / f"{table}.parquet" for table in RUN_TABLES):
            name = self._object_of(self.run_folder(run_id) / path.name)
            if name is None or (path.is_file() and not self._bucket.has_copy(name, path, self._listed[name])):
                return True
        return False

    def send_heartbeat(self, path: Path) -> None:
        """Send a heartbeat now and then; that it could not be sent is no failure of what is measured."""
        if self._writes and time.monotonic() - self._beaten > _BEAT_S:
            self._beaten = time.monotonic()
            with suppress(RbpxError):
                self._bucket.put(f"{RUNNING}/{path.name}", path)

    def end_heartbeat(self, path: Path) -> None:
        """Remove a heartbeat, here and in the bucket."""
        super().end_heartbeat(path)
        if self._writes:
            self._beaten = 0.0
            with suppress(RbpxError):
                self._bucket.remove([f"{RUNNING}/{path.name}"])
