"""What a grid would cost before it runs: a request in, a row a cell out; nothing is measured or downloaded."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rbpx.config.options import Dtype
from rbpx.config.request import Request
from rbpx.data.corpus import Document
from rbpx.errors import RbpxError
from rbpx.measure.offline import grid_offline
from rbpx.measure.plan.memory import Room, look_around, what_fits
from rbpx.measure.plan.throughput import Pace, calibrate, nearest
from rbpx.measure.plan.tokens_read import Cut, find_load, load_of_run, reading_of
from rbpx.models.costs import Shape, flops, peak_mib
from rbpx.models.shapes import look_up
from rbpx.store import relations
from rbpx.store.cell_states import CellState, State, cell_states
from rbpx.store.remote import open_store
from rbpx.store.store import Record, Store

_MIB = 2**20
_DISK_BYTES_PER_TOKEN = 9.0  # of the bundled ladder's runs


@dataclass(frozen=True)
class Planned:
    """What one cell would cost; None is what is not known here. Sizes in MiB, times in seconds.

    Attributes:
        standing: the cell and where it stands.
        non_embedding_params: S.
        total_params: all parameters.
        weights_mib: of the files where they are here, else of all parameters in the dtype asked for.
        memory_mib: at the peak, in one process.
        flops: of the whole cell.
        tokens: that are scored.
        counted: whether the tokens were counted; else they are estimated.
        disk_mib: in the store.
        time_s: of the forward passes; of a cell that is done, what they took.
        time_from: which pace the time comes from.
        fits: what makes it fit into the memory that is free now; see `room.what_fits`.
    """

    standing: CellState
    non_embedding_params: int | None
    total_params: int | None
    weights_mib: float | None
    memory_mib: float | None
    flops: float | None
    tokens: int | None
    counted: bool
    disk_mib: float | None
    time_s: float | None
    time_from: str | None
    fits: str | None

    @property
    def is_done(self) -> bool:
        """Whether nothing of it is left to do."""
        return self.standing.state is State.done

    def row(self) -> Record:
        """As a record; units in the names."""
        cell = self.standing.cell
        names = ("family", "size", "model", "revision", "dataset", "protocol", "dtype")
        told = ("non_embedding_params", "total_params", "weights_mib", "memory_mib", "flops", "tokens")
        more = ("disk_mib", "time_s", "time_from", "fits")
        return {
            "cell_key": None if cell.text_hash is None else cell.key,
            **{name: getattr(cell, name) for name in names},
            **{name: getattr(self, name) for name in told},
            "tokens_counted": None if self.tokens is None else self.counted,
            **{name: getattr(self, name) for name in more},
            "state": self.standing.state.value,
            "run_id": self.standing.run_id,
            "error": self.standing.error,
        }


def plan_grid(request: Request) -> list[Planned]:
    """What each cell of a request's grid would cost.

    Raises:
        RbpxError: the request names no model or text, or a folder or file that is missing.
    """
    store = open_store(request.store)
    grid, documents = grid_offline(request, store)
    assert request.dtype is not None, "a cell has one"
    room = look_around(request.device.value, store.root)
    runs = relations.table(store, "runs").to_pylist()
    if request.calibrate:
        paces = [calibrate(room.device, request.dtype.value)]
    else:
        paces = _paces(runs, store, request.dtype, room)
    return [_plan(standing, request, documents, runs, paces, room, store) for standing in cell_states(grid, store)]


def _plan(
    standing: CellState,
    request: Request,
    documents: Sequence[Document] | None,
    runs: Sequence[Record],
    paces: Sequence[Pace],
    room: Room,
    store: Store,
) -> Planned:
    cell = standing.cell
    model = request.model
    asked = model.shape_of(cell.size) if model is not None and cell.size in model.sizes else {}
    here = look_up(cell.model, cell.revision, asked)
    shape = here.shape
    reading = reading_of(cell, None if shape is None else shape.context)
    found = find_load(standing, reading, here.folder, documents, runs, store)
    load, counted = (None, False) if found is None else found
    work = None if shape is None or load is None else flops(shape, load)
    pace = None if not work or load is None or not load.n_scored else nearest(paces, work / load.n_scored)
    done = next((run for run in runs if run["run_id"] == standing.run_id), None)
    if done is not None:
        time_s, time_from = done["wall_s"], "measured"
    elif pace is not None and work is not None:
        time_s, time_from = work / pace.flops_per_s, pace.source
    else:
        time_s, time_from = None, None
    memory = None if shape is None else _memory(shape, request, reading, documents, here.weights_mib, room)
    released = here.weights_mib
    if released is None and shape is not None:
        released = shape.weights_mib(cell.dtype)
    return Planned(
        standing=standing,
        non_embedding_params=cell.non_embedding_params or (None if shape is None else shape.non_embedding_params),
        total_params=None if shape is None else shape.total_params,
        weights_mib=released,
        memory_mib=None if memory is None else memory[cell.dtype],
        flops=work,
        tokens=None if load is None else load.n_scored,
        counted=counted,
        disk_mib=_disk_mib(standing, shape, None if load is None else load.n_scored, runs, store),
        time_s=time_s,
        time_from=time_from,
        fits=None
        if memory is None or shape is None
        else what_fits(cell.dtype, memory, shape.weights_mib(cell.dtype), room),
    )


def _memory(
    shape: Shape,
    request: Request,
    reading: Cut,
    documents: Sequence[Document] | None,
    released_mib: float | None,
    room: Room,
) -> dict[str, float]:
    """Memory at the peak by dtype."""
    assert request.dtype is not None, "a cell has one"
    n_bytes = None if documents is None else sum(len(d.text.encode("utf-8", "surrogatepass")) for d in documents)
    return {
        dtype: peak_mib(shape, dtype, room.device, request.tokens_per_batch, reading.window, n_bytes, released_mib)
        for dtype in {request.dtype.value, Dtype.bfloat16.value}
    }


def _disk_mib(
    standing: CellState, shape: Shape | None, n_tokens: int | None, runs: Sequence[Record], store: Store
) -> float | None:
    """What a run takes in the store: as the run with the nearest vocabulary does for each of its tokens."""
    if standing.run_id is not None:
        return _size_bytes(store, standing.run_id) / _MIB
    if n_tokens is None:
        return None
    per_token = _DISK_BYTES_PER_TOKEN
    if runs and shape is not None:
        V = shape.vocab_size
        like = min(runs, key=lambda run: (abs(math.log(run["vocab_size"] / V)), -run["n_tokens"]))
        per_token = _size_bytes(store, like["run_id"]) / like["n_tokens"]
    return n_tokens * per_token / _MIB


def _size_bytes(store: Store, run_id: str) -> int:
    return sum(path.stat().st_size for path in store.run_folder(run_id).iterdir())


def _paces(runs: Sequence[Record], store: Store, dtype: Dtype, room: Room) -> list[Pace]:
    """The paces of runs by one process on a device of this name."""
    device = torch.cuda.get_device_name() if room.device == "cuda" else room.device
    found = []
    for run in runs:
        if (run["device"], run["dtype"], run["n_processes"]) != (device, dtype.value, 1):
            continue
        shape = _shape_of_run(run)
        if shape is None:
            continue
        work = flops(shape, load_of_run(store, run["run_id"], Cut(run["window"], run["stride"])))
        source = f"{run['family']} {run['size']} on {run['dataset']}"
        found.append(Pace(source, work / run["wall_s"], work / run["n_tokens"]))
    return found


def _shape_of_run(run: Record) -> Shape | None:
    """The shape of a measured model, from the family that it was asked under or from its folder if that is here."""
    asked = json.loads(run["config"] or "{}").get("model") or {}
    size = (asked.get("sizes") or {}).get(run["size"]) or {}
    shape: dict[str, Any] = {**(asked.get("shape") or {}), **(size.get("shape") or {})}
    try:
        return look_up(run["model"], run["revision"], shape).shape
    except RbpxError:  # its folder is gone
        return None
