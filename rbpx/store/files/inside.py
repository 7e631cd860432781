"""Guards what lies inside a store: real folders in place of links, and in each only files that rbpx names.

A store may come from somebody else, and a link in it leads anywhere. So a store with a link in the place of a folder is
not opened (`check_folders`), and each path is checked here (`inside`) before anything is written to it or removed.
"""

import os
import re
import shutil
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Final

from rbpx.errors import RbpxError
from rbpx.files.entries import age_s, is_temporary, kind_of

KINDS: Final = ("cells", "fits", "rank_fits", "failures", "forecasts")  # a JSON file each
TABLES: Final = ("vocab", "imports", "samples", "temperatures", "best")  # a Parquet file each
TABLES_OF_RUN: Final = ("tokens.parquet", "rank_counts.parquet", "documents.parquet")
FOLDERS: Final = ("runs", *KINDS, *TABLES)
RUNNING: Final = "running"
WRITTEN: Final = "written"
UNSENT: Final = "unsent"
_OF_KINDS: Final = (WRITTEN, UNSENT)  # with a folder in it for each kind, and a note for each file
_KEY: Final = "[0-9a-f]{16}"
_PLAIN: Final = r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*"
_NAMES: Final = {  # of what rbpx makes in a folder, the first being the store's own
    "": re.compile(r"rbpx\.duckdb|hashes\.json|\.(checked|tags)\.json|\.[\w.]+\.lock|\.scratch\.\w+\.tmp"),
    **dict.fromkeys((*KINDS, RUNNING), re.compile(rf"{_PLAIN}\.json")),
    **dict.fromkeys(TABLES, re.compile(rf"{_PLAIN}\.parquet")),
    "runs": re.compile(_PLAIN),
    "samples": re.compile(rf"{_PLAIN}|\.{_KEY}\.lock"),  # with any ending in stores of early versions
}
_OF_A_RUN: Final = re.compile("|".join(map(re.escape, ("manifest.json", *TABLES_OF_RUN))))
_HARMLESS: Final = {
    *("@eadir", "__macosx", "$recycle.bin", "system volume information", "lost+found"),
    *("thumbs.db", "desktop.ini"),
}
_UNFINISHED_S: Final = 24 * 3600  # no run takes that long to write
_SCRATCH_S: Final = 30 * _UNFINISHED_S  # nor so long to measure, or to go on with what was measured of it
_LONGEST_BYTES: Final = 200  # of a name, to which endings are added; file systems take 255


def is_plain(name: str) -> bool:
    """Whether a name is a plain file name, not a path that leads elsewhere, and no longer than file systems take."""
    return re.fullmatch(_PLAIN, name) is not None and len(name.encode(errors="replace")) <= _LONGEST_BYTES


def is_harmless(name: str) -> bool:
    """Whether a name is one that file systems and synchronisation give to what they put into every folder."""
    return name.startswith(".") or name.lower() in _HARMLESS


def is_ours(folder: str, name: str) -> bool:
    """Whether rbpx makes something of a name in a folder of a store; '' is the store's own."""
    top, _, kind = folder.partition("/")
    if top in _OF_KINDS and kind in FOLDERS:
        top, kind = kind, ""
    names = _NAMES.get(top) if not kind else _OF_A_RUN if top == "runs" and is_plain(kind) else None
    return names is not None and (is_temporary(name) or names.fullmatch(name) is not None)


def check_folders(root: Path) -> None:
    """Refuse a store that has something else in the place of one of its folders.

    Raises:
        RbpxError: with what is there, and what to do.
    """
    for name in (*FOLDERS, RUNNING, *_OF_KINDS, *(f"{name}/{kind}" for name in _OF_KINDS for kind in FOLDERS)):
        _refuse_stranger(root, name)
    for name in FOLDERS:  # without the others all can be read
        if os.path.exists(root / name) and not os.path.isdir(root / name):
            raise RbpxError(f"{root / name} is a file where a store has a folder; move it elsewhere")


def inside(root: Path, path: Path | str) -> Path:
    """A path in a store, at which something is about to be written or removed.

    Args:
        root: the folder of the store, its real path.
        path: in it.

    Raises:
        RbpxError: it leads out of the store, or rbpx makes nothing of that name there.
    """
    whole = root / path
    *folders, name = whole.relative_to(root).parts
    if not is_ours("/".join(folders), name):
        raise RbpxError(f"{str(whole)!r} is not a file of a store and is left alone; move it out of store={root}")
    for depth in range(1, len(folders) + 1):
        _refuse_stranger(root, "/".join(folders[:depth]))
    _refuse_stranger(root, "/".join([*folders, name]), "delete the link itself")
    return whole


def whole_run(root: Path, folder: Path) -> Path:
    """The folder of a run that is about to be removed.

    Raises:
        RbpxError: as `inside`, or something lies in it that rbpx did not put there.
    """
    name = f"runs/{inside(root, folder).name}"
    for each in sorted(each.name for each in folder.iterdir()) if folder.is_dir() else ():
        if not is_ours(name, each) and not is_harmless(each):
            raise RbpxError(
                f"{folder / each} is not a file of a run and would be deleted with it; move it elsewhere first"
            )
    return folder


def unfinished(root: Path) -> list[Path]:
    """What processes are writing in a store, or left there when they were killed."""
    hidden = [(folder, path) for folder in _NAMES for path in (root / folder).glob(".*.tmp*")]
    return sorted(path for folder, path in hidden if is_ours(folder, path.name) and not path.is_symlink())


def clear_unfinished(root: Path) -> None:
    """Remove what processes left unfinished that were killed long ago."""
    for path in unfinished(root):
        if age_s(path) > (_SCRATCH_S if path.name.startswith((".scratch.", ".parts.")) else _UNFINISHED_S):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else inside(root, path).unlink(missing_ok=True)


def _refuse_stranger(root: Path, name: str, next_: str = "put the folder in its place, or delete the link") -> None:
    """Refuse a link, a pipe or a device."""
    path = f"{root}/{name}"
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if S_ISLNK(mode):
        raise RbpxError(f"{path} is a link to {os.readlink(path)}, which is left alone; {next_}")
    if not S_ISREG(mode) and not S_ISDIR(mode):
        raise RbpxError(f"{path} is {kind_of(mode)}, which is left alone; delete it")
