"""Measures one cell: loads its model, cuts its text into windows, ranks the tokens and writes the run.

A cell whose run the store holds already is only linked to it.
"""

import logging
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from rbpx.config.grid import Cell
from rbpx.config.model.family import is_gguf
from rbpx.config.model.placement import Split
from rbpx.config.options import Quantise
from rbpx.config.text.dataset import SHORTEST
from rbpx.data.corpus import Document
from rbpx.data.hub_texts import Sample
from rbpx.data.windows import Window
from rbpx.errors import RbpxError, number_of
from rbpx.files.digest import digest
from rbpx.measure.best import best_tokens
from rbpx.measure.distributed import ProcessGroup
from rbpx.measure.extract import ROW, distinct_windows, measure_windows
from rbpx.measure.manifest import run_facts
from rbpx.measure.protocol import ResolvedProtocol, resolve_protocol
from rbpx.measure.reading.branches import read_once
from rbpx.measure.reading.parts import Parts
from rbpx.measure.reading.reading import Reading
from rbpx.measure.run_tables import Columns, run_tables, vocab_table
from rbpx.models.devices import devices_of
from rbpx.models.lengths import Lengths
from rbpx.models.load import LoadedModel, load_model
from rbpx.models.quantise import RECIPE
from rbpx.models.tensor_parallel import TensorGroup
from rbpx.spelling import typed
from rbpx.store import schema
from rbpx.store.store import Record, Store, now
from rbpx.version import __version__

_VERSIONED = ("torch", "transformers", "tokenizers", "accelerate", "numpy", "pyarrow", "duckdb")

Begin = Callable[[Sequence[Window], int], Callable[[int], None]]
"""Announces what is read and how many times; returns a function to be called with the number of tokens just scored."""
New = tuple[Columns, Record, Record]
"""The columns of the scored tokens of a run, how its logits were computed, and how measuring them went."""


def measure_cell(
    cell: Cell,
    sample: Sample,
    load: Callable[[], LoadedModel],
    store: Store,
    processes: ProcessGroup,
    tokens_per_batch: int,
    config: Record,
    begin: Begin,
    keeps_best: bool = False,
) -> Record:
    """Measure a cell that the store lacks; return the record that links it to its run.

    `begin` is called once, if anything has to be measured; `config` is the whole request.

    Raises:
        RbpxError: the model, its size, its tokenizer or the dataset does not match the request.
        MeasureError: measuring failed.
    """
    started_at = now()

    def cut() -> tuple[ResolvedProtocol[LoadedModel], list[Window]]:
        protocol = resolve_protocol(cell, load())
        return protocol, scored_windows(cell, protocol, sample.documents)

    protocol, windows = processes.together(cut)
    run_id = _run_id(cell, protocol, windows)
    is_new = not processes.broadcast(processes.is_main and store.has_run(run_id))
    lacks_best = keeps_best and not processes.broadcast(store.file("best", run_id).is_file())
    advance = begin(windows, is_new + lacks_best) if is_new or lacks_best else lambda n: None
    reading = Reading(protocol.loaded, windows, processes, tokens_per_batch, advance)
    parts = _parts(run_id, reading, store, str(cell)) if is_new else None
    new = _ranked(cell, reading, parts, started_at) if is_new else None
    best = best_tokens(run_id, reading) if lacks_best else None

    def write() -> Record:
        if not processes.is_main:
            return {}
        return write_cell(cell, protocol, windows, sample, store, run_id, started_at, config, new, best)

    record = processes.broadcast(processes.together(write))
    if parts is not None:
        parts.remove()
    return record


def _run_id(cell: Cell, protocol: ResolvedProtocol[LoadedModel], windows: Sequence[Window]) -> str:
    loaded = protocol.loaded
    identity = [schema.FORMAT, loaded.weights_hash, loaded.tokenizer_hash, cell.text_hash, cell.protocol]
    identity += [protocol.window, cell.dtype, f"float32 logits, {loaded.head.after}", *protocol.departures()]
    if cell.deterministic:
        identity.append("deterministic")
    if cell.quantise is not None:
        identity.append(RECIPE[Quantise(cell.quantise)])
    kind = Lengths(loaded.lengths.borders).kind  # positions are encoded differently in longer windows, says the model
    if len({kind(window.n_read) for window in windows if window.n_scored}) > 1:
        identity.append("lengths apart")  # 0.3.0 batched such windows together, so its runs differ
    return digest(identity)


