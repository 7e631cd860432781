"""SQL that users write, within limits of time and memory, and stopped at once by Ctrl-C.

DuckDB stops between two pieces of work, not within one expression: `repeat('x', 3000000000)` is computed in one call
while the query is planned. Its own limit of memory is for what it sorts, joins and groups, not for single values. So a
query runs in a thread of its own, which is interrupted and, where that has no effect, left behind when the process
ends; and the memory of the whole process is watched.
"""

import contextlib
import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, TypeVar

import duckdb

from rbpx.errors import RbpxError
from rbpx.files.entries import age_s

T = TypeVar("T")
_MIB: Final = 2**20
_LOOK_S: Final = 0.05  # how often time and memory are looked at
_GRACE_S: Final = 1.0  # for DuckDB to stop after it was interrupted; it takes milliseconds
_ASIDE_MIB: Final = 512  # beyond the limit of DuckDB's own memory: single values, and rows on their way to the output
_SPILLS: Final = 4  # times the memory, on disk
_OLD_S: Final = 24 * 3600
_left_behind: set["Bounded"] = set()  # queries that could not be stopped, as long as they compute


@dataclass(frozen=True)
class SqlLimits:
    """What a user's SQL may take.

    Attributes:
        timeout_s: seconds that it may take, rows being computed and written; the time that a reader of the output
            (`| less`) lets it wait does not count. None for no limit.
        memory_mib: MiB that it may hold; None for half of the machine's memory.
    """

    timeout_s: float | None = 60.0
    memory_mib: int | None = None

    @property
    def held_mib(self) -> int:
        """The limit of memory as a number, MiB."""
        return self.memory_mib or machine_mib() // 2

    @property
    def spilled_mib(self) -> int:
        """The limit of temporary files, MiB: four times the memory, and at most half of what is free."""
        free_mib = shutil.disk_usage(tempfile.gettempdir()).free // _MIB
        return max(1, min(_SPILLS * self.held_mib, free_mib // 2))


def machine_mib() -> int:
    """The memory of this machine, MiB, or of the control group (container) that this process is confined to."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError):  # not on Linux
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers == "":
                top, name = Path("/sys/fs/cgroup"), "memory.max"
            elif "memory" in controllers.split(","):
                top, name = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
            else:
                continue
            own = top / group.lstrip("/")
            for folder in (own, *(parent for parent in own.parents if parent.is_relative_to(top))):
                with contextlib.suppress(OSError, ValueError):  # `max`, or a group that is not shown in here
                    limits.append(int((folder / name).read_text(encoding="utf-8")))
    return int(min(limits)) // _MIB


# ------------------------------------------------------------------------------------------------- temporary files


def limit(connection: duckdb.DuckDBPyConnection, limits: SqlLimits) -> Path:
    """Limit what a connection holds in memory and on disk; returns the folder of its temporary files.

    Files there could be read by SQL that names them, so the folder's name is a random one.
    """
    spill = Path(tempfile.gettempdir()) / f"rbpx-spill-{os.getpid()}-{uuid.uuid4().hex}"
    _remove_old_spills(spill.parent)
    connection.execute("SET memory_limit = $1", [f"{limits.held_mib}MiB"])
    connection.execute("SET temp_directory = $1", [str(spill)])
    connection.execute("SET max_temp_directory_size = $1", [f"{limits.spilled_mib}MiB"])
    return spill


def _remove_old_spills(folder: Path) -> None:
    """Remove what processes left that were killed more than a day ago, tasks of their forks too."""
    for path in (*folder.glob("rbpx-spill-*-*"), *folder.glob("rbpx-tasks-*-*")):
        if age_s(path) > _OLD_S and not _is_alive(path.name.split("-")[2]):
            shutil.rmtree(path, ignore_errors=True)


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)  # signal 0 only checks that the process exists
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        pass
    return True


def close(connection: duckdb.DuckDBPyConnection, spill: Path) -> None:
    """Close a connection and remove its temporary files; one whose query was left behind stays open."""
    if not is_left_behind(connection):
        connection.close()
    shutil.rmtree(spill, ignore_errors=True)


# ----------------------------------------------------------------------------------------------------------- queries


def is_computing() -> bool:
    """Whether a query that could not be stopped still computes: it would hold up the end of the process."""
    return bool(_left_behind)


def is_left_behind(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether such a query has the connection, which cannot be used then."""
    return any(query.connection is connection for query in list(_left_behind))


class Bounded:
    """A query that is computed in a thread of its own; a context manager that stops it at the end."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, limits: SqlLimits) -> None:
        """Prepare to use a connection, which nothing else may use meanwhile."""
        self.connection = connection
        self._limits = limits
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._used_s, self._own_s = 0.0, time.thread_time()
        held_mib = limits.held_mib
        aside_mib = max(0.0, min(0.5 * held_mib + _ASIDE_MIB, 0.75 * machine_mib() - held_mib))
        self._most_mib = _resident_mib() + held_mib + aside_mib
        self._thread = threading.Thread(target=self._serve, name="rbpx-sql", daemon=True)

    def __enter__(self) -> "Bounded":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._calls.put(None)
        if not self.is_left_behind:
            self._thread.join()  # DuckDB prints fifty lines about leaks where a thread holds it when the process ends

    @property
    def is_left_behind(self) -> bool:
        """Whether the query could not be stopped, so that its connection cannot be used any more."""
        return self in _left_behind

    def call(self, do: Callable[[], T]) -> T:
        """The result of a call that uses the connection.

        Raises:
            RbpxError: a limit was reached.
        """
        self._used_s += time.thread_time() - self._own_s  # what was done with the rows since the last call
        self._check(self._used_s)
        future: Future[T] = Future()
        self._calls.put((do, future))
        began = time.monotonic()
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    return future.result(_LOOK_S)
                if future.done():
                    return future.result()
                self._check(self._used_s + time.monotonic() - began)
        finally:
            self._used_s += time.monotonic() - began
            self._own_s = time.thread_time()
            if not future.done():
                self._stop(future)

    def _check(self, used_s: float) -> None:
        timeout_s = self._limits.timeout_s
        if timeout_s is not None and used_s > timeout_s:
            raise RbpxError(
                f"this query took longer than sql_timeout_s={timeout_s:g} and was stopped; narrow it with WHERE or "
                f"LIMIT, or give it more time: sql_timeout_s={10 * timeout_s:g}"
            )
        if _resident_mib() > self._most_mib:
            raise RbpxError(too_large(self._limits))

    def _stop(self, future: Future[Any]) -> None:
        self.connection.interrupt()
        try:
            wait([future], _GRACE_S)
        finally:
            if not future.done():
                _left_behind.add(self)

    def _serve(self) -> None:
        while (asked := self._calls.get()) is not None:
            do, future = asked
            try:
                future.set_result(do())
            except BaseException as problem:
                future.set_exception(problem)
            del asked, do, future  # or the last rows would be held until the next are asked for
        _left_behind.discard(self)


def too_large(limits: SqlLimits) -> str:
    """What to say of a query that needs more memory than it may have."""
    return (
        f"this query needs more than sql_memory_mib={limits.held_mib} and {limits.spilled_mib} MiB of temporary files; "
        f"narrow it with WHERE or LIMIT, or give it more: sql_memory_mib={2 * limits.held_mib}"
    )


def _resident_mib() -> float:
    """The memory of this process, MiB; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB
