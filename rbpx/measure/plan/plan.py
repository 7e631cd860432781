"""The verb `plan`: what each cell of a grid would cost, without measuring or downloading anything."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rbpx.config.keys.runs import Planning
from rbpx.config.options import Dtype
from rbpx.data.corpus import Document
from rbpx.errors import RbpxError
from rbpx.measure.grid import grid_here
from rbpx.measure.notes import n_bytes_of
from rbpx.measure.plan.memory import FreeMemory, free_memory, what_fits
from rbpx.measure.plan.throughput import Throughput, calibrate, nearest
from rbpx.measure.plan.tokens_read import find_tokens_read, tokens_read_of_run
from rbpx.models.architecture import Architecture, look_up
from rbpx.models.costs import TokensRead, flops, memory_mib
from rbpx.store.cell_states import CellState, State, cell_states
from rbpx.store.store import Record, Store

_MIB = 2**20
_SIZES = ("non_embedding_params", "active_params", "total_params")
_COSTS = (
    *(*_SIZES, "weights_mib", "memory_mib", "flops", "tokens", "tokens_counted", "scored_share", "disk_mib"),
    *("time_s", "time_from", "fits"),
)
_DISK_BYTES_PER_TOKEN = 9.0  # where the store has no runs: the bundled ladder's


@dataclass(frozen=True)
class Planned:
    """A cell with what it costs.

    Attributes:
        costs: None where unknown on this machine. weights_mib is of the weight files if they are here, else of all
            parameters in the requested dtype; tokens are those that are scored; scored_share is of the bytes of a
            user's text; time_s is that of the forward passes, by the run that time_from names; fits as `what_fits`.
    """

    cell_state: CellState
    costs: Record

    @property
    def is_done(self) -> bool:
        """Whether the cell is measured already."""
        return self.cell_state.state is State.done

    def row(self) -> Record:
        """The cell and its costs as a record, with units in the names."""
        cell, names = self.cell_state.cell, ("family", "size", "model", "revision", "dataset", "protocol", "dtype")
        return {
            "cell_key": None if cell.text_hash is None else cell.key,
            **{name: getattr(cell, name) for name in names},
            **self.costs,
            "state": self.cell_state.state.value,
            "run_id": self.cell_state.run_id,
            "error": self.cell_state.error,
        }


def plan_grid(request: Planning) -> list[Planned]:
    """The cost of each cell of a request's grid; raises as `grid_here`."""
    grid = grid_here(request)
    store, documents = grid.store, None if grid.sample is None else grid.sample.documents
    assert request.dtype is not None, "the grid of a request sets its dtype"
    free = free_memory(request.device.value, store.root)
    runs = store.runs()
    if request.calibrate:
        throughputs = [calibrate(free.device, request.dtype.value)]
    else:
        throughputs = _throughputs(runs, store, request.dtype, free)
    states = cell_states(grid.cells, store)
    return [_plan(state, request, documents, runs, throughputs, free, store) for state in states]


def _plan(
    cell_state: CellState,
    request: Planning,
    documents: Sequence[Document] | None,
    runs: Sequence[Record],
    throughputs: Sequence[Throughput],
    free: FreeMemory,
    store: Store,
) -> Planned:
    cell, costs = cell_state.cell, dict[str, Any].fromkeys(_COSTS)
    local = look_up(cell.model, cell.revision, {} if request.model is None else request.model.shape_of(cell.size))
    architecture = local.architecture
    window, stride = cell.cut_for(None if architecture is None else architecture.context)
    text, counted = find_tokens_read(cell_state, (window, stride), local.folder, documents, runs, store)
    if text is not None:
        costs |= {"tokens": text.n_scored, "tokens_counted": counted}
        costs["scored_share"] = _scored_share(request, documents, text)
    if architecture is not None:
        costs |= {name: getattr(architecture, name) for name in _SIZES}
        costs["weights_mib"] = weights_mib = architecture.weights_mib(cell.dtype)
        costs["flops"] = None if text is None else flops(architecture, text)
        if cell.engine is None:  # an engine runs on its own machine
            batch, dtypes = request.tokens_in_batch(free.device), (cell.dtype, Dtype.bfloat16.value)
            needed_mib = {dtype: memory_mib(architecture, dtype, free.device, batch, window) for dtype in dtypes}
            costs |= {"memory_mib": needed_mib[cell.dtype], "fits": what_fits(needed_mib, weights_mib, free)}
    if local.weights_mib is not None:
        costs["weights_mib"] = local.weights_mib
    if cell.non_embedding_params:
        costs["non_embedding_params"] = cell.non_embedding_params
    run = next((run for run in runs if run["run_id"] == cell_state.run_id), None)
    if run is not None:
        costs |= {"time_s": run["wall_s"], "time_from": "measured"}
    elif costs["flops"] and costs["tokens"] and cell.engine is None:
        throughput = nearest(throughputs, costs["flops"] / costs["tokens"])
        if throughput is not None:
            costs |= {"time_s": costs["flops"] / throughput.flops_per_s, "time_from": throughput.source}
    costs["disk_mib"] = _disk_mib(cell_state, architecture, costs["tokens"], runs, store)
    return Planned(cell_state, costs)


def _scored_share(request: Planning, documents: Sequence[Document] | None, text: TokensRead) -> float | None:
    dataset = request.dataset
    if documents is None or dataset is None or dataset.path is None or dataset.has_items:
        return None
    n_bytes = n_bytes_of(documents)
    return text.n_bytes / n_bytes if n_bytes else None


def _disk_mib(
    cell_state: CellState, architecture: Architecture | None, n_tokens: int | None, runs: Sequence[Record], store: Store
) -> float | None:
    """By the bytes per token of the stored run with the most similar vocabulary size."""
    if cell_state.run_id is not None:
        return store.run_bytes(cell_state.run_id) / _MIB
    if n_tokens is None:
        return None
    per_token = _DISK_BYTES_PER_TOKEN
    if runs and architecture is not None:
        V = architecture.vocab_size
        similar = min(runs, key=lambda run: (abs(math.log(run["vocab_size"] / V)), -run["n_tokens"]))
        per_token = store.run_bytes(similar["run_id"]) / similar["n_tokens"]
    return n_tokens * per_token / _MIB


def _throughputs(runs: Sequence[Record], store: Store, dtype: Dtype, free: FreeMemory) -> list[Throughput]:
    """Of each run that one process measured in this dtype on a device of this name."""
    device = torch.cuda.get_device_name() if free.device == "cuda" else free.device
    throughputs = []
    for run in runs:
        if (run["device"], run["dtype"], run["n_processes"]) != (device, dtype.value, 1):
            continue
        architecture = _architecture_of_run(run)
        if architecture is None:
            continue
        n_flops = flops(architecture, tokens_read_of_run(store, run["run_id"], (run["window"], run["stride"])))
        source = f"{run['family']} {run['size']} on {run['dataset']}"
        throughputs.append(Throughput(source, n_flops / run["wall_s"], n_flops / run["n_tokens"]))
    return throughputs


def _architecture_of_run(run: Record) -> Architecture | None:
    """From the family in its request, or from its folder if that still exists."""
    family = json.loads(run["config"] or "{}").get("model") or {}
    size = (family.get("sizes") or {}).get(run["size"]) or {}
    shape: dict[str, Any] = {**(family.get("shape") or {}), **(size.get("shape") or {})}
    try:
        return look_up(run["model"], run["revision"], shape).architecture
    except RbpxError:  # its folder is gone
        return None
