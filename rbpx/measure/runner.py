"""Measuring grids: requests in, a run in the store for every cell that was missing, a result for each out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import Enum
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rbpx.config.grid import INCOMPLETE, Cell, cells
from rbpx.config.options import Device
from rbpx.config.placement import Split
from rbpx.config.process import is_main_process
from rbpx.config.request import Request
from rbpx.data.corpus import text_hash
from rbpx.data.hub_texts import Sample
from rbpx.data.parquet_parts import Tell
from rbpx.data.samples import sample
from rbpx.errors import MeasureError, RbpxError
from rbpx.measure.offline import hash_members
from rbpx.measure.results import Failure, Measured
from rbpx.store.heartbeat import heartbeat
from rbpx.store.index import refresh_index
from rbpx.store.remote import own_store
from rbpx.store.store import Store, now

if TYPE_CHECKING:
    from rbpx.display.progress import GridProgress
    from rbpx.measure.distributed import Crew
    from rbpx.models.load import LoadedModel


@dataclass(frozen=True, eq=False)
class _Grid:
    """A grid as requested: its cells, the documents that they share, its store, and what has been done so far."""

    request: Request
    store: Store
    cells: list[Cell]
    drawn: Sample
    cell_keys: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


def measure_grids(requests: Sequence[Request]) -> list[Measured]:
    """Measure every cell of the grids that their stores do not hold yet, each model loaded once for all of its texts.

    An error of one request stands in its result and does not stop the others.

    Returns:
        A result for each request, in their order.

    Raises:
        MeasureError: the index of a store cannot be written.
    """
    grids: dict[int, _Grid] = {}
    stopped: dict[int, RbpxError] = {}
    for i, request in enumerate(requests):
        try:
            grids[i] = _grid(request)
        except RbpxError as problem:
            stopped[i] = problem
    for device, on_device in groupby(grids.items(), key=lambda numbered: numbered[1].request.device):
        together = dict(on_device)
        try:
            _measure_on(device, list(together.values()))
        except RbpxError as problem:  # no such device, no process group, no place to write: none of these is measured
            stopped |= dict.fromkeys(together, problem)
            continue
        if is_main_process():
            for store in {grid.store.root: grid.store for grid in together.values()}.values():
                refresh_index(store)
    return [
        _not_measured(request, stopped[i])
        if i in stopped
        else Measured(request, tuple(grids[i].cell_keys), tuple(grids[i].failures))
        for i, request in enumerate(requests)
    ]


def _not_measured(request: Request, problem: RbpxError) -> Measured:
    return Measured(request, error=str(problem), status=1 if isinstance(problem, MeasureError) else 2)


def _grid(request: Request) -> _Grid:
    """The cells that a request means, and the documents that they share."""
    store = own_store(request.store)
    hashes = hash_members(request, store)
    drawn = draw_sample(request, store)
    return _Grid(request, store, cells(request, text_hash(drawn.documents), hashes), drawn)


def draw_sample(request: Request, store: Store) -> Sample:
    """The documents that a request means.

    Raises:
        RbpxError: no text is named, it cannot be read, or it is empty.
        MeasureError: the hub does not deliver it.
    """
    if request.dataset is None:
        raise RbpxError(INCOMPLETE)
    return sample(request.dataset, request.limit, request.seed, store, _tell_loading)


def _tell_loading(what: str) -> Tell:
    from rbpx.display.progress import tell_loading

    return tell_loading(what, quiet=not is_main_process())


def _measure_on(device: Device, grids: Sequence[_Grid]) -> None:
    """Measure what is missing, model after model; a cell that fails is kept in `failures` and stops no other."""
    crew = _assemble(device) if int(os.environ.get("WORLD_SIZE", "1")) > 1 else None
    missing: list[tuple[_Grid, Cell]] = []
    for grid in grids:
        held = [cell.key for cell in grid.cells if grid.store.cell(cell.key) is not None]
        if crew is not None:
            held = crew.share(held)  # one view of the store, or some would wait for cells that others pass over
        grid.cell_keys.extend(held)
        missing += [(grid, cell) for cell in grid.cells if cell.key not in held]
    if not missing:
        return
    for grid, _ in missing:
        grid.store.prepare()
    from rbpx.display.progress import GridProgress
    from rbpx.measure.prefetch import Ahead

    crew = crew or _assemble(device)
    title = " on ".join(", ".join(dict.fromkeys(getattr(c, of) for _, c in missing)) for of in ("family", "dataset"))
    with GridProgress(title, len(missing), quiet=not crew.leads) as progress:
        for of_model in _by_model(missing):
            grid, cell = of_model[0]
            with split_of(grid.request, grid.store) as split:
                load = _loader(cell, crew, grid.store, split)
                turns = [(cell, grid.drawn.documents) for grid, cell in of_model]
                with Ahead(load, turns if _computes_elsewhere(crew) else []) as ahead:
                    for at, (grid, cell) in enumerate(of_model):
                        ahead.settle()
                        _measure(cell, grid, load, crew, progress, len(missing), partial(ahead.follow, at))


def _assemble(device: Device) -> Crew:
    """The processes that measure together; torch comes with them, so a grid that is all there does not wait for it."""
    from rbpx.measure.distributed import assemble

    return assemble(device.value)


def _computes_elsewhere(crew: Crew) -> bool:
    """Whether the processor has time beside the computing; cutting texts there would take that from a model on it."""
    return crew.device.type != "cpu"


def _by_model(missing: Sequence[tuple[_Grid, Cell]]) -> list[list[tuple[_Grid, Cell]]]:
    """Cells of one model together, in the order in which the models come."""
    found: dict[tuple[object, ...], list[tuple[_Grid, Cell]]] = {}
    for grid, cell in missing:
        model = (grid.store.root, cell.model, cell.model_hash, cell.revision, cell.dtype, cell.pickled)
        found.setdefault(model, []).append((grid, cell))
    return list(found.values())


def _loader(cell: Cell, crew: Crew, store: Store, split: Split | None) -> Callable[[], LoadedModel]:
    """What loads a model when it is first needed; a model that cannot be loaded is not tried for each of its texts."""

    @cache
    def tried() -> LoadedModel | RbpxError:
        from rbpx.models.load import load_model

        hashes = store.root / "hashes.json"
        try:
            return load_model(cell.model, cell.revision, cell.dtype, crew.device, hashes, cell.pickled, split)
        except RbpxError as problem:
            return problem

    def load() -> LoadedModel:
        found = tried()
        if isinstance(found, RbpxError):
            raise found
        return found

    return load


def _measure(
    cell: Cell,
    grid: _Grid,
    load: Callable[[], LoadedModel],
    crew: Crew,
    progress: GridProgress,
    n_cells: int,
    begins: Callable[[], None],
) -> None:
    """Measure one cell and note the result in its grid; `begins` is called when its text is cut and its model works."""
    from rbpx.measure.cell import measure_cell

    place = {"cell": progress.n_done + 1, "cells": n_cells}
    store, config = grid.store, _plain(grid.request)
    try:
        with heartbeat(store, cell.names() | place, crew.leads) as mark:

            def begin(n_tokens: int) -> Callable[[int], None]:
                begins()
                told = progress.begin(f"{cell.family} {cell.size}", n_tokens, crew.world)
                return mark.follow(n_tokens, told, crew.world)

            budget = grid.request.tokens_per_batch
            record = measure_cell(cell, grid.drawn, load, store, crew, budget, config, begin)
    except RbpxError as problem:
        if crew.leads:
            store.write_record("failures", cell.failure_key, {**cell.names(), "error": str(problem), "at": now()})
        grid.failures.append(Failure(str(cell), str(problem), not isinstance(problem, MeasureError)))
        progress.finish(f"{cell} failed")
        return
    grid.cell_keys.append(record["cell_key"])
    facts = store.manifest(record["run_id"])
    progress.finish(f"{cell}: {facts['n_tokens']:,} tokens at {facts['tokens_per_s']:,.0f} tokens/s")


@contextmanager
def split_of(request: Request, store: Store) -> Iterator[Split | None]:
    """Where the parts of a model go that is split over devices, as long as it is measured."""
    if request.device is not Device.split:
        yield None
        return
    with store.scratch() as folder:
        yield Split(folder, request.memory_limits())


def _plain(value: Any) -> Any:
    """A dataclass as a record that JSON takes."""

    def simple(items: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: item.value if isinstance(item, Enum) else item for key, item in items}

    return asdict(value, dict_factory=simple)
