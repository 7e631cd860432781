"""Measure the missing cells, and print no laws.

Typed again, it continues. shard=3/16 measures the third of 16 parts of the grid, or of the grids of a sweep: disjoint,
balanced by cost and the same on every machine.

best= changes no rank, and reads runs that the store holds already once more.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rbpx.cli.registry import Command, Verb
from rbpx.config.keys.runs import GridKeys
from rbpx.errors import RbpxError

if TYPE_CHECKING:
    from rbpx.measure.results import Measured

VERB = Verb(
    order=20,
    theme="measure",
    examples=(
        "python -m rbpx measure model=ladder dataset=pydoc",
        "python -m rbpx measure -m model=gpt2,pythia dataset=wikipedia,c4 shard=3/16",
    ),
    keys=GridKeys,
)


def perform(asked: Command) -> "list[Measured]":
    """Measures what is missing, loading each model once for all texts of a sweep; else names what is stored."""
    from rbpx.cli.launcher import measured

    shard = asked.request.shard
    if shard is not None and (shard.number is None or asked.launcher is not None):
        why = "names no part" if shard.number is None else "divides a sweep that hydra/launcher= divides already"
        raise RbpxError(f"shard={shard} {why}; give a part, as in shard=1/{shard.n_shards}, or drop it")
    grids = measured(asked)
    if not any(grid.n_new or grid.failures or grid.error for grid in grids):
        _log_nothing_missing(grids)
    return grids


def _log_nothing_missing(grids: "Sequence[Measured]") -> None:
    families, texts = (list(dict.fromkeys(names)) for names in zip(*map(_names, grids), strict=True))
    cells = {(grid.request.store, key) for grid in grids for key in grid.cell_keys}
    stores = ", ".join(dict.fromkeys(grid.request.store for grid in grids))
    held = "the cell asked for is" if len(cells) == 1 else f"all {len(cells):,} cells asked for are"
    what = f"{', '.join(families)} on {', '.join(texts)}"
    logging.getLogger(__name__).info(f"nothing to measure: {held} in store={stores} already, {what}")


def _names(grid: "Measured") -> tuple[str, str]:
    from rbpx.config.grid import members

    assert grid.request.model is not None
    assert grid.request.dataset is not None
    return members(grid.request.model, grid.request.size)[0], grid.request.dataset.name
