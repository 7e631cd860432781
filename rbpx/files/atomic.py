"""Files written whole or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rbpx.errors import RbpxError


def write_whole(path: Path, text: str) -> None:
    """Write a small file beside its place and rename it there: a reader sees all of it or the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with parts.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(parts, path)
    finally:
        parts.unlink(missing_ok=True)


@contextmanager
def place(output: str) -> Iterator[Path]:
    """A path to write to; what was written there takes its name at the end, or vanishes with an error.

    Raises:
        RbpxError: the output cannot be written.
    """
    final = Path(output).expanduser().resolve()
    if final.exists() and not final.is_file():  # a pipe or a device has no file beside it
        parts = final
    else:
        parts = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    try:
        yield parts
        if parts != final:
            os.replace(parts, final)
    except OSError as problem:
        reason = problem.strerror or problem
        raise RbpxError(f"output={output} cannot be written: {reason}; name another file") from None
    finally:
        if parts != final:
            parts.unlink(missing_ok=True)


def check_output(output: str) -> None:
    """Refuse a place where nothing can be written, before anything is measured.

    Raises:
        RbpxError: it is a folder, its folder is missing, or may not be written.
    """
    path = Path(output).expanduser()
    reason = "is a folder" if path.is_dir() else None if path.parent.is_dir() else "lies in no folder that there is"
    if reason is None and not os.access(path if path.exists() else path.parent, os.W_OK):
        reason = "cannot be written by you"
    if reason is not None:
        raise RbpxError(f"output={output} {reason}; name another file")