def _ranked(cell: Cell, reading: Reading, parts: Parts | None, started_at: str) -> New:
    processes, loaded, once = reading.processes, reading.loaded, dict[str, Any]()

    def shares() -> None:
        tokens, pairs = read_once(distinct_windows(reading.windows).windows)
        once["read_once"] = {"tokens": tokens, "pairs": pairs}

    if processes.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(processes.device)  # else the peak of an earlier cell remains
    wall_from = time.monotonic()
    columns = measure_windows(replace(reading, shares=shares), parts)
    wall_s = time.monotonic() - wall_from + (0.0 if parts is None else parts.wall_s)
    computed = {"quantise": cell.rounded_to, "deterministic": cell.deterministic, "head": loaded.head.after}
    extras = {"torchao": cell.quantise is not None, "gguf": is_gguf(cell.model), "peft": cell.adapter is not None}
    went = {
        "device": ", ".join(device_names(devices_of(loaded.model))),
        "n_processes": processes.world_size,
        "tokens_per_s": reading.n_tokens / wall_s,
        "wall_s": wall_s,
        "peak_mib": _peak_mib(processes.device),
        **once,
        "started_at": started_at,
        "versions": versions() | {name: version(name) for name, is_needed in extras.items() if is_needed},
    }
    return columns, {**computed, **loaded.adapted}, went


def load_cell(
    cell: Cell, revision: str | None, device: torch.device, store: Store, spread: TensorGroup | Split | None
) -> LoadedModel:
    """Load the model of a cell on one device, or spread over several; raises what `load_model` raises."""
    quantise = None if cell.quantise is None else Quantise(cell.quantise)
    place = (device, store.hashes, cell.pickled, spread)
    return load_model(cell.model, revision, cell.dtype, *place, quantise, cell.adapter)


def _parts(run_id: str, reading: Reading, store: Store, name: str) -> Parts | None:
    """What an interrupted run saved of this process; None for a model that several processes hold."""
    processes = reading.processes
    if processes.tensor is not None:
        return None
    share = [reading.tokens_per_batch, processes.n_models, processes.of_model, torch.get_num_threads()]
    key = digest([run_id, share, versions(), device_names(devices_of(reading.loaded.model))])
    parts = Parts(store, key, ROW)
    if parts.n_tokens and processes.is_main:
        of_all = number_of(reading.n_tokens, "token")
        logging.getLogger(__name__).info(f"{name} was stopped before: {parts.n_tokens:,} of {of_all} are kept")
    return parts


def write_cell(
    cell: Cell,
    protocol: ResolvedProtocol[Any],
    windows: Sequence[Window],
    sample: Sample,
    store: Store,
    run_id: str,
    asked_at: str,
    config: Record,
    new: New | None,
    best: pa.Table | None = None,
) -> Record:
    """Write the run of a cell if it is new, and the record that links them, returned; remove a failure."""
    tokenizer, tokenizer_hash, documents = protocol.loaded.tokenizer, protocol.loaded.tokenizer_hash, sample.documents
    if not store.has_vocab(tokenizer_hash):
        store.write_file("vocab", tokenizer_hash, vocab_table(tokenizer, tokenizer_hash))
    if new is not None:
        facts = run_facts(run_id, cell, protocol, windows, documents, *new)
        store.write_run(run_id, facts, run_tables(run_id, new[0], windows, documents, cell.protocol))
    if best is not None:
        store.write_file("best", run_id, best)
    names = ("family", "size", "model", "revision", "dataset")
    record = {
        "cell_key": cell.key,
        "run_id": run_id,
        "text_hash": cell.text_hash,
        "protocol": cell.protocol,
        "dtype": cell.precision,
        **{name: getattr(cell, name) for name in names},
        **({} if cell.adapter is None else {"adapter": cell.adapter}),
        "commit": protocol.loaded.commit,
        "dataset_commit": sample.commit,
        "asked_at": asked_at,
        "config": config,
        **asdict(cell.training),
    }
    store.write_record("cells", cell.key, record)
    store.drop_record("failures", cell.failure_key)
    return record


def scored_windows(cell: Cell, protocol: ResolvedProtocol[Any], documents: Sequence[Document]) -> list[Window]:
    """The windows of the documents of a cell.

    Raises:
        RbpxError: none of them has a token to score.
    """
    windows = protocol.windows(documents)
    if not any(window.n_scored for window in windows):
        if documents[0].part is not None:
            raise RbpxError(
                f"dataset {cell.dataset} has nothing to score: the tokenizer joins a target of each of its items to "
                f"the context; begin targets with a space, as {typed(keys={'dataset.delimiter': ' '})} does"
            )
        raise RbpxError(
            f"dataset {cell.dataset} has nothing to score: none of its {len(documents):,} documents has "
            f"{SHORTEST} consecutive tokens; use longer texts"
        )
    return windows


def versions() -> Record:
    """Versions of rbpx, Python and the libraries, by name."""
    return {"rbpx": __version__, "python": platform.python_version()} | {name: version(name) for name in _VERSIONED}


def device_names(devices: Sequence[str]) -> list[str]:
    """Distinct names: cpu, or that of the GPU."""
    names = (torch.cuda.get_device_name(at) if at.startswith("cuda") else at.split(":")[0] for at in devices)
    return list(dict.fromkeys(names))


def _peak_mib(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    status = Path("/proc/self/status")
    if status.is_file():  # Linux: ru_maxrss starts at the parent's value
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) / 2**10
    in_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return in_kib / (2**20 if sys.platform == "darwin" else 2**10)
