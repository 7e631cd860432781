"""Where cells stand: a grid and a store in; done, running, stopped, failed or missing out, without loading anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rbpx.config.grid import Cell
from rbpx.config.options import Bos
from rbpx.config.protocol import ProtocolConfig
from rbpx.store.heartbeat import Marked, read_marks
from rbpx.store.store import Record, Store


class State(StrEnum):
    """Where a cell stands; the first that holds."""

    done = "done"
    running = "running"
    stopped = "stopped"
    failed = "failed"
    missing = "missing"


@dataclass(frozen=True)
class Standing:
    """Where one cell stands.

    Attributes:
        cell: as asked.
        state: where it stands.
        run_id: the run that answers it, where it is done.
        error: why it failed, where it did.
        mark: of the process that measures it or was stopped.
    """

    cell: Cell
    state: State
    run_id: str | None = None
    error: str | None = None
    mark: Marked | None = None

    def row(self) -> Record:
        """As a record."""
        told = ("host", "pid", "since", "n_tokens", "tokens_done", "tokens_per_s")
        facts: Record = {} if self.mark is None else self.mark.facts
        return {
            "state": self.state.value,
            **self.cell.names(),
            "run_id": self.run_id,
            "error": self.error,
            **{name: facts.get(name) for name in told},
        }


def stand(cells: Sequence[Cell], store: Store) -> list[Standing]:
    """Where each cell of a grid stands.

    A cell is looked up by its key. Where its text is not on this machine, so that it has none, it is the newest one of
    the same names that was asked with the same model, protocol, dtype, sample size and seed.
    """
    marks = read_marks(store)
    records = list(store.records("cells"))
    failures = list(store.records("failures"))
    return [_stand(cell, store, records, failures, marks) for cell in cells]


def _stand(
    cell: Cell, store: Store, records: Sequence[Record], failures: Sequence[Record], marks: dict[str, Marked]
) -> Standing:
    if cell.text_hash is None:
        alike = [record for record in records if _same_request(cell, record) and store.has_run(record["run_id"])]
        done = max(alike, key=lambda record: record["asked_at"], default=None)
        mark = next((marked for marked in marks.values() if _same_names(cell, marked.facts)), None)
        failed = next((record for record in failures if _same_names(cell, record)), None)
    else:
        done = store.cell(cell.key)
        mark = marks.get(cell.key)
        failed = store.record("failures", cell.failure_key)
    if done is not None:
        return Standing(cell, State.done, run_id=done["run_id"])
    if mark is not None:
        return Standing(cell, State.running if mark.alive else State.stopped, mark=mark)
    if failed is not None:
        return Standing(cell, State.failed, error=failed["error"])
    return Standing(cell, State.missing)


def _same_names(cell: Cell, record: Record) -> bool:
    """Whether a mark or a failure has the names of a cell; records of older versions have fewer."""
    return all(record.get(name, value) == value for name, value in cell.names().items() if name != "cell_key")


def _same_request(cell: Cell, record: Record) -> bool:
    """Whether a cell that was measured was asked as this one, its text apart."""
    asked = record["config"]
    if not asked or any(getattr(cell, n) != record[n] for n in ("family", "size", "model", "revision", "dataset")):
        return False
    protocol = {**vars(ProtocolConfig()), "padding": ProtocolConfig().padding.value, **asked["protocol"]}
    theirs = {**{name: asked[name] for name in ("dtype", "limit", "seed")}, "bos": asked["model"].get("bos")}
    theirs |= {"protocol": protocol["name"], **{n: protocol[n] for n in ("window", "whole", "stride", "padding")}}
    theirs["bos"] = theirs["bos"] or Bos.tokenizer.value
    return all(getattr(cell, name) == value for name, value in theirs.items())
