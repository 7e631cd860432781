"""Kept answers: what a question printed, found again while runs, request and code are the same; `answers/` of a store.

An answer is a pure function of the runs, which never change, of what was asked, and of the code. Its file is named by
what was asked, so a new answer takes the place of a stale one. It is used only if it is as it was sealed, the files of
the store and the code are those that it was made from, and the fits that were kept with it are still the store's; in
any other case the question is computed again. Nothing else depends on the folder, which can be removed at any time.
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Final

from rbpx.files.digest import RECORD_MIB, digest, read_sealed, write_sealed
from rbpx.files.entries import MIB, folder_at, plain_file, stamp_of
from rbpx.store.files.inside import ANSWERS, RUNNING, WRITTEN, check_folders, inside, is_ours

__all__ = ["kept_answer"]

_COMPUTED: Final = ("fits", "rank_fits")  # by questions, from the other files
_NO_INPUTS: Final = (
    *(ANSWERS, RUNNING, "rbpx.duckdb", "README.md"),
    *(f"{place}{kind}" for kind in _COMPUTED for place in ("", f"{WRITTEN}/")),
)
_BESIDE: Final = ("created_at", "params", "seal")  # the numbers of a fit
_DEPTH: Final = 2  # runs/RUN_ID/tokens.parquet
_ROOM_BYTES: Final = 256 * MIB
_SOURCES: Final = (".py", ".sql", ".css", ".js", ".jinja")
_LIBRARIES: Final = ("duckdb", "jinja2", "lmfit", "numpy", "pyarrow", "rich", "scipy", "vl-convert-python", "altair")

Stamps = dict[str, list[int]]
"""Path in the store -> what changes when the file is written or replaced."""


def kept_answer(stores: Sequence[str], asked: Mapping[str, Any]) -> "KeptAnswer | None":
    """The answer as a store on this machine keeps it.

    None for a store elsewhere, where several are asked as one, and where a file may not be read.

    Raises:
        RbpxError: it has a link in the place of a folder.
    """
    root = folder_at(Path(stores[0]), f"store={stores[0]}")
    if len(set(stores)) > 1 or not root.is_dir():
        return None
    check_folders(root)
    try:
        return KeptAnswer(root, asked)
    except PermissionError:  # what may not be read is named by the question, where it needs it
        return None


class KeptAnswer:
    """The answer to one question, as far as the store has it.

    `find` comes first; what it did not find is computed and given to `keep`.
    """

    def __init__(self, root: Path, asked: Mapping[str, Any]) -> None:
        """Look at the store as it is before anything is computed.

        Args:
            root: the folder of the store.
            asked: all that the answer depends on beside runs and code, as plain values.
        """
        self._root = root
        self._path = inside(root, f"{ANSWERS}/{digest(dict(asked))}.json")
        self._made_from = _made_from(root)
        self._fits = _stamps(root, _COMPUTED)

    def find(self) -> dict[str, Any] | None:
        """The answer that was kept; None where it has to be computed."""
        try:
            record = read_sealed(self._path, always=True, most_mib=_ROOM_BYTES // MIB)
        except (OSError, ValueError):
            return None
        if not _is_kept(record):
            return None
        if record["made_from"] != self._made_from or not (self._root / "rbpx.duckdb").is_file():
            return None
        for name, (stamp, numbers) in record["fits"].items():
            # another question may have written the same fit anew, with more beside it
            if self._fits.get(name) != stamp and _numbers(self._root / name) != numbers:
                return None
        answer: dict[str, Any] = record["answer"]
        return answer

    def keep(self, answer: Mapping[str, Any]) -> None:
        """Keep what was computed, unless the store has changed meanwhile or cannot be written."""
        if _made_from(self._root) != self._made_from:
            return
        now = _stamps(self._root, _COMPUTED)
        written = {name: stamp for name, stamp in now.items() if self._fits.get(name) != stamp}
        fits = {name: [stamp, _numbers(self._root / name)] for name, stamp in written.items()}
        record = {"made_from": self._made_from, "fits": fits, "answer": dict(answer)}
        with suppress(OSError):  # it is computed again next time
            write_sealed(inside(self._root, self._path), record, durable=False)
            _make_room(self._root, self._path)


def _is_kept(record: Mapping[str, Any]) -> bool:
    """Whether a sealed record has the parts of a kept answer; whoever writes to a store can seal anything."""
    fits = record.get("fits")
    whole = isinstance(fits, dict) and all(isinstance(fit, list) and len(fit) == 2 for fit in fits.values())
    return whole and "made_from" in record and isinstance(record.get("answer"), dict)


def _made_from(root: Path) -> str:
    """A digest of all that answers are computed from: the files of the store, and the code."""
    entries = sorted(entry.name for entry in os.scandir(root) if not entry.name.startswith("."))
    return digest([str(root), _stamps(root, entries, _NO_INPUTS), _code()])


def _stamps(root: Path, names: Iterable[str], without: tuple[str, ...] = ()) -> Stamps:
    return {path: stamp for name in names for path, stamp in _walk(str(root), name, without)}


def _walk(root: str, name: str, without: tuple[str, ...], depth: int = 0) -> Iterator[tuple[str, list[int]]]:
    """The files below a name, except those being written and those whose names begin with one of `without`."""
    if name.startswith(without):
        return
    path = f"{root}/{name}"
    with suppress(FileNotFoundError):  # another process has just removed it
        stat = os.lstat(path)
        if S_ISDIR(stat.st_mode) and depth < _DEPTH:
            for child in sorted(child for child in os.listdir(path) if not child.startswith(".")):
                yield from _walk(root, f"{name}/{child}", without, depth + 1)
        else:
            yield name, stamp_of(stat)


def _numbers(fit: Path) -> str | None:
    """A digest of the numbers of a fit in nine digits; its time does not count, nor its `params` but for resamples."""
    try:
        row = json.loads(plain_file(fit, RECORD_MIB).read_text(encoding="utf-8"))
        named = [row.get("params", {}).get("resamples"), *(row[name] for name in sorted(row) if name not in _BESIDE)]
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return digest([f"{value:.9g}" if isinstance(value, float) else value for value in named])


@cache
def _code() -> str:
    """A digest of the package and of the libraries that compute and print."""
    package = str(Path(__file__).resolve().parents[1])
    contents = hashlib.sha256()
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(name for name in names if name.endswith(_SOURCES)):
            path = f"{folder}/{name}"
            with open(path, "rb") as file:
                contents.update(path.removeprefix(package).encode() + b"\0" + file.read())
    return digest([contents.hexdigest(), platform.python_version(), [metadata.version(name) for name in _LIBRARIES]])


def _make_room(root: Path, newest: Path) -> None:
    """Remove the oldest answers while all of them take more than their room; other files stay."""
    aged = []
    for entry in os.scandir(newest.parent):
        with suppress(FileNotFoundError):  # another process makes room too
            if is_ours(ANSWERS, entry.name) and entry.is_file(follow_symlinks=False):
                stat = entry.stat()
                aged.append((stat.st_mtime_ns, stat.st_size, Path(entry.path)))
    room = _ROOM_BYTES
    for _, n_bytes, path in sorted(aged, reverse=True):
        room -= n_bytes
        if room < 0 and path != newest:
            inside(root, path).unlink(missing_ok=True)
