"""Measures grids: every cell that the store does not hold yet becomes a run in it; each model is loaded once."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, is_dataclass
from enum import Enum
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from rbpx.config.grid import INCOMPLETE, Cell, cells
from rbpx.config.model.placement import EngineConfig, Split
from rbpx.config.options import Chunk, Device, Quantise
from rbpx.config.request import Request
from rbpx.cores import is_lone_of_accelerate, is_main_process
from rbpx.data.corpus import text_hash
from rbpx.data.hub_texts import Sample
from rbpx.data.parquet_parts import Tell
from rbpx.data.samples import sample
from rbpx.errors import AbsentModelError, MeasureError, RbpxError, UnexpectedError, number_of
from rbpx.measure.harness_bos import log_scored_bos
from rbpx.measure.offline import as_held, hash_members, training_beside
from rbpx.measure.results import Failure, Measured, not_measured, pace, told
from rbpx.measure.run_tables import scored_share
from rbpx.models.gguf import stored_as
from rbpx.store.cell_states import heartbeat
from rbpx.store.relations import write_views
from rbpx.store.store import Record, Store, now

if TYPE_CHECKING:
    from rbpx.display.progress import GridProgress
    from rbpx.measure.distributed import ProcessGroup
    from rbpx.models.load import LoadedModel

_LONE: Final = (
    "accelerate launch has started one process, whatever --num_processes says, as it does without a GPU; start two "
    "with torchrun --nproc-per-node 2 -m rbpx ..., or accelerate launch --multi_gpu --num_processes 2 -m rbpx ..."
)


@dataclass(frozen=True, eq=False)
class _Grid:
    """A requested grid: its cells, the documents that they share, its store, and what has been done so far."""

    request: Request
    store: Store
    cells: list[Cell]
    sample: Sample
    cell_keys: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    new: list[Record] = field(default_factory=list)  # of the cells that were measured now


def measure_grids(
    requests: Sequence[Request], number: int = 1, n_jobs: int | None = 1, quiet: bool = False
) -> list[Measured]:
    """Measure every cell of the grids that their stores do not hold yet, each model loaded once for all of its texts.

    An error in one request is part of its result and does not stop the others.

    Args:
        requests: one for each grid.
        number: if the jobs of a sweep have processes of their own, the number of the one with these requests, from 1.
        n_jobs: number of jobs of that sweep; None if unknown.
        quiet: whether to print no progress.

    Returns:
        A result for each request, in their order.

    Raises:
        MeasureError: the index of a store cannot be written.
    """
    grids: dict[int, _Grid] = {}
    stopped: dict[int, RbpxError] = {}
    try:
        parts = _parts(requests)
    except RbpxError as problem:
        return [not_measured(request, problem) for request in requests]
    for i, (request, places) in enumerate(zip(requests, parts, strict=True)):
        if places == ():
            continue
        try:
            grids[i] = _grid(request, quiet, places)
        except RbpxError as problem:
            stopped[i] = problem
    for (device, tensor), on_device in groupby(grids.items(), key=lambda numbered: _placed(numbered[1].request)):
        together = dict(on_device)
        try:
            _measure_on(device, tensor, list(together.values()), number, n_jobs, quiet)
        except RbpxError as problem:  # no such device, no torchao, nowhere to write: no cell is measured
            stopped |= dict.fromkeys(together, problem)
            continue
        if is_main_process():
            for store in {grid.store.root: grid.store for grid in together.values()}.values():
                write_views(store)
            for grid in together.values():
                _log_unscored(grid)
                _warn_of_inner_padding(grid)
                log_scored_bos(grid.new, grid.store)
    return [
        not_measured(request, stopped[i]) if i in stopped else _measured(request, grids.get(i))
        for i, request in enumerate(requests)
    ]


def _parts(requests: Sequence[Request]) -> Sequence[tuple[int, ...] | None]:
    """The places in each request's grid of the cells to be measured; None for all of them."""
    shard = requests[0].shard if requests else None
    if shard is None:
        return [None] * len(requests)
    from rbpx.measure.shards import places_in

    return places_in(requests, shard)


