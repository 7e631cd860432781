"""Measuring a grid: a request in, a run in the store for every cell that was missing, an outcome out."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import Enum
from typing import Any

from rbpx.config import Device, Request
from rbpx.corpus import text_hash
from rbpx.errors import MeasureError, RbpxError
from rbpx.grid import Cell, cells
from rbpx.hub_texts import Sample
from rbpx.index import refresh_index
from rbpx.mirror import own_store
from rbpx.offline import hash_members
from rbpx.outcome import Failure, Outcome
from rbpx.parquet_parts import Tell
from rbpx.placement import Split
from rbpx.running import Mark, marked
from rbpx.samples import sample
from rbpx.store import Store, now

_INCOMPLETE = "a measurement needs model=FAMILY and dataset=NAME; see python -m rbpx --help"


def measure_grid(request: Request) -> Outcome:
    """Measure every cell of the grid that the store does not hold yet.

    Raises:
        RbpxError: the request names no model, no text or no store that could be meant.
        MeasureError: the index of the store cannot be written.
    """
    store = own_store(request.store)
    grid, drawn = _grid(request, store)
    crew = None
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from rbpx.crew import assemble

        crew = assemble(request.device.value)
    held = [cell for cell in grid if store.cell(cell.key) is not None]
    if crew is not None:
        held = crew.share(held)  # one view of the store, or some would wait for cells that others pass over
    outcome = Outcome(request=request, cell_keys=[cell.key for cell in held])
    missing = [cell for cell in grid if cell not in held]
    if missing:
        _measure_cells(missing, drawn, store, request, outcome)
    if crew is None or crew.leads:
        refresh_index(store)
    return outcome


def _grid(request: Request, store: Store) -> tuple[list[Cell], Sample]:
    """The cells that a request means, and the documents that they share."""
    hashes = hash_members(request, store)
    drawn = draw_sample(request, store)
    return cells(request, text_hash(drawn.documents), hashes), drawn


def draw_sample(request: Request, store: Store) -> Sample:
    """The documents that a request means.

    Raises:
        RbpxError: no text is named, it cannot be read, or it is empty.
        MeasureError: the hub does not deliver it.
    """
    if request.dataset is None:
        raise RbpxError(_INCOMPLETE)
    return sample(request.dataset, request.limit, request.seed, store, _tell_loading)


def _tell_loading(what: str) -> Tell:
    from rbpx.progress import tell_loading

    return tell_loading(what, quiet=int(os.environ.get("RANK", "0")) > 0)


def _measure_cells(missing: Sequence[Cell], drawn: Sample, store: Store, request: Request, outcome: Outcome) -> None:
    """Measure cell after cell; one that fails is kept in `failures` and does not stop the others."""
    from rbpx.crew import assemble
    from rbpx.measure import measure_cell
    from rbpx.progress import GridProgress

    store.prepare()
    crew = assemble(request.device.value)
    config = _plain(request)
    with GridProgress(f"{missing[0].family} on {missing[0].dataset}", len(missing), quiet=not crew.leads) as progress:
        for number, cell in enumerate(missing, 1):
            place = {"cell": number, "cells": len(missing)}
            try:
                with split_of(request, store) as split, marked(store, cell.names() | place, crew.leads) as mark:

                    def begin(
                        n_tokens: int, what: str = f"{cell.family} {cell.size}", mark: Mark = mark
                    ) -> Callable[[int], None]:
                        return mark.follow(n_tokens, progress.begin(what, n_tokens, crew.world), crew.world)

                    record = measure_cell(cell, drawn, store, crew, request.tokens_per_batch, config, begin, split)
            except RbpxError as problem:
                if crew.leads:
                    store.write_record(
                        "failures", cell.failure_key, {**cell.names(), "error": str(problem), "at": now()}
                    )
                outcome.failures.append(Failure(str(cell), str(problem), not isinstance(problem, MeasureError)))
                progress.finish(f"{cell} failed")
                continue
            outcome.cell_keys.append(record["cell_key"])
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
