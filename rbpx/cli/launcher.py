"""Measures grids in this process or in the jobs of a Hydra launcher, and returns what was measured and what failed.

Each job is a process of its own; progress and outcome are read from the store that the jobs share.
"""

import logging
import os
import shutil
import threading
import uuid
import warnings
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rbpx.cli.registry import Command, asking
from rbpx.config.compose import launch
from rbpx.config.texts import quoted
from rbpx.cores import share_among_jobs
from rbpx.errors import RbpxError, number_of, reason
from rbpx.files.escapes import say
from rbpx.store.cell_states import CellState, State, cell_states
from rbpx.store.store import Store

if TYPE_CHECKING:
    from rbpx.config.grid import Cell
    from rbpx.config.keys.runs import GridKeys
    from rbpx.measure.results import Measured

_LOGGER = logging.getLogger(__name__)
_EVERY_S = 2.0


def measured(asked: Command, requests: "Sequence[GridKeys] | None" = None) -> "list[Measured]":
    """Measures the grid of each request."""
    from rbpx.measure.runner import measure_grids

    requests = asked.requests if requests is None else requests
    return measure_grids(requests) if asked.launcher is None else _launched(asked, requests)


def _launched(asked: Command, requests: "Sequence[GridKeys]") -> "list[Measured]":
    from rbpx.measure.results import Measured
    from rbpx.store.store import now

    began = now()
    before = {key for request in requests for key in _held(request, began).cell_keys}
    folder = Path(requests[0].store).expanduser().resolve() / "sweeps" / uuid.uuid4().hex[:6]
    folder.mkdir(parents=True)
    words = [*asked.line.overrides, f"hydra.sweep.dir={quoted(str(folder))}"]
    _LOGGER.info(f"{number_of(len(requests), 'job')} of hydra/launcher={asked.launcher}; their logs: {folder}")
    share_among_jobs()
    # Joblib replaces a worker whose memory has grown, as it does when the worker has measured a model.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
    lost: list[Measured] = []
    try:
        with _watched(requests):
            task = partial(_job, len(requests), os.getpid())
            launch(asking(asked.line.verb), ["-m"], words, asked.line.own, task)
    except KeyboardInterrupt as stop:
        if (folder / ".submitit").is_dir():
            stop.add_note(f"jobs that were started may go on, their logs: {folder}")
        else:
            _remove(folder)
        raise
    except Exception as problem:  # a job that was killed: each launcher has its own name for it
        told = f"a job of hydra/launcher={asked.launcher} ended without an answer ({reason(problem, 160)})"
        lost = [Measured(requests[0], error=f"{told}; its log is in {folder}; the same command continues", status=1)]
    grids = [*(_held(request, began, before, folder) for request in requests), *lost]
    if not any(grid.failures or grid.error for grid in grids):
        _remove(folder)
    return grids


def _remove(folder: Path) -> None:
    shutil.rmtree(folder)
    with suppress(OSError):
        folder.parent.rmdir()


def _held(request: "GridKeys", began: str, before: Container[str] = (), logs: Path | None = None) -> "Measured":
    from rbpx.measure.grid import grid_here
    from rbpx.measure.results import Failure, Measured, not_measured

    try:
        states = cell_states(grid_here(request, by_name=True).cells, Store(request.store))
    except RbpxError as problem:
        return not_measured(request, problem)
    done = tuple(each.cell.key for each in states if each.state is State.done)
    failed = [each for each in states if each.state is State.failed and (each.failed_at or "") >= began]
    missing = [str(each.cell) for each in states if each.state is not State.done and each not in failed]
    told = f"{', '.join(missing)}: its job was stopped; logs are in {logs}, and the same command continues"
    return Measured(
        request,
        done,
        tuple(Failure(str(each.cell), each.error or "", False) for each in failed),
        n_new=sum(key not in before for key in done),
        error=told if missing else None,
        status=1 if missing else 0,
    )


def _job(n_jobs: int, parent: int, request: "GridKeys") -> None:
    from hydra.core.hydra_config import HydraConfig

    from rbpx.cli.messages import show_messages_of_job
    from rbpx.cli.signals import leave_no_heartbeat, stop_job_in_order
    from rbpx.measure.runner import measure_grids

    show_messages_of_job()
    stop_job_in_order()
    number = int(HydraConfig.get().job.num) + 1
    try:
        measure_grids([request], number, n_jobs, quiet=True)
    except KeyboardInterrupt as stop:
        if os.getpid() == parent:  # a launcher without other processes
            raise
        leave_no_heartbeat()
        say(f"rbpx: job {number}/{n_jobs} was stopped by {stop}; the same command continues")


@contextmanager
def _watched(requests: "Sequence[GridKeys]") -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(requests, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(requests: "Sequence[GridKeys]", over: threading.Event) -> None:
    from rbpx.display.progress import GridProgress
    from rbpx.measure.grid import grid_here
    from rbpx.measure.results import pace

    stores: dict[Cell, Store] = {}
    for request in requests:
        with suppress(RbpxError):  # which the job reports
            stores |= dict.fromkeys(grid_here(request, by_name=True).cells, Store(request.store))

    def states() -> "dict[Cell, CellState]":
        return {cell: state for cell, store in stores.items() for state in cell_states([cell], store)}

    waiting, is_over = {cell: state for cell, state in states().items() if state.state is not State.done}, False
    with GridProgress("sweep", len(waiting)) as progress:
        while not is_over:
            is_over = over.wait(_EVERY_S)
            for cell, now in states().items():
                if cell in waiting and now.run_id is not None:
                    progress.finish(f"{cell}: {pace(stores[cell].manifest(now.run_id))}")
                    del waiting[cell]
                elif cell in waiting and now.state is State.failed and now.failed_at != waiting[cell].failed_at:
                    progress.finish(f"{cell} failed")
                    del waiting[cell]
