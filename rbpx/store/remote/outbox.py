"""Sends what this machine wrote to a store in object storage: runs, records and small tables.

unsent/<kind>/<file>   an empty file for each, made before it is written here and removed once the bucket has it

A run is sent tables first and manifest last, each only where there is none. A killed process leaves tables that no
manifest names, and the note here by which the next command sends the rest.
"""

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rbpx.errors import MeasureError, number_of
from rbpx.files.digest import read_sealed
from rbpx.files.entries import atomic_remove, atomic_write
from rbpx.store.checks.values import named_tables
from rbpx.store.files.inside import TABLES, UNSENT, inside, is_ours, whole_run
from rbpx.store.remote.bucket import Bucket, GoneError
from rbpx.store.remote.object_names import is_of_run, name_of_table
from rbpx.store.store import MANIFEST

_LOGGER = logging.getLogger(__name__)


class Outbox:
    """The notes of what is to be sent from a folder to a bucket."""

    def __init__(self, root: Path, bucket: Bucket) -> None:
        """Notes lie below `root`."""
        self._root, self._bucket = root, bucket

    def note(self, path: Path) -> None:
        """Note that a file, or the folder of a run, is to be sent once it is written."""
        note = inside(self._root, self._note(path))
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()

    def forget(self, path: Path) -> None:
        """Remove the note of a file."""
        inside(self._root, self._note(path)).unlink(missing_ok=True)

    def names(self) -> set[str]:
        """What is to be sent, by its path; runs by that of their manifest too."""
        names = {f"{path.parent.name}/{path.name}" for path in self._notes()}
        return names | {f"{name}/{MANIFEST}" for name in names if name.startswith("runs/")}

    def send_all(self) -> None:
        """Send all that is noted.

        Raises:
            MeasureError: the storage does not answer; what is left stays noted.
        """
        notes = sorted(self._notes(), key=lambda path: _order(path.parent.name))
        for n_sent, note in enumerate(notes):
            try:
                self.send(self._root / note.parent.name / note.name)
            except MeasureError as problem:
                n_left = len(notes) - n_sent
                left = f"{number_of(n_left, 'file or run', 'files and runs')} {'is' if n_left == 1 else 'are'}"
                raise MeasureError(f"{problem}; {left} still to be sent from {self._root}") from None

    def _notes(self) -> list[Path]:
        notes = self._root.glob(f"{UNSENT}/*/[!.]*")
        return [path for path in notes if is_ours(f"{UNSENT}/{path.parent.name}", path.name)]

    def _note(self, path: Path) -> Path:
        return self._root / UNSENT / path.parent.name / path.name

    def send(self, path: Path) -> None:
        """Send a run, a record or a table, and remove its note.

        Raises:
            MeasureError: the storage does not answer.
        """
        kind, name = path.parent.name, f"{path.parent.name}/{path.name}"
        if not path.exists():  # a process was killed before it was written, or it was removed again
            pass
        elif kind == "runs":
            if not self._send_run(path):
                return
        elif kind in TABLES or kind == "forecasts":  # named by what they contain, or by their run
            self._bucket.put_new(name, path)
        elif kind == "cells":
            self._send_cell(path)
        else:
            self._bucket.put(name, path)
        self.forget(path)

    def _send_run(self, folder: Path) -> bool:
        """Send a run, unless its manifest names what is no table of a run; returns whether that was done."""
        manifest, name = (folder / MANIFEST).read_bytes(), f"runs/{folder.name}/{MANIFEST}"
        try:
            parts = _parts(folder, read_sealed(folder / MANIFEST))
        except ValueError as problem:
            reason = f"manifest.json does not describe a run: {problem}"
            _LOGGER.warning(f"run {folder.name} in {self._root} is not sent: {reason}; rbpx store rm {folder.name}")
            return False
        self._send_parts(parts)
        if not self._bucket.put_new(name, manifest):
            theirs = self._bucket.get(name)
            if theirs != manifest:  # another machine was faster; its run stays
                place_manifest(folder, theirs)
                with suppress(ValueError, RecursionError):  # it names no tables: none of ours is taken away
                    self._bucket.remove(sorted(parts.keys() - _parts(folder, json.loads(theirs)).keys()))
                return True
        self._send_parts(parts)  # those that `store rm` of another machine removed meanwhile
        return True

    def is_as_there(self, folder: Path) -> bool:
        """Whether the manifest of a run is the one in the bucket, or the only one; from now on it is."""
        try:
            there = self._bucket.get(f"runs/{folder.name}/{MANIFEST}")
        except GoneError:
            return True
        is_same = (folder / MANIFEST).is_file() and there == (folder / MANIFEST).read_bytes()
        if not is_same:
            place_manifest(folder, there)
        return is_same

    def remove_there(self, run_id: str) -> None:
        """Remove a run in the bucket, its manifest first."""
        below = filter(is_of_run, self._bucket.below(f"runs/{run_id}"))
        self._bucket.remove(sorted(below, key=lambda path: not path.endswith(MANIFEST)))

    def _send_parts(self, parts: Mapping[str, Path]) -> None:
        for name, path in parts.items():
            if not path.exists():  # fetched from there, or dropped since it was sent
                continue
            there = self._bucket.entry(name)
            if there is None:
                self._bucket.put_new(name, path)
            elif there.n_bytes != path.stat().st_size:
                self._bucket.put(name, path)

    def _send_cell(self, path: Path) -> None:
        """Send which run answers a request; where it was answered meanwhile by another run, that answer stays."""
        name = f"cells/{path.name}"
        if self._bucket.put_new(name, path):
            return
        theirs = self._bucket.get(name)
        with suppress(ValueError, LookupError, TypeError, RecursionError):  # theirs is no record: ours stands
            if json.loads(theirs)["run_id"] != json.loads(path.read_bytes())["run_id"]:
                with atomic_write(inside(self._root, path)) as temporary:
                    temporary.write_bytes(theirs)
                return
        if theirs != path.read_bytes():
            self._bucket.put(name, path)


def _parts(folder: Path, manifest: object) -> dict[str, Path]:
    """The tables of a run: name in the bucket -> file here.

    Raises:
        ValueError: its manifest names something else.
    """
    return {name_of_table(folder / name, sha256): folder / name for name, sha256 in named_tables(manifest).items()}


def place_manifest(folder: Path, manifest: bytes) -> None:
    """Make the folder of a run that was measured elsewhere; another version of it goes."""
    root = folder.parent.parent
    if folder.is_dir():
        atomic_remove(whole_run(root, folder))
    with suppress(OSError), atomic_write(inside(root, folder), durable=False) as temporary:  # another was faster
        temporary.mkdir()
        (temporary / MANIFEST).write_bytes(manifest)


def _order(kind: str) -> int:
    """Where a kind stands when all is sent: what others refer to comes first."""
    kinds = ("vocab", "samples", "runs", "temperatures", "best", "imports", "cells")
    return kinds.index(kind) if kind in kinds else len(kinds)
