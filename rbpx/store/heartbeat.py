"""Cells that are being measured: a file in the store while a process works on one, and how others read it.

running/<cell_key>.json   host, pid, since when, how far. A thread writes it anew every few seconds, so the time of the
file tells that the process lives, also while a model loads or a batch takes long.
"""

import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rbpx.files.atomic import atomic_write_text
from rbpx.store.store import Record, Store, now

FOLDER = "running"
_BEAT_S = 4.0
_SILENT_S = 300.0  # a process that wrote nothing for so long is not running


class Heartbeat:
    """Writes the heartbeat of one cell that this process measures; failing to write it stops nothing."""

    def __init__(self, store: Store, facts: Record) -> None:
        """Prepare the mark of the cell that `facts` name by `cell_key`."""
        self._path = store.root / FOLDER / f"{facts['cell_key']}.json"
        self._facts = {**facts, "host": platform.node(), "pid": os.getpid(), "since": now()}
        self._n_tokens: int | None = None
        self._done, self._began = 0, 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="rbpx-mark", daemon=True)

    def follow(self, n_tokens: int, advance: Callable[[int], None], processes: int = 1) -> Callable[[int], None]:
        """Count what `advance` is told, towards `n_tokens`; it tells the tokens of one of so many processes."""
        self._n_tokens, self._began = n_tokens, time.monotonic()

        def told(n: int) -> None:
            self._done = min(n_tokens, self._done + n * processes)
            advance(n)

        return told

    def begin(self) -> None:
        """Leave the mark and keep it fresh."""
        self._thread.start()

    def end(self) -> None:
        """Take the mark away."""
        self._over.set()
        self._thread.join()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._over.is_set():
            took_s = time.monotonic() - self._began if self._done else 0.0
            pace = self._done / took_s if took_s else None
            progress: Record = {"n_tokens": self._n_tokens, "tokens_done": self._done, "tokens_per_s": pace}
            with suppress(OSError):  # a full disk or a store that went away is told by what writes the run
                atomic_write_text(self._path, json.dumps(self._facts | progress), durable=False)
            self._over.wait(_BEAT_S)


@contextmanager
def heartbeat(store: Store, facts: Record, leads: bool = True) -> Iterator[Heartbeat]:
    """Mark a cell as running for as long as the block takes; only the process that `leads` writes."""
    mark = Heartbeat(store, facts)
    if leads:
        mark.begin()
    try:
        yield mark
    finally:
        if leads:
            mark.end()


@dataclass(frozen=True)
class LastHeartbeat:
    """What the heartbeat of a cell said last.

    Attributes:
        facts: what its mark says: the names of the cell, host, pid, since, n_tokens, tokens_done, tokens_per_s.
        alive: whether it is being measured; else its process was stopped.
    """

    facts: Record
    alive: bool

    @property
    def share(self) -> float | None:
        """The share of its tokens that is done; None before their number is known."""
        n_tokens = self.facts["n_tokens"]
        return None if not n_tokens else float(self.facts["tokens_done"] / n_tokens)

    @property
    def left_s(self) -> float | None:
        """Seconds until it is done, at its pace so far."""
        if self.share is None or not self.facts["tokens_per_s"]:
            return None
        return float((self.facts["n_tokens"] - self.facts["tokens_done"]) / self.facts["tokens_per_s"])


def read_heartbeats(store: Store) -> dict[str, LastHeartbeat]:
    """The marks of a store by cell_key."""
    found = {}
    for path in sorted((store.root / FOLDER).glob("[!.]*.json")):
        try:
            facts, written = json.loads(path.read_text(encoding="utf-8")), path.stat().st_mtime
        except FileNotFoundError:  # it ended since it was listed
            continue
        found[facts["cell_key"]] = LastHeartbeat(facts, time.time() - written < _SILENT_S and _may_live(facts))
    return found


def _may_live(facts: Record) -> bool:
    """Whether the process of a mark may live; of another host only its silence tells."""
    if facts["host"] != platform.node():
        return True
    try:
        os.kill(facts["pid"], 0)  # sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another user's
    return True
