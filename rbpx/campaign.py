"""Measuring a grid: a request in, a run in the store for every cell that was missing, an outcome out."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any

from rbpx.config import Request
from rbpx.corpus import Document, draw, read_source, text_hash
from rbpx.errors import MeasureError, RbpxError
from rbpx.grid import Cell, cells, members
from rbpx.index import refresh_index
from rbpx.outcome import Failure, Outcome
from rbpx.running import Mark, marked
from rbpx.store import Store, now
from rbpx.weights import hash_model, local_folder


def measure_grid(request: Request) -> Outcome:
    """Measure every cell of the grid that the store does not hold yet.

    Raises:
        RbpxError: the request names no model, no text or no store that could be meant.
        MeasureError: the index of the store cannot be written.
    """
    store = Store(Path(request.store))
    grid, documents = _grid(request, store)
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
        _measure_cells(missing, documents, store, request, outcome)
    if crew is None or crew.leads:
        refresh_index(store)
    return outcome


def _grid(request: Request, store: Store) -> tuple[list[Cell], list[Document]]:
    """The cells that a request means, and the documents that they share."""
    model, dataset = request.model, request.dataset
    if model is None or dataset is None:
        raise RbpxError("a measurement needs model=FAMILY and dataset=NAME; see python -m rbpx --help")
    hashes: dict[str, str | None] = {}
    for member in members(model, request.sizes())[1]:
        place = local_folder(member.model)
        hashes[member.model] = None if place is None else hash_model(place, member.model, store.root / "hashes.json")
    source = read_source(dataset.kind, None if dataset.path is None else Path(dataset.path), dataset.fields)
    if not source:
        raise RbpxError(f"dataset {dataset.name} ({dataset.path}) is empty; give one with at least one document")
    documents = draw(source, request.limit, request.seed)
    return cells(request, text_hash(documents), hashes), documents


def _measure_cells(
    missing: Sequence[Cell], documents: Sequence[Document], store: Store, request: Request, outcome: Outcome
) -> None:
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
                with marked(store, cell.names() | place, crew.leads) as mark:

                    def begin(
                        n_tokens: int, what: str = f"{cell.family} {cell.size}", mark: Mark = mark
                    ) -> Callable[[int], None]:
                        return mark.follow(n_tokens, progress.begin(what, n_tokens, crew.world), crew.world)

                    record = measure_cell(cell, documents, store, crew, request.tokens_per_batch, config, begin)
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


def _plain(value: Any) -> Any:
    """A dataclass as a record that JSON takes."""

    def simple(items: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: item.value if isinstance(item, Enum) else item for key, item in items}

    return asdict(value, dict_factory=simple)
