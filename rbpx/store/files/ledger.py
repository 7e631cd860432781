"""The ledger of a store, which shows that a file beside the runs was deleted by hand; and locks between processes.

written/<kind>/<file>   an empty file for each file of each of `KINDS`

An entry is made after its file and taken away before it. Making and removing an empty file need no lock and cannot be
half done: a process that is killed between the two leaves a file whose loss would go unnoticed, never a false alarm.
Files of stores from before the ledger are entered when the index is next rebuilt. Vocabularies need no entry, because
each run names its own.
"""

import contextlib
import logging
import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from rbpx.store.files.inside import WRITTEN, inside, is_ours

__all__ = ["HeldError", "locked"]

_LOGGER = logging.getLogger(__name__)
_SILENT_S: Final = 5.0  # as long a store of 10,000 runs is indexed


class HeldError(Exception):
    """Another process holds a lock for longer than was waited for; says which."""


@contextmanager
def locked(root: Path, name: str, waits: bool = True) -> Iterator[None]:
    """Hold a lock, of which the file says who holds it.

    Args:
        root: the folder of the store.
        name: the file in it.
        waits: whether to wait for as long as another process holds it, which is logged.

    Raises:
        HeldError: it is held, and not waited for.
        RbpxError: something else lies there.
        OSError: the file cannot be written.
    """
    lock = FileLock(inside(root, name))
    try:
        lock.acquire(timeout=_SILENT_S)
    except Timeout:
        held = f"{root / name} is held by {_holder(root / name)}"
        if not waits:
            raise HeldError(held) from None
        _LOGGER.warning(f"{held}; waiting for it")
        lock.acquire()
    try:
        with suppress(OSError):  # a full disk: then the file does not say it
            inside(root, name).write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        lock.release()


def _holder(path: Path) -> str:
    with suppress(OSError, ValueError):
        return path.read_text(encoding="utf-8")[:200] or "another process"
    return "another process"


KINDS: Final = ("cells", "fits", "rank_fits", "imports", "temperatures", "best", "forecasts")


def enter(path: Path) -> None:
    """Note that a file was written. Without room for the entry the file stays, but its loss would go unnoticed."""
    entry = _own_entry(path)
    with contextlib.suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.touch()


def enter_all(paths: Iterable[Path]) -> None:
    """Note files that are here without an entry, as those of an earlier version."""
    for path in paths:
        enter(path)
        if not path.exists():  # removed by another process meanwhile
            forget(path)


def has(path: Path) -> bool:
    """Whether a file was noted."""
    return _entry(path).exists()


def since(path: Path) -> str | None:
    """When a file was noted, in UTC as all times of the store; None where it was not."""
    try:
        noted = _entry(path).lstat().st_mtime
    except OSError:
        return None
    return datetime.fromtimestamp(noted, UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def remove(path: Path) -> None:
    """Remove a file of the store, if it exists, and its entry, so that it is not reported as lost."""
    forget(path)
    inside(path.parent.parent, path).unlink(missing_ok=True)
    forget(path)  # `enter_all` of another process may have seen it just before it went


def forget(path: Path) -> None:
    """Remove the entry of a file."""
    _own_entry(path).unlink(missing_ok=True)


def missing(root: Path) -> list[Path]:
    """The files that were written and are gone, in the order of their kinds and names."""
    gone = []
    for kind in KINDS:
        here = {path.name for path in (root / kind).glob("[!.]*")}
        entries = {path.name for path in (root / WRITTEN / kind).glob("[!.]*") if is_ours(kind, path.name)}
        entries |= {name for name in _evicted(root / kind) if name not in here}
        gone += [root / kind / name for name in sorted(entries - here)]
    # Looked at again, because what `remove` takes away loses its entry first.
    return [path for path in gone if not path.exists() and (_entry(path).exists() or is_evicted(path))]


def is_evicted(path: Path) -> bool:
    """Whether a placeholder of iCloud stands where a file was: it is in the cloud, not on this machine."""
    return path.with_name(f".{path.name}.icloud").exists()


def _evicted(folder: Path) -> list[str]:
    return [path.name[1 : -len(".icloud")] for path in folder.glob(".*.icloud")]


def _entry(path: Path) -> Path:
    return path.parent.parent / WRITTEN / path.parent.name / path.name


def _own_entry(path: Path) -> Path:
    """The entry of a file, to be made or removed."""
    return inside(path.parent.parent, _entry(path))