def _measured(request: Request, grid: _Grid | None) -> Measured:
    """The result of a request; without a grid, all of its cells belong to another machine's shard."""
    if grid is None:
        return Measured(request)
    return Measured(grid.request, tuple(grid.cell_keys), tuple(grid.failures), len(grid.new))


def _log_unscored(grid: _Grid) -> None:
    """Say how much of a user's file was scored, where its documents are longer than the window."""
    dataset = grid.request.dataset
    if dataset is None or dataset.path is None or not grid.new:
        return
    record = grid.new[0]
    if dataset.has_items:
        return
    share = scored_share(grid.sample.documents, grid.store, record["run_id"])
    if share is None:
        return
    from rbpx.display.vocabulary import part

    n_tokens = grid.store.manifest(record["run_id"])["n_tokens"]
    chunk = "" if dataset.chunk is not Chunk.none else "; dataset.chunk=paragraph makes a document of each paragraph"
    logging.getLogger(__name__).info(
        f"{record['family']} on {record['dataset']}: scored {n_tokens:,} of about {n_tokens / share:,.0f} tokens "
        f"({part(share)} % of {number_of(len(grid.sample.documents), 'document')}): protocol=rolling scores all of "
        f"them{chunk}"
    )


def _warn_of_inner_padding(grid: _Grid) -> None:
    """Warn, once for a grid, where ranks of protocol=official may differ from those of the authors."""
    for record in grid.new:
        inner = grid.store.manifest(record["run_id"]).get("inner_padding")
        if inner is not None:
            logging.getLogger(__name__).warning(
                f"{record['family']} on {record['dataset']}: {inner['documents']:,} of "
                f"{number_of(len(grid.sample.documents), 'document')} contain {inner['text']}, with which "
                "protocol=official pads windows; the authors' code masks it there too, so their ranks of the "
                f"{number_of(inner['tokens'], 'token')} after it may differ"
            )
            return


def _grid(request: Request, quiet: bool, places: Collection[int] | None) -> _Grid:
    """The grid of a request: its cells, or only those at the given places, and the documents that they share."""
    store, request = Store(request.store), request.but(shard=None)
    hashes = hash_members(request, store)
    texts = draw_sample(request, store, quiet)
    text = text_hash(texts.documents)
    request = as_held(request, text, store)
    grid = cells(request, text, hashes, training_beside(request, hashes), stored_as(hashes))
    chosen = [cell for place, cell in enumerate(grid) if places is None or place in places]
    return _Grid(request, store, chosen, texts)


def draw_sample(request: Request, store: Store, quiet: bool = False) -> Sample:
    """The documents that a request selects; `quiet` prints no progress.

    Raises:
        RbpxError: the request names no dataset, or its text cannot be read or is empty.
        MeasureError: the hub does not deliver it.
    """
    if request.dataset is None:
        raise RbpxError(INCOMPLETE)
    return sample(request.dataset, request.limit, request.seed, store, partial(_tell_loading, quiet=quiet))


def _tell_loading(what: str, quiet: bool) -> Tell:
    from rbpx.display.progress import tell_loading

    return tell_loading(what, quiet=quiet or not is_main_process())


def _placed(request: Request) -> tuple[Device, int | None]:
    """The device of a request, and the number of processes that hold a model together; None for all of the launch."""
    return request.device, request.parallel.n_processes()


