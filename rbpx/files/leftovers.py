"""Removes what killed processes left beside a user's files: a living process holds a lock on what it writes."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rbpx.files.entries import age_s

_YOUNG_S: Final = 60.0  # it may not be locked yet


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a lock on an existing file or folder; a killed process loses it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError, ImportError):  # some systems have no locks; what lies there is never removed either
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def remove_left(paths: Iterable[Path]) -> None:
    """Remove those files and folders that no process holds any more."""
    for path in paths:
        with suppress(OSError, ImportError):  # another process removes it too, or it belongs to another user
            import fcntl

            if path.is_symlink() or age_s(path) < _YOUNG_S:
                continue
            descriptor = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            finally:
                os.close(descriptor)
