"""Stores the measured rows of an unfinished cell in parts, so that an interrupted cell resumes from them.

running/.parts.<key>.<number>.tmp   a checksum of the key and of what follows: seconds, and rows of scored tokens

The key is a hash of the run and of what decides its batches (tokens per batch, number of processes, versions, devices).
A part holds whole batches, so the bytes of the run are those of an uninterrupted one. A truncated or changed part is
measured again. A store removes parts a month after they were written.
"""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rbpx.data.windows import Window
from rbpx.files.entries import atomic_write
from rbpx.store.store import RUNNING, Store

Rows = npt.NDArray[Any]
SECONDS: Final = "RBPX_PART_S"  # environment variable: seconds between parts
_SECONDS: Final = 30.0
_CHECKSUM_BYTES: Final = 32


class Parts:
    """The parts of one cell that one process measures, and the seconds that the stored rows took.

    A cell that takes less than the interval writes none. A failed write is no error; the part is lost.
    """

    def __init__(self, store: Store, key: str, kind: np.dtype[Any]) -> None:
        """Read what an earlier process left; `key` has 16 hexadecimal digits, `kind` doc_id, position and token_id."""
        self._store, self._key, self._kind = store, key, kind
        self._every_s = float(os.environ.get(SECONDS, _SECONDS))
        self._sealed_at = time.monotonic()
        self._open: list[Rows] = []
        names = store.root / RUNNING
        self._files = sorted(names.glob(f".parts.{key}.*.tmp"))
        self.wall_s = 0.0
        self._rows = np.concatenate([np.empty(0, kind), *map(self._read, self._files)])
        places = zip(self._rows["doc_id"].tolist(), self._rows["position"].tolist(), strict=True)
        self._at = {place: at for at, place in enumerate(places)}

    @property
    def n_tokens(self) -> int:
        """Number of tokens that were measured before."""
        return len(self._rows)

    def rows(self, window: Window) -> Rows | None:
        """The stored rows of a window; None where there are none, or where their tokens differ."""
        first = int(window.scored.argmax())
        at = self._at.get((window.doc_id, window.start + first))
        if at is None:
            return None
        rows = self._rows[at : at + window.n_scored]
        positions = window.start + np.flatnonzero(window.scored)
        own = (rows["doc_id"] == window.doc_id).all() and np.array_equal(rows["position"], positions)
        return rows if own and np.array_equal(rows["token_id"], window.ids[window.scored]) else None

    def add(self, rows: Rows) -> None:
        """Add the rows of a batch, and write a part if it is time."""
        self._open.append(rows)
        if time.monotonic() - self._sealed_at >= self._every_s:
            self.seal()

    def seal(self) -> None:
        """Write the rows that are in no part yet."""
        number = 1 + max((int(path.name.split(".")[-2], 16) for path in self._files), default=-1)
        wall_s = np.float64(time.monotonic() - self._sealed_at)
        content = wall_s.tobytes() + np.concatenate(self._open).tobytes()
        with suppress(OSError):  # writing the run reports a full disk or missing store
            path = self._store.root / RUNNING / f".parts.{self._key}.{number:08x}.tmp"
            with atomic_write(path, durable=False) as temporary:
                temporary.write_bytes(self._checksum(content) + content)
            self._files.append(path)
        self._open, self._sealed_at = [], time.monotonic()

    def remove(self) -> None:
        """Remove all parts, now that the run holds their rows."""
        for path in self._files:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        self._files = []

    def _read(self, path: Path) -> Rows:
        """None where its checksum does not match this key."""
        with suppress(OSError):
            whole = path.read_bytes()
            content = whole[_CHECKSUM_BYTES:]
            if whole[:_CHECKSUM_BYTES] == self._checksum(content):
                self.wall_s += float(np.frombuffer(content, np.float64, 1)[0])
                return np.frombuffer(content, self._kind, offset=np.float64().nbytes)
        return np.empty(0, self._kind)

    def _checksum(self, content: bytes) -> bytes:
        return hashlib.sha256(self._key.encode() + content).digest()
