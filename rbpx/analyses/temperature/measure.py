"""What temperature needs measured: losses of each selected run at several temperatures, kept in the store.

A run is written as soon as it is done, so a later failure or a stop loses none; what the store holds is not measured
again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rbpx.analyses.temperature.analysis import check_same
from rbpx.config.request import Request
from rbpx.counts import number_of
from rbpx.errors import MeasureError, RbpxError
from rbpx.groups.group import Run
from rbpx.groups.selection import select
from rbpx.measure.results import Failure
from rbpx.store.queries import connect
from rbpx.store.remote import open_store, own_store
from rbpx.store.store import Store

if TYPE_CHECKING:
    from rbpx.config.placement import Split
    from rbpx.measure.again import Reopener, RunNames


@dataclass(frozen=True)
class Losses:
    """What was measured.

    Attributes:
        run_ids: runs whose losses the store holds now, measured now or before.
        failures: runs that could not be measured.
    """

    run_ids: tuple[str, ...]
    failures: tuple[Failure, ...]


def measure(request: Request) -> Losses:
    """Measure the losses of the selected runs that the store lacks; a run that fails does not stop the others.

    Raises:
        RbpxError: the store cannot be written, or the device is not available.
    """
    store = open_store(request.store)
    with connect(store, with_fits=False) as connection:
        groups = [group for group in select(connection, request) if group.is_measured]
    runs = {run.run_id: run for group in groups for run in group.runs}
    missing = [run for run in runs.values() if not store.has_file(store.beside_file("temperatures", run.run_id))]
    done = [run_id for run_id in runs if run_id not in {run.run_id for run in missing}]
    if not missing:
        return Losses(tuple(done), ())
    # Runs of one model stand together, so that it is loaded once for all of its texts.
    missing.sort(key=lambda run: (run.family, run.non_embedding_params, run.size, str(run.revision), str(run.dtype)))
    run_ids, failures = _measure(missing, request, own_store(request.store))
    return Losses((*done, *run_ids), tuple(failures))


def _measure(missing: list[Run], request: Request, store: Store) -> tuple[list[str], list[Failure]]:
    from rbpx.display.progress import GridProgress
    from rbpx.measure.again import Reopener, RunNames
    from rbpx.measure.distributed import init_process_group
    from rbpx.measure.runner import split_of

    processes = init_process_group(request.device.value)
    missing = processes.broadcast(missing)  # all must agree, or some would wait for runs that others skip
    store.prepare()
    run_ids, failures = list[str](), list[Failure]()
    reopener = Reopener(store, processes)
    with (
        GridProgress("losses at other temperatures", len(missing), quiet=not processes.is_main) as progress,
        split_of(request, store) as split,
    ):
        for run in missing:
            name = f"{run.family} {run.size} on {run.dataset} ({run.dtype})"
            names = RunNames(run.run_id, run.family, run.size, run.dataset)

            def begin(n_tokens: int, what: str = name) -> Callable[[int], None]:
                return progress.begin(what, n_tokens, processes.world_size)

            try:
                n_tokens, wall_s = _measure_run(names, request, reopener, begin, split)
            except BrokenPipeError:  # whoever read what is printed has seen enough
                raise
            except Exception as raised:
                failures.append(replace(reopener.failed("temperature", names, raised), cell=name))
                progress.finish(f"{name} failed")
                continue
            reopener.succeeded("temperature", names)
            run_ids.append(run.run_id)
            progress.finish(f"{name}: {number_of(n_tokens, 'token')} at {n_tokens / wall_s:,.0f} tokens/s")
    return run_ids, failures


def _measure_run(
    run: "RunNames",
    request: Request,
    reopener: "Reopener",
    begin: Callable[[int], Callable[[int], None]],
    split: "Split | None",
) -> tuple[int, float]:
    """Measure one run and write it; its tokens, and the seconds that they took."""
    from rbpx.measure.temperatures import measure_temperatures

    store, processes = reopener.store, reopener.processes
    engine = store.manifest(run.run_id).get("engine")
    if engine is not None:  # what rbpx would compute is not what the engine did
        raise RbpxError(
            f"{engine} measured it, which tells no losses at other temperatures; measure it without engine="
        )
    protocol, documents = reopener.reopen(run, split)
    windows = protocol.windows([document for document in documents if document.is_true])
    n_tokens = sum(window.n_scored for window in windows)
    advance = begin(n_tokens)
    wall_from = time.monotonic()
    table = measure_temperatures(run.run_id, protocol.loaded, windows, processes, request.tokens_per_batch, advance)
    wall_s = time.monotonic() - wall_from
    check_same(run.run_id, table, store.manifest(run.run_id))
    problem = None
    if processes.is_main:
        try:
            store.write_beside("temperatures", run.run_id, table)
        except RbpxError as unwritten:
            problem = str(unwritten)
    problem = processes.broadcast(problem)  # if the writer raised alone, the others would wait forever
    if problem is not None:
        raise MeasureError(problem)
    return n_tokens, wall_s
