"""Audit of precision (verb audit): some documents of stored runs are measured again in float32. Nothing is written.

A run that was measured in float32, by the same versions on the same kind of device, would give the same numbers again,
so it is left out unless dtype=float32 asks for it.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from rbpx.analyses.audit.analysis import Audit, analyse, pair_ranks, sample_documents
from rbpx.config.options import Dtype
from rbpx.config.placement import Split
from rbpx.config.request import Request
from rbpx.display.progress import GridProgress
from rbpx.errors import RbpxError
from rbpx.groups.selection import Group, Run, select
from rbpx.measure.again import Reopener, RunNames
from rbpx.measure.cell import device_names, versions
from rbpx.measure.distributed import ProcessGroup, init_process_group
from rbpx.measure.extract import measure_windows
from rbpx.measure.results import Failure
from rbpx.measure.runner import split_of
from rbpx.store.queries import connect
from rbpx.store.remote import open_store
from rbpx.store.store import Record, Store

_DECISIVE = ("torch", "transformers", "tokenizers")  # versions that can change what a model computes
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Remeasured:
    """The result of an audit.

    Attributes:
        results: one for each group of which a run was measured again.
        run_ids: runs that were measured again.
        failures: runs that could not be.
    """

    results: tuple[Audit, ...]
    run_ids: tuple[str, ...]
    failures: tuple[Failure, ...]


def remeasure(request: Request) -> Remeasured:
    """Measure documents of the selected runs again, and compare; a run that fails does not stop the others.

    Args:
        request: what narrows the runs; `limit` documents of each are measured again.

    Raises:
        RbpxError: no measured run is selected, or the device is not available.
    """
    store = open_store(request.store)
    audits, run_ids, failures = list[Audit](), list[str](), list[Failure]()
    with connect(store, with_fits=False) as connection:
        groups = [group for group in select(connection, request) if group.is_measured]
        groups = [group for group in groups if request.dtype is None or group.first.dtype == request.dtype.value]
        if not groups:
            raise RbpxError(
                f"no measured runs in store={request.store} match the request"
                f"{'' if request.dtype is None else f' with dtype={request.dtype.value}'}; see python -m rbpx status"
            )
        processes = init_process_group(request.device.value)
        if request.dtype is None:
            groups = _without_same(groups, store, processes)
        reopener = Reopener(store, processes)
        n_runs = sum(len(group.runs) for group in groups)
        if n_runs == 0:
            return Remeasured((), (), ())
        with GridProgress("audit in float32", n_runs, quiet=not processes.is_main) as progress:
            for group in groups:
                doc_ids = sample_documents(group, request.limit, request.seed)
                runs, failed = _pair_group(connection, group, doc_ids, request, reopener, progress)
                failures += failed
                if runs:
                    run_ids += [run.run_id for run, _ in runs]
                    audits.append(analyse(runs, group, doc_ids, request))
    return Remeasured(tuple(audits), tuple(run_ids), tuple(failures))


def _without_same(groups: list[Group], store: Store, processes: ProcessGroup) -> list[Group]:
    """The groups without the runs that cannot come out otherwise here; a line says how many those are."""
    device = ", ".join(device_names([str(processes.device)]))

    def is_same(run: Run) -> bool:
        facts: Record = store.manifest(run.run_id)
        same = all(facts["versions"].get(name) == versions()[name] for name in _DECISIVE)
        return run.dtype == Dtype.float32.value and same and facts["device"] == device

    n_all = sum(len(group.runs) for group in groups)
    kept = [replace(group, runs=tuple(run for run in group.runs if not is_same(run))) for group in groups]
    n_same = n_all - sum(len(group.runs) for group in kept)
    if n_same and processes.is_main:
        _LOGGER.info(
            f"{n_same} of {n_all} runs were measured in float32 by these versions on this kind of device, so measuring "
            "them again could change nothing; to do it anyway: dtype=float32"
        )
    return [group for group in kept if group.runs]


def _pair_group(
    connection: duckdb.DuckDBPyConnection,
    group: Group,
    doc_ids: list[int],
    request: Request,
    reopener: Reopener,
    progress: GridProgress,
) -> tuple[list[tuple[Run, pa.Table]], list[Failure]]:
    """The runs of a group with their ranks, stored beside measured again; and the runs that could not be measured."""
    paired, failures = [], []
    processes = reopener.processes
    for run in group.runs:
        name = f"{run.family} {run.size} on {run.dataset} ({run.dtype})"
        names = RunNames(run.run_id, run.family, run.size, run.dataset)

        def begin(n_tokens: int, what: str = name) -> Callable[[int], None]:
            return progress.begin(what, n_tokens, processes.world_size)

        try:
            with split_of(request, reopener.store) as split:
                again, wall_s = _measure_again(names, doc_ids, request, reopener, begin, split)
            pairs = pair_ranks(connection, group, run, doc_ids, again)
        except BrokenPipeError:  # whoever read what is printed has seen enough
            raise
        except Exception as raised:
            failures.append(replace(reopener.failed("audit", names, raised), cell=name))
            progress.finish(f"{name} failed")
            continue
        reopener.succeeded("audit", names)
        paired.append((run, pairs))
        progress.finish(f"{name}: {again.num_rows:,} tokens again at {again.num_rows / wall_s:,.0f} tokens/s")
    return paired, failures


def _measure_again(
    run: RunNames,
    doc_ids: list[int],
    request: Request,
    reopener: Reopener,
    begin: Callable[[int], Callable[[int], None]],
    split: Split | None,
) -> tuple[pa.Table, float]:
    """The scored tokens of some documents of a run, in float32, and the seconds that ranking them took."""
    protocol, documents = reopener.reopen(run, split, Dtype.float32)
    windows = protocol.windows([documents[doc_id] for doc_id in doc_ids])
    n_tokens = sum(w.n_scored for w in windows)
    if n_tokens == 0:
        raise RbpxError(f"no document of the {len(doc_ids):,} drawn has a scored token; give more with limit=N")
    advance = begin(n_tokens)
    wall_from = time.monotonic()
    rows = measure_windows(protocol.loaded, windows, reopener.processes, request.tokens_per_batch, advance)
    return pa.table(rows.columns), time.monotonic() - wall_from
