"""Print what the store holds, what is being measured and what failed.

Counts runs and tokens, and shows as a grid which model is done, running, failed or missing on which text: missing are
the models that were measured on another text only. Name a grid (model= and dataset=, also with -m) to see its progress;
either of them alone, or another name, shows what has that name. A measuring process writes a heartbeat to the store;
one that was killed is shown as stopped.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rbpx.cli.registry import Job, Outcome, Verb

if TYPE_CHECKING:
    from rbpx.cli.argv import CommandLine

_OF_CELLS = ("limit", "seed", "dtype", "deterministic")  # by which a cell is looked up

VERB = Verb(
    order=350,
    theme="store",
    examples=(
        "python -m rbpx status",
        "python -m rbpx status model=ladder dataset=pydoc",
        "python -m rbpx status -m model=ladder,pythia dataset=pydoc,stdlib",
    ),
    keys=("model", "size", "dataset", "protocol", "family", "source", "variant", *_OF_CELLS, "shard", "format"),
)


def start(job: Job) -> list[Any] | None:
    """The state of each cell of a grid; None where no grid is named."""
    from rbpx.store.relations import write_views
    from rbpx.store.store import Store

    store = Store(job.request.store)
    write_views(store)
    if job.request.model is None or job.request.dataset is None:
        return None
    from rbpx.measure.grid import grid_here  # which reads texts
    from rbpx.store.cell_states import cell_states

    return cell_states(grid_here(job.request, by_name=True).cells, store)


def finish(outcomes: Sequence[Outcome], line: "CommandLine") -> None:
    """Print the store, or the grid of the whole sweep."""
    from rbpx.cli.tables.status import print_status

    requests = [outcome.request for outcome in outcomes]
    grids = [outcome.answer or [] for outcome in outcomes]
    states = [state for grid in grids for state in grid]
    if requests[0].shard is not None:
        from rbpx.measure.shards import of_shard  # which needs torch

        states = of_shard(requests, grids)
    named = any(outcome.answer is not None for outcome in outcomes)
    print_status(requests, states if named else None, line.narrowing)
