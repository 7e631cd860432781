"""Measure the missing cells, and print no laws.

best=5 keeps the five best tokens at each place beside the run, and `view` shows them;
ranks stay the same, and runs that the store holds already are read once more. shard=3/16 measures the third of 16 parts
of the grid, or of the grids of a sweep: the same parts on every machine, disjoint, and balanced by cost; python -m rbpx
plan ... --format jobs prints the commands.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rbpx.cli.registry import Job, Outcome, Verb
from rbpx.config.keys.runs import GRID
from rbpx.errors import RbpxError

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine
    from rbpx.measure.results import Measured

VERB = Verb(
    order=20,
    theme="measure",
    examples=(
        "python -m rbpx measure model=ladder dataset=pydoc",
        "python -m rbpx measure -m model=gpt2,pythia dataset=wikipedia,c4 shard=3/16",
    ),
    primary="measure",
    keys=(*GRID, "best", "shard"),
)


def start(job: Job) -> "Measured | None":
    """Measure the grid of a job that a launcher gave a process of its own; None where it waits for its sweep.

    A sweep measures after its last job was composed, so that each model is loaded once for all of its texts.
    """
    from rbpx.measure.runner import measure_grids

    shard = job.request.shard
    if shard is not None and shard.number is None:
        raise RbpxError(f"shard={shard} names no part; give one of shard=1/{shard} to shard={shard}/{shard}")
    if job.alone and shard is not None:
        raise RbpxError(f"shard={shard} divides a sweep that the launcher divides already; drop hydra/launcher=")
    return measure_grids([job.request], job.number, job.n_jobs, job.quiet)[0] if job.alone else None


def finish(outcomes: Sequence[Outcome], line: "CommandLine") -> "list[Measured]":
    """Measure the grids that waited; where nothing was missing, say what the store holds."""
    grids = measured(outcomes)
    done = [grid for grid in grids if not (grid.n_new or grid.failures or grid.error)]
    if grids and len(done) == len(grids):
        _log_nothing_missing(grids)
    return grids


def _log_nothing_missing(grids: "Sequence[Measured]") -> None:
    """One line for a command that had nothing to do."""
    families, texts = (list(dict.fromkeys(names)) for names in zip(*map(_names, grids), strict=True))
    cells = {(grid.request.store, key) for grid in grids for key in grid.cell_keys}
    stores = ", ".join(dict.fromkeys(grid.request.store for grid in grids))
    held = "the cell asked for is" if len(cells) == 1 else f"all {len(cells):,} cells asked for are"
    what = f"{', '.join(families)} on {', '.join(texts)}"
    logging.getLogger(__name__).info(f"nothing to measure: {held} in store={stores} already, {what}")


def _names(grid: "Measured") -> tuple[str, str]:
    """The names of a grid's family and text."""
    from rbpx.config.grid import members

    assert grid.request.model is not None
    assert grid.request.dataset is not None
    return members(grid.request.model, grid.request.size)[0], grid.request.dataset.name


def measured(outcomes: Sequence[Outcome]) -> "list[Measured]":
    """What became of each job's grid, in the order of the jobs; those that waited are measured now, together."""
    from rbpx.measure.runner import measure_grids

    waiting = iter(measure_grids([outcome.request for outcome in outcomes if outcome.answer is None]))
    return [next(waiting) if outcome.answer is None else outcome.answer for outcome in outcomes]
