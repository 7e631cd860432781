"""The state of each cell of a grid: done, running, stopped, failed or missing, read from the store without a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rbpx.config.grid import Cell
from rbpx.config.options import Bos
from rbpx.config.text.protocol import ProtocolConfig
from rbpx.store.heartbeat import LastHeartbeat, read_heartbeats
from rbpx.store.store import Record, Store

_ASKED = {"dtype", "limit", "seed", "model", "protocol"}  # of a request, by every version


class State(StrEnum):
    """The state of a cell: the first of these that applies."""

    done = "done"
    running = "running"
    stopped = "stopped"
    failed = "failed"
    missing = "missing"


@dataclass(frozen=True)
class CellState:
    """The state of one cell.

    Attributes:
        cell: as requested.
        state: of the cell.
        run_id: the run that answers it, where it is done.
        error: why it failed, where it did.
        heartbeat: the last one of the process that is measuring it, or that was stopped while it did.
    """

    cell: Cell
    state: State
    run_id: str | None = None
    error: str | None = None
    heartbeat: LastHeartbeat | None = None

    def row(self) -> Record:
        """As a record."""
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

    A cell is looked up by its key. Where its text is not on this machine, it has no key; then the newest cell with the
    same names, model, protocol, dtype, sample size and seed answers it.
    """
    heartbeats = read_heartbeats(store)
    unnamed = any(cell.text_hash is None for cell in cells)  # else no record is read but those of the cells
    records, failures = (list(store.records(kind)) if unnamed else [] for kind in ("cells", "failures"))
    return [_cell_state(cell, store, records, failures, heartbeats) for cell in cells]


def _cell_state(
    cell: Cell,
    store: Store,
    records: Sequence[Record],
    failures: Sequence[Record],
    heartbeats: dict[str, LastHeartbeat],
) -> CellState:
    if cell.text_hash is None:
        alike = [record for record in records if _same_request(cell, record) and store.has_run(record["run_id"])]
        done = max(alike, key=lambda record: record.get("asked_at") or "", default=None)
        heartbeat = next((beat for beat in heartbeats.values() if _same_names(cell, beat.facts)), None)
        failed = next((record for record in failures if _same_names(cell, record)), None)
    else:
        done = store.cell(cell.key)
        heartbeat = heartbeats.get(cell.key)
        failed = store.record("failures", cell.failure_key)
    if done is not None:
        return CellState(cell, State.done, run_id=done["run_id"])
    if heartbeat is not None:
        return CellState(cell, State.running if heartbeat.alive else State.stopped, heartbeat=heartbeat)
    if failed is not None:
        return CellState(cell, State.failed, error=failed["error"])
    return CellState(cell, State.missing)


def _same_names(cell: Cell, record: Record) -> bool:
    """Whether a heartbeat or a failure has the names of a cell; records of older versions have fewer."""
    return all(record.get(name, value) == value for name, value in cell.names().items() if name != "cell_key")


def _same_request(cell: Cell, record: Record) -> bool:
    """Whether the request of a measured cell was the same as this one, apart from the text."""
    request = record.get("config")
    if not request or not _ASKED <= request.keys():  # not one that a version of rbpx wrote
        return False
    if not isinstance(request["model"], dict) or not isinstance(request["protocol"], dict):
        return False
    if any(getattr(cell, n) != record.get(n) for n in ("family", "size", "model", "revision", "dataset")):
        return False
    protocol = {**vars(ProtocolConfig()), "padding": ProtocolConfig().padding.value, **request["protocol"]}
    theirs = {**{name: request[name] for name in ("dtype", "limit", "seed")}, "bos": request["model"].get("bos")}
    theirs["quantise"] = request["model"].get("quantise")
    engine = request.get("engine") or {}
    theirs |= {"engine": engine.get("name"), "engine_version": engine.get("version")}
    theirs |= {"protocol": protocol.get("name"), **{n: protocol[n] for n in ("window", "whole", "stride", "padding")}}
    theirs["deterministic"] = request.get("deterministic", False)
    theirs["bos"] = theirs["bos"] or Bos.tokenizer.value
    return all(getattr(cell, name) == value for name, value in theirs.items())
