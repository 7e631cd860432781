"""Measures grids: each cell that the store lacks becomes a run in it; each model is loaded once."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from rbpx.config.grid import Cell
from rbpx.config.keys.runs import GridKeys
from rbpx.config.model.placement import EngineConfig, Split
from rbpx.config.options import Device
from rbpx.cores import is_lone_of_accelerate, is_main_process
from rbpx.data.hub_texts import Sample
from rbpx.data.parquet_parts import Tell
from rbpx.data.samples import sample
from rbpx.data.windows import Window
from rbpx.errors import AbsentModelError, MeasureError, RbpxError, UnexpectedError, raise_stop_behind
from rbpx.measure.grid import Grid, open_grid
from rbpx.measure.notes import log_notes, log_unscored
from rbpx.measure.results import Failure, Measured, not_measured, note_failure, pace, told
from rbpx.store.cell_states import heartbeat
from rbpx.store.relations import write_views
from rbpx.store.store import Record, Store

if TYPE_CHECKING:
    from rbpx.display.progress import GridProgress
    from rbpx.measure.distributed import ProcessGroup
    from rbpx.models.load import LoadedModel

_LONE: Final = (
    "accelerate launch has started one process, whatever --num_processes says, as it does without a GPU; start two "
    "with torchrun --nproc-per-node 2 -m rbpx ..., or accelerate launch --multi_gpu --num_processes 2 -m rbpx ..."
)

_FLOAT32: Final = "float32 does not use the GPU's tensor cores; dtype=bfloat16 does, and is several times as fast"


@dataclass(frozen=True, eq=False)
class _Measuring:
    grid: Grid
    sample: Sample
    cell_keys: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    new: list[Record] = field(default_factory=list)  # of the cells that were measured now

    @property
    def place(self) -> tuple[Device, int | None]:
        """The device, and the number of processes that share a model; None for all of the launch."""
        return self.grid.request.device, self.grid.request.parallel.n_processes()

    @property
    def result(self) -> Measured:
        return Measured(self.grid.request, tuple(self.cell_keys), tuple(self.failures), len(self.new))


def measure_grids(
    requests: Sequence[GridKeys], number: int = 1, n_jobs: int | None = 1, quiet: bool = False
) -> list[Measured]:
    """Measure every cell that the grids' stores lack, loading each model once for all of its texts.

    An error in one request is part of its result and does not stop the others.
    """
    opened = _open(requests, quiet)
    ready = [each for each in opened if isinstance(each, _Measuring)]
    stopped: dict[_Measuring, Measured] = {}
    for (device, tensor), on_device in groupby(ready, key=lambda each: each.place):
        together = list(on_device)
        try:
            _measure_on(device, tensor, together, number, n_jobs, quiet)
        except RbpxError as problem:  # e.g. no such device, no torchao, a read-only store
            stopped |= {each: not_measured(each.grid.request, problem) for each in together}
            continue
        if is_main_process():
            for store in {each.grid.store.root: each.grid.store for each in together}.values():
                write_views(store)
            for each in together:
                log_notes(each.sample.documents, each.new, each.grid.store)
    return [each if isinstance(each, Measured) else stopped.get(each, each.result) for each in opened]


def _open(requests: Sequence[GridKeys], quiet: bool) -> list[_Measuring | Measured]:
    opened: list[_Measuring | Measured] = []
    parts: Sequence[frozenset[int] | None] = [None] * len(requests)
    try:
        if any(request.shard is not None for request in requests):
            from rbpx.measure.shards import places_of  # which needs torch

            parts = places_of(requests)
    except RbpxError as problem:
        return [not_measured(request, problem) for request in requests]
    for request, places in zip(requests, parts, strict=True):
        if places is not None and not places:
            opened.append(Measured(request))
            continue
        try:
            grid = open_grid(request.but(shard=None), partial(draw_sample, request, quiet=quiet))
        except (RbpxError, OSError) as problem:
            opened.append(not_measured(request, problem))
            continue
        assert grid.sample is not None, "it was drawn"
        cells = [cell for at, cell in enumerate(grid.cells) if places is None or at in places]
        opened.append(_Measuring(replace(grid, cells=cells), grid.sample))
    return opened


def draw_sample(request: GridKeys, store: Store, quiet: bool = False) -> Sample:
    """The documents that a request selects.

    Raises:
        RbpxError: its text cannot be read or is empty.
        MeasureError: the hub does not deliver it.
    """
    assert request.dataset is not None, "a grid has a dataset"
    return sample(request.dataset, request.limit, request.seed, store, partial(_tell_loading, quiet=quiet))


def _tell_loading(what: str, quiet: bool) -> Tell:
    from rbpx.display.progress import tell_loading

    return tell_loading(what, quiet=quiet or not is_main_process())


def _measure_on(
    device: Device, tensor: int | None, grids: Sequence[_Measuring], number: int, n_jobs: int | None, quiet: bool
) -> None:
    for engine in (grid.grid.request.engine for grid in grids if grid.grid.request.engine is not None):
        refuse_launched(engine)

    @cache
    def joined() -> ProcessGroup:
        from rbpx.measure.distributed import init_process_group  # imports torch, for cells that are missing

        return init_process_group(device.value, tensor)

    missing: list[tuple[_Measuring, Cell]] = []
    for each in grids:
        records = {cell.key: each.grid.store.cell(cell.key) for cell in each.grid.cells}
        stored = {key: of for key, of in records.items() if of is not None and each.grid.holds(of["run_id"])}
        if _is_launched():
            stored = joined().broadcast(stored)  # else some would wait for cells that others skip
        each.cell_keys.extend(cell.key for cell in each.grid.cells if cell.key in stored)
        if is_main_process():
            _note_training(each.grid, stored)
        missing += [(each, cell) for cell in each.grid.cells if cell.key not in stored]
    if not missing:
        return
    if is_lone_of_accelerate():
        logging.getLogger(__name__).warning(_LONE)
    from rbpx.display.progress import GridProgress

    processes = joined()
    for store in {each.grid.store.root: each.grid.store for each, _ in missing}.values():
        store.prepare()
    if processes.is_main and processes.device.type == "cuda" and any(cell.dtype == "float32" for _, cell in missing):
        logging.getLogger(__name__).info(_FLOAT32)
    title = " on ".join(", ".join(dict.fromkeys(getattr(c, of) for _, c in missing)) for of in ("family", "dataset"))
    with GridProgress(title, len(missing), quiet or not processes.is_main, number, n_jobs) as progress:
        for same_model in _by_model(missing):
            grid, cell = same_model[0][0].grid, same_model[0][1]
            with split_of(grid.request, grid.store) as split:
                load = _model_loader(cell, processes, grid.store, split)
                for each, cell in same_model:
                    _measure(cell, each, load, processes, progress, len(missing))


def _is_launched() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def refuse_launched(engine: EngineConfig) -> None:
    """Refuse several processes for one engine.

    Raises:
        RbpxError: a launcher has started several.
    """
    if _is_launched():
        raise RbpxError(f"engine={engine.name} divides its work itself; start one process, without a launcher")


def _note_training(grid: Grid, stored: Mapping[str, Record]) -> None:
    """Add newly known training facts of models measured before to their records; known values stay."""
    for cell in grid.cells:
        record = stored.get(cell.key, {})
        news = {name: value for name, value in cell.training.known().items() if record.get(name) != value}
        if record and news:
            grid.store.write_record("cells", cell.key, record | news)


def _by_model(missing: Sequence[tuple[_Measuring, Cell]]) -> list[list[tuple[_Measuring, Cell]]]:
    groups: dict[tuple[object, ...], list[tuple[_Measuring, Cell]]] = {}
    for each, cell in missing:
        place = (each.grid.store.root, cell.engine)
        model = (*place, cell.model, cell.model_hash, cell.revision, cell.precision, cell.pickled, cell.adapter)
        groups.setdefault(model, []).append((each, cell))
    return list(groups.values())


def _model_loader(cell: Cell, processes: ProcessGroup, store: Store, split: Split | None) -> Callable[[], LoadedModel]:
    """Loads the model on its first call; if that fails, later calls raise the same error at once."""

    @cache
    def load_once() -> LoadedModel | Exception:
        from rbpx.measure.cell import load_cell

        try:
            return load_cell(cell, cell.revision, processes.device, store, processes.tensor or split)
        except Exception as problem:
            return problem

    def load() -> LoadedModel:
        loaded = load_once()
        if isinstance(loaded, Exception):
            raise loaded
        return loaded

    return load


def _measure(
    cell: Cell,
    measuring: _Measuring,
    load: Callable[[], LoadedModel],
    processes: ProcessGroup,
    progress: GridProgress,
    n_cells: int,
) -> None:
    from rbpx.measure.cell import measure_cell
    from rbpx.measure.distributed import repeatable
    from rbpx.measure.engine import measure_by_engine

    place = {"cell": progress.n_done + 1, "cells": n_cells}
    request, store, sample = measuring.grid.request, measuring.grid.store, measuring.sample
    config = json.loads(json.dumps(request.typed, default=_plain))
    try:
        with heartbeat(store, cell.names() | place, processes.is_main) as beat:

            def begin(windows: Sequence[Window], times: int) -> Callable[[int], None]:
                if processes.is_main and not measuring.new and request.dataset is not None:
                    log_unscored(cell, request.dataset, sample.documents, windows)
                n_tokens = times * sum(window.n_scored for window in windows)
                advance = progress.begin(f"{cell.family} {cell.size}", n_tokens, processes.n_models)
                return beat.follow(n_tokens, advance, processes.n_models)

            engine, keeps_best = request.engine, request.best > 0
            budget = request.tokens_in_batch("cpu" if engine is not None else processes.device.type)
            if engine is not None:
                record = measure_by_engine(cell, engine, sample, store, budget, config, begin)
            else:
                with repeatable() if cell.deterministic else nullcontext():
                    record = measure_cell(cell, sample, load, store, processes, budget, config, begin, keeps_best)
    except BrokenPipeError:  # the reader closed the pipe
        raise
    except Exception as raised:
        raise_stop_behind(raised)
        problem = raised if isinstance(raised, RbpxError) else UnexpectedError.of(raised, "measuring it failed")
        shared = processes.tensor is not None and isinstance(problem, UnexpectedError)
        if shared or (problem is not raised and processes.world_size > 1):
            raise  # the other processes wait: the launcher must end them
        said = told(problem, request)
        if processes.is_main and not isinstance(problem, AbsentModelError):
            failure = note_failure(store, cell.failure_key, cell.names(), str(cell), problem, said)
        else:
            failure = Failure(str(cell), said, not isinstance(problem, MeasureError))
        measuring.failures.append(failure)
        progress.finish(f"{cell} failed")
        return
    measuring.cell_keys.append(record["cell_key"])
    measuring.new.append(record)
    progress.finish(f"{cell}: {pace(store.manifest(record['run_id']))}")


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else asdict(value)


@contextmanager
def split_of(request: GridKeys, store: Store) -> Iterator[Split | None]:
    """A scratch folder for the parts of a model that is split over devices (device=split)."""
    if request.device is not Device.split:
        yield None
        return
    with store.scratch() as folder:
        yield Split(folder, request.memory)