def _measure_on(
    device: Device, tensor: int | None, grids: Sequence[_Grid], number: int, n_jobs: int | None, quiet: bool
) -> None:
    """Measure the missing cells model by model; note a cell that fails, and go on with the others."""
    engine = next((grid.request.engine for grid in grids if grid.request.engine is not None), None)
    if engine is not None:
        refuse_launched(engine)
    processes = _init_process_group(device, tensor) if _is_launched() else None
    missing: list[tuple[_Grid, Cell]] = []
    for grid in grids:
        stored = [cell.key for cell in grid.cells if _is_stored(cell, grid)]
        if processes is not None:
            stored = processes.broadcast(stored)  # all must agree, or some would wait for cells that others skip
        grid.cell_keys.extend(stored)
        if is_main_process():
            _note_training(grid, stored)
        missing += [(grid, cell) for cell in grid.cells if cell.key not in stored]
    if not missing:
        return
    if is_lone_of_accelerate():
        logging.getLogger(__name__).warning(_LONE)
    from rbpx.display.progress import GridProgress
    from rbpx.measure.prefetch import WindowPrefetcher
    from rbpx.models.quantise import check_installed

    for kind in dict.fromkeys(cell.quantise for _, cell in missing if cell.quantise is not None):
        check_installed(Quantise(kind))
    processes = processes or _init_process_group(device, tensor)
    for store in {grid.store.root: grid.store for grid, _ in missing}.values():
        store.prepare()
    title = " on ".join(", ".join(dict.fromkeys(getattr(c, of) for _, c in missing)) for of in ("family", "dataset"))
    with GridProgress(title, len(missing), quiet or not processes.is_main, number, n_jobs) as progress:
        for same_model in _by_model(missing):
            grid, cell = same_model[0]
            with split_of(grid.request, grid.store) as split:
                load = _model_loader(cell, processes, grid.store, split)
                texts = [(cell, grid.sample.documents) for grid, cell in same_model]
                prefetches = _computes_on_gpu(processes) and cell.engine is None
                with WindowPrefetcher(load, texts if prefetches else []) as prefetcher:
                    for i, (grid, cell) in enumerate(same_model):
                        prefetcher.wait()
                        start_next = partial(prefetcher.start_next, i)
                        _measure(cell, grid, load, processes, progress, len(missing), start_next)


def _is_launched() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def refuse_launched(engine: EngineConfig) -> None:
    """Refuse several processes that ask one engine.

    Raises:
        RbpxError: a launcher has started several.
    """
    if _is_launched():
        raise RbpxError(f"engine={engine.name} divides its work itself; start one process, without a launcher")


def _is_stored(cell: Cell, grid: _Grid) -> bool:
    """Whether the store holds the run of a cell, and its best tokens if the request asks for them."""
    record = grid.store.cell(cell.key)
    if record is None or not grid.request.best:
        return record is not None
    return grid.store.beside_file("best", record["run_id"]).is_file()


def _note_training(grid: _Grid, cell_keys: Collection[str]) -> None:
    """Add what is now known of the training of models measured before to their records; known values stay."""
    for cell in grid.cells:
        record = grid.store.cell(cell.key) if cell.key in cell_keys else None
        if record is None:
            continue
        news = {name: value for name, value in cell.training.known().items() if record.get(name) != value}
        if news:
            try:
                grid.store.write_record("cells", cell.key, record | news)
            except RbpxError as problem:
                logging.getLogger(__name__).warning(f"{', '.join(news)} of {cell} is not kept: {problem}")
                return


def _init_process_group(device: Device, tensor: int | None) -> ProcessGroup:
    """Join the process group; called only where a cell is missing, because it imports torch."""
    from rbpx.measure.distributed import init_process_group

    return init_process_group(device.value, tensor)


def _computes_on_gpu(processes: ProcessGroup) -> bool:
    """Whether to cut texts while a model computes; on a CPU that would take time from the model."""
    return processes.device.type != "cpu"


def _by_model(missing: Sequence[tuple[_Grid, Cell]]) -> list[list[tuple[_Grid, Cell]]]:
    """The cells grouped by model, models in order of their first cell."""
    groups: dict[tuple[object, ...], list[tuple[_Grid, Cell]]] = {}
    for grid, cell in missing:
        place = (grid.store.root, cell.engine)
        model = (*place, cell.model, cell.model_hash, cell.revision, cell.precision, cell.pickled)
        groups.setdefault(model, []).append((grid, cell))
    return list(groups.values())


