"""Reads the state of each cell of a grid (done, running, stopped, failed or missing) and writes heartbeats.

States come from the store alone. While a process measures a cell, a thread rewrites running/<cell_key>.json every few
seconds, so a recent modification time shows that the process is alive.
"""

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rbpx.config.grid import Cell
from rbpx.config.options import Bos, Joined
from rbpx.config.text.dataset import ProtocolConfig
from rbpx.errors import reason
from rbpx.files.entries import atomic_write_text
from rbpx.store.messages import warn_damage
from rbpx.store.records import need_fault, read_json, sealed
from rbpx.store.store import RUNNING, Record, Store, now

_BEAT_S = 4.0
_SILENT_S = 300.0  # a process silent for this long is not running


class Heartbeat:
    """Writes the heartbeat of one cell that this process measures; ignores write errors."""

    def __init__(self, store: Store, facts: Record) -> None:
        self._path = store.root / RUNNING / f"{facts['cell_key']}.json"
        self._facts = {**facts, "host": platform.node(), "pid": os.getpid(), "since": now()}
        self._n_tokens: int | None = None
        self._done, self._began = 0, 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="rbpx-heartbeat", daemon=True)

    def follow(self, n_tokens: int, advance: Callable[[int], None], processes: int = 1) -> Callable[[int], None]:
        """Wrap `advance`, which reports the tokens of one process, to count its calls towards `n_tokens`."""
        self._n_tokens, self._began = n_tokens, time.monotonic()

        def counting_advance(n: int) -> None:
            self._done = min(n_tokens, self._done + n * processes)
            advance(n)

        return counting_advance

    def begin(self) -> None:
        """Start writing the heartbeat."""
        _LIVE.add(self)
        self._thread.start()

    def end(self) -> None:
        """Stop writing and remove the file."""
        self._over.set()
        if self._thread.is_alive():  # a signal may come before it starts
            self._thread.join()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        _LIVE.discard(self)

    def _beat(self) -> None:
        while not self._over.is_set():
            pace = self._done / (time.monotonic() - self._began) if self._done else None
            progress: Record = {"n_tokens": self._n_tokens, "tokens_done": self._done, "tokens_per_s": pace}
            with suppress(OSError):  # the process reports a full disk or lost store when it writes the run
                atomic_write_text(self._path, sealed(self._facts | progress), durable=False)
            self._over.wait(_BEAT_S)


_LIVE: Final = set[Heartbeat]()


def end_heartbeats() -> None:
    """End the heartbeats of this process that a signal interrupted while they ended."""
    for beat in list(_LIVE):
        beat.end()


@contextmanager
def heartbeat(store: Store, facts: Record, leads: bool = True) -> Iterator[Heartbeat]:
    """Show a cell as running within the block; only the process that `leads` writes."""
    beat = Heartbeat(store, facts)
    try:
        if leads:
            beat.begin()
        yield beat
    finally:
        if leads:
            beat.end()


@dataclass(frozen=True)
class LastHeartbeat:
    """The last heartbeat of a cell.

    Attributes:
        facts: the names of the cell, host, pid, since, n_tokens, tokens_done, tokens_per_s.
        alive: else its process was stopped.
    """

    facts: Record
    alive: bool


def read_heartbeats(store: Store) -> dict[str, LastHeartbeat]:
    """The heartbeats in a store, by cell_key."""
    heartbeats = {}
    for path in sorted((store.root / RUNNING).glob("[!.]*.json")):
        try:
            facts, written = read_json(path), path.stat().st_mtime
            fault = need_fault(facts, _NEEDED)
        except FileNotFoundError:  # it ended after it was listed
            continue
        except (OSError, ValueError) as problem:  # the machine stopped amid a write
            fault = reason(problem)
        if fault is not None:
            warn_damage(store.root, f"{RUNNING}/{path.name}", fault, "remove that file")
            continue
        alive = abs(time.time() - written) < _SILENT_S and _may_live(facts)  # clocks of hosts may differ by less
        heartbeats[facts["cell_key"]] = LastHeartbeat(facts, alive)
    return heartbeats


def _may_live(facts: Record) -> bool:
    """Whether the process of a heartbeat may be alive; of another host only its silence tells."""
    if facts["host"] != platform.node():
        return True
    try:
        with suppress(PermissionError):  # another user's process
            os.kill(int(facts["pid"]), 0)  # signal 0 only checks that the process exists
    except ProcessLookupError:
        return False
    return True


