"""Print what the store holds, what is being measured and what failed.

Counts runs and tokens, and shows as a grid which model is done, running, failed, stopped or missing on which text. Name
a grid (model= and dataset=, also with -m) to see its progress.

Either alone, or another name, shows what has that name. Missing are models that were measured on another text only. A
measuring process writes a heartbeat; one that was killed is shown as stopped.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rbpx.cli.registry import Command, Verb
from rbpx.config.keys.output import PrintedRows, Spreadsheet
from rbpx.config.keys.runs import GridKeys, Narrowing

if TYPE_CHECKING:
    from rbpx.store.cell_states import CellState


class StatusKeys(Spreadsheet, PrintedRows, Narrowing, GridKeys):
    """Keys of status."""

    WITHOUT = ("checkpoints", "device", "memory", "tokens_per_batch", "parallel", "engine", "best")


VERB = Verb(
    order=350,
    theme="store",
    examples=(
        "python -m rbpx status",
        "python -m rbpx status model=ladder dataset=pydoc",
        "python -m rbpx status -m model=ladder,pythia dataset=pydoc,stdlib",
    ),
    keys=StatusKeys,
)


def perform(asked: Command) -> None:
    """Prints the contents of the store, or the state of the sweep's grid."""
    from rbpx.cli.tables.status import print_grid, print_store
    from rbpx.store.relations import write_views
    from rbpx.store.store import Store

    stores = [Store(name) for name in dict.fromkeys(request.store for request in asked.requests)]
    for store in stores:
        write_views(store)
    named = [request for request in asked.requests if request.model is not None and request.dataset is not None]
    if named:
        print_grid(_states(named), asked.request.format)
        return
    for store in stores:
        print_store(store, asked.requests, asked.line.narrowing)


def _states(requests: Sequence[StatusKeys]) -> "list[CellState]":
    from rbpx.measure.grid import grid_here  # reads texts
    from rbpx.store.cell_states import cell_states
    from rbpx.store.store import Store

    grids = [cell_states(grid_here(request, by_name=True).cells, Store(request.store)) for request in requests]
    if requests[0].shard is None:
        return [state for grid in grids for state in grid]
    from rbpx.measure.shards import of_shard  # imports torch

    return of_shard(requests, grids)
