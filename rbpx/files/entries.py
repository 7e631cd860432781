"""Writes files and folders atomically, and inspects paths.

Nothing else in rbpx renames a file into place.
"""

import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from rbpx.errors import RbpxError

_TEMPORARY: Final = re.compile(r"\..+\.[0-9a-f]{8}\.tmp(\.wal)?")  # DuckDB writes a log next to its file


@contextmanager
def atomic_write(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path for a file, or a folder with files in it; it is renamed to `path` at the end.

    An existing file is replaced. Missing parent folders are made.

    After a crash of the machine the content is whole, old or new: the bytes are on disk before the rename, and the
    folder's entry after it (where the platform can synchronise folders). With `durable=False` such a crash may leave a
    partial file under the final name; use it for what can be made again and is recognised as corrupt when it is read. A
    killed process leaves the temporary path, which `Store.leftovers` lists.

    Raises:
        OSError: it cannot be written, or `path` is a folder that is not empty. No temporary file remains.
    """
    _make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield temporary
        if durable:
            _synchronise_tree(temporary)
        os.replace(temporary, path)
        if durable:
            _synchronise_folder(path.parent)
    except BaseException:
        _remove(temporary)
        temporary.with_name(f"{temporary.name}.wal").unlink(missing_ok=True)  # DuckDB's
        raise


def atomic_write_text(path: Path, text: str, *, durable: bool = True) -> None:
    """Write a text file in UTF-8, as `atomic_write` does."""
    with atomic_write(path, durable=durable) as temporary:
        temporary.write_text(text, encoding="utf-8")


def atomic_remove(folder: Path) -> None:
    """Remove a folder atomically; of a link to a folder only the link is removed."""
    temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.tmp")
    os.replace(folder, temporary)
    _remove(temporary)


def is_refusal(problem: OSError) -> bool:
    """Whether writing failed because the file system or the folder is read-only to this user."""
    return problem.errno in (errno.EROFS, errno.EACCES, errno.EPERM)


def is_full(problem: OSError) -> bool:
    """Whether writing failed because the disk or this user's quota is full."""
    return problem.errno in (errno.ENOSPC, errno.EDQUOT)


def is_temporary(name: str) -> bool:
    """Whether `atomic_write` made this name."""
    return _TEMPORARY.fullmatch(name) is not None


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents; each new entry is synchronised, so that a durable file in it can be found."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _synchronise_folder(folder.parent)


def _synchronise_tree(path: Path) -> None:
    if not path.is_dir():
        _synchronise(path)
        return
    for entry in path.iterdir():
        _synchronise_tree(entry)
    _synchronise_folder(path)


def _synchronise_folder(folder: Path) -> None:
    with suppress(OSError):  # some platforms and file systems cannot
        _synchronise(folder)


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(temporary: Path) -> None:
    if temporary.is_dir() and not temporary.is_symlink():
        shutil.rmtree(temporary, ignore_errors=True)
    else:
        temporary.unlink(missing_ok=True)


def folder_at(path: Path, name: str) -> Path:
    """The absolute path of a folder, whether or not it exists; raises RbpxError, with `name`, where a file is there."""
    whole = path.expanduser().resolve()
    if whole.is_file():
        raise RbpxError(f"{name} is a file; give the path of a folder")
    return whole


def names_in(folder: Path, *, only_folders: bool = False) -> list[str]:
    """The sorted names in a folder, without those that begin with a dot, in a tenth of the time of paths."""
    try:
        with os.scandir(folder) as entries:
            return sorted(e.name for e in entries if e.name[0] != "." and (not only_folders or e.is_dir()))
    except FileNotFoundError:
        return []


def age_s(path: Path) -> float:
    """Seconds since a file or folder was last written to; 0 if it no longer exists."""
    try:
        return datetime.now().timestamp() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