_NEEDED: Final = {  # keys of a heartbeat that readers need, and their types
    **dict.fromkeys(("cell_key", "family", "size", "dataset", "host", "since"), str),
    **dict.fromkeys(("pid", "cell", "cells", "tokens_done"), int),
}
_ASKED = {"dtype", "limit", "seed", "model", "protocol"}  # keys of a request in every version


class State(StrEnum):
    """The state of a cell: the first of these that applies."""

    done = "done"
    running = "running"
    stopped = "stopped"
    failed = "failed"
    missing = "missing"


@dataclass(frozen=True)
class CellState:
    """The state of one cell, the run that answers it, or why it failed."""

    cell: Cell
    state: State
    run_id: str | None = None
    error: str | None = None
    failed_at: str | None = None
    heartbeat: LastHeartbeat | None = None

    def row(self) -> Record:
        """The state as a record."""
        progress = ("host", "pid", "since", "n_tokens", "tokens_done", "tokens_per_s")
        facts: Record = {} if self.heartbeat is None else self.heartbeat.facts
        return {
            "state": self.state.value,
            **self.cell.names(),
            "run_id": self.run_id,
            "error": self.error,
            **{name: facts.get(name) for name in progress},
        }


def cell_states(cells: Sequence[Cell], store: Store) -> list[CellState]:
    """The state of each cell of a grid.

    Without its text on this machine a cell has no key; the newest with the same request, apart from the text, is used
    instead.
    """
    heartbeats, states = read_heartbeats(store), []
    unnamed = any(cell.text_hash is None for cell in cells)  # otherwise only the records of the cells are read
    records, failures = (list(store.records(kind)) if unnamed else [] for kind in ("cells", "failures"))
    for cell in cells:
        if cell.text_hash is None:
            alike = [record for record in records if _same_request(cell, record) and store.has_run(record["run_id"])]
            done = max(alike, key=lambda record: record.get("asked_at") or "", default=None)
            heartbeat = next((beat for beat in heartbeats.values() if _same_names(cell, beat.facts)), None)
            failed = next((record for record in failures if _same_names(cell, record)), None)
        else:
            done, heartbeat = store.cell(cell.key), heartbeats.get(cell.key)
            failed = store.record("failures", cell.failure_key)
        if done is not None:
            states.append(CellState(cell, State.done, run_id=done["run_id"]))
        elif heartbeat is not None:
            states.append(CellState(cell, State.running if heartbeat.alive else State.stopped, heartbeat=heartbeat))
        elif failed is not None:
            states.append(CellState(cell, State.failed, error=failed["error"], failed_at=failed.get("at")))
        else:
            states.append(CellState(cell, State.missing))
    return states


def _same_names(cell: Cell, record: Record) -> bool:
    """Whether a heartbeat or a failure has the names of a cell; older records have fewer."""
    return all(record.get(name, value) == value for name, value in cell.names().items() if name != "cell_key")


def _same_request(cell: Cell, record: Record) -> bool:
    request = record.get("config") or {}
    model, asked, dataset, engine = (request.get(name) or {} for name in ("model", "protocol", "dataset", "engine"))
    if not (_ASKED <= request.keys() and isinstance(model, dict) and isinstance(asked, dict)):  # not written by rbpx
        return False
    protocol = {**vars(ProtocolConfig()), "padding": ProtocolConfig().padding.value, **asked}
    theirs = {
        **{name: record.get(name) for name in ("family", "size", "model", "revision", "dataset")},
        **{name: request[name] for name in ("dtype", "limit", "seed")},
        **{name: protocol[name] for name in ("window", "whole", "stride", "padding", "prefix")},
        "protocol": protocol.get("name"),
        "bos": model.get("bos") or Bos.tokenizer.value,
        "chat": model.get("chat", False),
        "system": model.get("system"),
        "joined": dataset.get("joined", Joined.skip.value) if isinstance(dataset, dict) else Joined.skip.value,
        "quantise": model.get("quantise"),
        "adapter": record.get("adapter"),
        "engine": engine.get("name"),
        "engine_version": engine.get("version"),
        "deterministic": request.get("deterministic", False),
    }
    return all(getattr(cell, name) == value for name, value in theirs.items())