def _model_loader(cell: Cell, processes: ProcessGroup, store: Store, split: Split | None) -> Callable[[], LoadedModel]:
    """A function that loads the model on its first call; if that fails, later calls raise the same error at once."""

    @cache
    def load_once() -> LoadedModel | RbpxError:
        from rbpx.models.load import load_model

        hashes = store.hashes
        try:
            quantise = None if cell.quantise is None else Quantise(cell.quantise)
            spread = processes.tensor or split
            return load_model(
                cell.model, cell.revision, cell.dtype, processes.device, hashes, cell.pickled, spread, quantise
            )
        except RbpxError as problem:
            return problem

    def load() -> LoadedModel:
        loaded = load_once()
        if isinstance(loaded, RbpxError):
            raise loaded
        return loaded

    return load


def _measure(
    cell: Cell,
    grid: _Grid,
    load: Callable[[], LoadedModel],
    processes: ProcessGroup,
    progress: GridProgress,
    n_cells: int,
    start_next: Callable[[], None],
) -> None:
    """Measure one cell and note the result in its grid; `start_next` is called once its model begins to compute."""
    from rbpx.measure.cell import measure_cell
    from rbpx.measure.distributed import repeatable
    from rbpx.measure.engines.cell import measure_by_engine

    place = {"cell": progress.n_done + 1, "cells": n_cells}
    store, config = grid.store, {name: _plain(value) for name, value in grid.request.typed.items()}
    try:
        with heartbeat(store, cell.names() | place, processes.is_main) as beat:

            def begin(n_tokens: int) -> Callable[[int], None]:
                start_next()
                advance = progress.begin(f"{cell.family} {cell.size}", n_tokens, processes.n_models)
                return beat.follow(n_tokens, advance, processes.n_models)

            engine, budget, keeps_best = grid.request.engine, grid.request.batch_budget, grid.request.best > 0
            if engine is not None:
                record = measure_by_engine(cell, engine, grid.sample, store, budget, config, begin)
            else:
                with repeatable() if cell.deterministic else nullcontext():
                    record = measure_cell(cell, grid.sample, load, store, processes, budget, config, begin, keeps_best)
    except BrokenPipeError:  # whoever read what is printed has seen enough
        raise
    except Exception as raised:
        problem = raised if isinstance(raised, RbpxError) else UnexpectedError.of(raised, "measuring it failed")
        shared = processes.tensor is not None and isinstance(problem, UnexpectedError)
        if shared or (problem is not raised and processes.world_size > 1):
            raise  # in this process alone, so the others wait for it: the launcher has to end them all
        if processes.is_main and not isinstance(problem, AbsentModelError):
            why = {"error": told(problem, grid.request), "traceback": getattr(problem, "traceback", None), "at": now()}
            store.write_record("failures", cell.failure_key, {**cell.names(), "failure_key": cell.failure_key, **why})
        where = "; its traceback: python -m rbpx sql 'FROM failures'" if isinstance(problem, UnexpectedError) else ""
        grid.failures.append(
            Failure(str(cell), f"{told(problem, grid.request)}{where}", not isinstance(problem, MeasureError))
        )
        progress.finish(f"{cell} failed")
        return
    grid.cell_keys.append(record["cell_key"])
    grid.new.append(record)
    progress.finish(f"{cell}: {pace(store.manifest(record['run_id']))}")


@contextmanager
def split_of(request: Request, store: Store) -> Iterator[Split | None]:
    """A scratch folder for the parts of a model that is split over devices (device=split), while it is measured."""
    if request.device is not Device.split:
        yield None
        return
    with store.scratch() as folder:
        yield Split(folder, request.memory)


def _plain(value: Any) -> Any:
    """The value of a key as it can be written as JSON."""

    def simple(items: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: item.value if isinstance(item, Enum) else item for key, item in items}

    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    return asdict(value, dict_factory=simple) if is_dataclass(value) and not isinstance(value, type) else value
