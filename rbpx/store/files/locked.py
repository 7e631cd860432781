"""Locks of a store between processes: who waits for long is told for whom."""

import logging
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from rbpx.store.files.inside import inside

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
