"""Progress of a sweep whose jobs have processes of their own: its cells are looked up in the store that they share."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rbpx.errors import RbpxError

if TYPE_CHECKING:
    from rbpx.config.grid import Cell
    from rbpx.store.cell_states import CellState

_EVERY_S = 1.0
_MOST = 3  # cells that a line names


@contextmanager
def watched(jobs: Sequence[Callable[[], Any]]) -> Iterator[None]:
    """Show how the cells of a sweep get on for as long as the block takes.

    Args:
        jobs: functions that return the request of each job, or raise `RbpxError`.
    """
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(jobs, over), name="rbpx-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(jobs: Sequence[Callable[[], Any]], over: threading.Event) -> None:
    from rbpx.display.progress import GridProgress
    from rbpx.measure.results import pace
    from rbpx.store.cell_states import State
    from rbpx.store.store import Store

    stores = _cells(jobs)
    before = {state.cell: state for state in _states(stores)}
    waiting = {cell: store for cell, store in stores.items() if before[cell].state is not State.done}
    began, ended = time.monotonic(), False
    with GridProgress("sweep", len(waiting)) as progress:
        while waiting and not ended:
            ended = over.wait(_EVERY_S)
            states = _states(waiting)
            for state in states:
                cell = state.cell
                if state.run_id is not None:
                    run = Store(waiting.pop(cell)).manifest(state.run_id)
                    progress.finish(f"{cell}: {pace(run)}")
                elif state.state is State.failed and state.failed_at != before[cell].failed_at:
                    del waiting[cell]
                    progress.finish(f"{cell} failed")
            left_s = (time.monotonic() - began) / progress.n_done * len(waiting) if progress.n_done else None
            if waiting:
                progress.tell(*_running(states, left_s))


def _cells(jobs: Sequence[Callable[[], Any]]) -> "dict[Cell, str]":
    """The cells of a sweep, each once, and the names of their stores; a job that is wrong has none."""
    from rbpx.measure.grid import grid_here

    cells: dict[Cell, str] = {}
    for read_request in jobs:
        try:
            request = read_request()
            found = grid_here(request, by_name=True).cells if request.model else []
        except RbpxError:  # the job itself tells it
            continue
        cells |= dict.fromkeys(found, request.store)
    return cells


def _states(stores: "Mapping[Cell, str]") -> "list[CellState]":
    from rbpx.store.cell_states import cell_states
    from rbpx.store.store import Store

    states = []
    for store in dict.fromkeys(stores.values()):
        states += cell_states([cell for cell in stores if stores[cell] == store], Store(store))
    return states


def _running(states: "Sequence[CellState]", left_s: float | None) -> tuple[str, str]:
    """How many cells are being measured, how fast, and for how long still; the names of the first."""
    from rbpx.display.vocabulary import time
    from rbpx.store.cell_states import State

    beats = [(state.cell, state.heartbeat) for state in states if state.state is State.running]
    n_stopped = sum(state.state is State.stopped for state in states)
    rate = sum(beat.facts["tokens_per_s"] or 0.0 for _, beat in beats if beat is not None)
    parts = [f"{len(beats) or 'none'} running" + (f" at {rate:,.0f} tokens/s" if rate else "")]
    parts += [f"{n_stopped} stopped"] if n_stopped else []
    parts += [] if left_s is None else [f"about {time(left_s)} left"]
    shares = [(cell, None if beat is None else beat.share) for cell, beat in beats]
    names = [str(cell) if share is None else f"{cell} {share:.0%}" for cell, share in shares]
    more = [f"{len(names) - _MOST} more"] if len(names) > _MOST else []
    return ", ".join(parts), ", ".join([*names[:_MOST], *more])
