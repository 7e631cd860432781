"""Measures the losses of each selected run at several temperatures, and writes them to the store run by run."""

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rbpx.config.request import Request
from rbpx.errors import MeasureError, RbpxError
from rbpx.questions.question import MeasuredRuns
from rbpx.runs.group import Run
from rbpx.runs.select.sizes import select
from rbpx.store.sql import connect
from rbpx.store.store import Record, Store

if TYPE_CHECKING:
    from rbpx.questions.remeasure import Rescorer

_SAME_NATS: Final = 1e-2  # tolerated difference from the stored cross-entropy, as in 16 bits on another machine


def measure(request: Request) -> MeasuredRuns:
    """Measures the selected runs whose losses the store lacks; a run that fails does not stop the others.

    Raises:
        RbpxError: the store cannot be written, or the device is not available.
    """
    store = Store(request.store)
    with connect(store, with_fits=False) as connection:
        groups = [group for group in select(connection, request) if group.is_measured]
    runs = {run.run_id: run for group in groups for run in group.runs}
    missing = [run for run in runs.values() if not store.beside_file("temperatures", run.run_id).is_file()]
    done = tuple(run_id for run_id in runs if run_id not in {run.run_id for run in missing})
    if not missing:
        return MeasuredRuns(done, ())

    from rbpx.measure.distributed import init_process_group
    from rbpx.questions.remeasure import rescorer

    processes = init_process_group(request.device.value)
    # Sorted by model, so that each is loaded once for all of its texts.
    missing.sort(key=lambda run: (run.family, run.non_embedding_params, run.size, str(run.revision), str(run.dtype)))
    missing = processes.broadcast(missing)  # all must agree, or some would wait for runs that others skip
    store.prepare()
    with rescorer("temperature", "losses at other temperatures", len(missing), request, store, processes) as again:
        new = [run.run_id for run, _ in again.each(missing, partial(_measure, again))]
    return MeasuredRuns((*done, *new), tuple(again.failures))


def _measure(again: "Rescorer", run: Run) -> tuple[None, str]:
    from rbpx.measure.temperatures import measure_temperatures

    store, processes = again.reopener.store, again.reopener.processes
    facts = store.manifest(run.run_id)
    if facts.get("engine") is not None:  # rbpx would not compute the same as the engine
        raise RbpxError(
            f"it was measured by {facts['engine']}, which gives no losses at other temperatures; measure it again "
            "without engine="
        )
    score = partial(measure_temperatures, run.run_id)
    table, told = again.score(run, lambda documents: [each for each in documents if each.is_true], score)
    _check_same(run.run_id, table, facts)
    problem = None
    if processes.is_main:
        try:
            store.write_beside("temperatures", run.run_id, table)
        except RbpxError as unwritten:
            problem = str(unwritten)
    problem = processes.broadcast(problem)  # if the writer raised alone, the others would wait forever
    if problem is not None:
        raise MeasureError(problem)
    return None, told


def _check_same(run_id: str, again: pa.Table, facts: Record) -> None:
    """Refuses losses at T = 1 that differ from those of the run.

    Raises:
        RbpxError: the tokens differ, or cross-entropy differs by more than 0.01 nats.
    """
    raw = again.filter(pc.equal(again["beta"], 1.0))
    n_tokens, stored = pc.sum(raw["n_tokens"]).as_py(), facts["cross_entropy_nats"]
    nats = pc.sum(raw["sum_loss_nats"]).as_py() / n_tokens
    if n_tokens != facts["n_tokens"] or not abs(nats - stored) <= _SAME_NATS:
        raise RbpxError(
            f"run {run_id} has {facts['n_tokens']:,} tokens and a cross-entropy of {stored:.4f} nats; measured again "
            f"it has {n_tokens:,} and {nats:.4f}; look at versions and device with `show`, or measure the run anew"
        )
