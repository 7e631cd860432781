"""Files and folders on disk: what lies at a path, and writes that are seen complete or not at all.

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

_TEMPORARY: Final = re.compile(r"\..+\.[0-9a-f]{8}\.tmp(\.wal)?")  # DuckDB writes a log beside its file


@contextmanager
def atomic_write(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Write a file, or a folder with files in it, at the path that this yields; it is renamed to `path` at the end.

    The yielded path is in the same folder, begins with a dot and ends in `.tmp`. Missing parent folders are made.

    What a reader sees: the complete old content or the complete new content. An existing file is replaced. An existing
    folder is not: where another process was faster, its folder stays and this write fails.

    What a crash of the machine leaves: the complete old or new content, and after a normal return the new: the bytes
    are on disk before the rename, and the folder's entry is on disk after it (where the platform can synchronise
    folders). With `durable=False` nothing is synchronised, so a crash of the machine (not of the process) may leave an
    empty or partial file under the final name: this is for what can be made again, and is recognised as corrupt when it
    is read.

    What a killed process leaves: the temporary file or folder. `Store.leftovers` lists them.

    Args:
        path: the final path.
        durable: whether to wait until everything is on disk.

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
    """Remove a folder: a reader sees it complete or not at all. Of a link to a folder the link alone is removed."""
    temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.tmp")
    os.replace(folder, temporary)
    _remove(temporary)


def is_refusal(problem: OSError) -> bool:
    """Whether writing failed because the file system or the folder is read-only to this user."""
    return problem.errno in (errno.EROFS, errno.EACCES, errno.EPERM)


def is_full(problem: OSError) -> bool:
    """Whether writing failed because there is no room, on the disk or in this user's share of it."""
    return problem.errno in (errno.ENOSPC, errno.EDQUOT)


def is_temporary(name: str) -> bool:
    """Whether a name is one that `atomic_write` gives to what is written."""
    return _TEMPORARY.fullmatch(name) is not None


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it; each new entry is synchronised, so that a durable file in it can be found."""
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
    """The whole path of a folder, whether or not it is there; `name` is what an error calls it.

    Raises:
        RbpxError: a file is there.
    """
    whole = path.expanduser().resolve()
    if whole.is_file():
        raise RbpxError(f"{name} is a file; give the path of a folder")
    return whole


def names_in(folder: Path, *, only_folders: bool = False) -> list[str]:
    """Names in a folder in their order, without those that begin with a dot; none where there is no such folder.

    Names are sorted, not paths, which takes a tenth of the time.
    """
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
