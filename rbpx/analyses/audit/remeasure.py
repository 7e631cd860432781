"""Audit of precision (verb audit): some documents of stored runs are measured again in float32. Nothing is written.

A run of another engine is compared with float32 of rbpx too, and refused where it is further from it than rounding
explains: for a 16-bit run, than rbpx in that precision, for which it is measured once more.

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
from rbpx.analyses.audit.rank_changes import Allowance, Moves, count_moves, engine_allowance
from rbpx.config.options import Dtype
from rbpx.config.placement import Split
from rbpx.config.request import Request
from rbpx.display.progress import GridProgress
from rbpx.errors import RbpxError
from rbpx.groups.group import Group, Run
from rbpx.groups.selection import select
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
                paired = _pair_group(connection, group, doc_ids, request, reopener, progress)
                failures += paired.failures
                if paired.runs:
                    run_ids += [run.run_id for run, _ in paired.runs]
                    audits.append(analyse(paired.runs, group, doc_ids, request, paired.allowed))
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


@dataclass(frozen=True)
class _Paired:
    """The runs of a group with their ranks, stored beside measured again.

    Attributes:
        runs: in order.
        allowed: by run_id, how far those of another engine may be from float32.
        failures: runs that could not be measured, and engines that are refused.
    """

    runs: list[tuple[Run, pa.Table]]
    allowed: dict[str, Allowance]
    failures: list[Failure]


def _pair_group(
    connection: duckdb.DuckDBPyConnection,
    group: Group,
    doc_ids: list[int],
    request: Request,
    reopener: Reopener,
    progress: GridProgress,
) -> _Paired:
    paired = _Paired([], {}, [])
    processes = reopener.processes
    for run in group.runs:
        name = f"{run.family} {run.size} on {run.dataset} ({', '.join(filter(None, (run.dtype, run.engine)))})"
        names = RunNames(run.run_id, run.family, run.size, run.dataset)

        def begin(n_tokens: int, what: str = name) -> Callable[[int], None]:
            return progress.begin(what, n_tokens, processes.world_size)

        try:
            with split_of(request, reopener.store) as split:
                again, wall_s = _measure_again(names, doc_ids, request, reopener, begin, split)
                pairs = pair_ranks(connection, group, run, doc_ids, again)
                if run.engine is not None:
                    own = _own_moves(run, names, doc_ids, request, reopener, split, again)
                    paired.allowed[run.run_id] = engine_allowance(own, request.tolerance)
        except BrokenPipeError:  # whoever read what is printed has seen enough
            raise
        except Exception as raised:
            paired.failures.append(replace(reopener.failed("audit", names, raised), cell=name))
            progress.finish(f"{name} failed")
            continue
        reopener.succeeded("audit", names)
        paired.runs.append((run, pairs))
        paired.failures.extend(_refused(run, name, count_moves(pairs, ()), paired.allowed.get(run.run_id)))
        progress.finish(f"{name}: {again.num_rows:,} tokens again at {again.num_rows / wall_s:,.0f} tokens/s")
    return paired


def _own_moves(
    run: Run,
    names: RunNames,
    doc_ids: list[int],
    request: Request,
    reopener: Reopener,
    split: Split | None,
    in_float32: pa.Table,
) -> Moves | None:
    """What the precision of an engine's run moves in a run of rbpx; None for float32."""
    if run.dtype == Dtype.float32.value:
        return None
    rounded, _ = _measure_again(names, doc_ids, request, reopener, lambda n: lambda done: None, split, dtype=None)
    ranks, exact = (table["greater"].to_numpy() + table["ties"].to_numpy() for table in (rounded, in_float32))
    nats = abs(rounded["logprob"].to_numpy().astype("float64") - in_float32["logprob"].to_numpy())
    n_changed = int((ranks != exact).sum())
    return Moves(len(nats), n_changed, n_changed, None, None, float(nats.max()), {}, {})


def _refused(run: Run, name: str, moves: Moves, allowed: Allowance | None) -> list[Failure]:
    """Why an engine is refused; nothing where it is not."""
    if allowed is None or allowed.holds(moves):
        return []
    by = "" if moves.largest_move is None else f", by up to {moves.largest_move:,g}"
    error = (
        f"{run.engine} is refused: {moves.share_changed:.3%} of {moves.n_tokens:,} tokens have another rank than in "
        f"rbpx's float32 ({allowed.share:.3%} allowed){by}, and log-probabilities are off by up to "
        f"{moves.largest_logprob_move:.2g} nats ({allowed.nats:.2g} allowed); check its weights, its dtype and its "
        "options, or raise tolerance="
    )
    return [Failure(name, error, request_is_wrong=False)]


def _measure_again(
    run: RunNames,
    doc_ids: list[int],
    request: Request,
    reopener: Reopener,
    begin: Callable[[int], Callable[[int], None]],
    split: Split | None,
    dtype: Dtype | None = Dtype.float32,
) -> tuple[pa.Table, float]:
    """The scored tokens of some documents of a run, in float32 or (None) its own, and the seconds that ranking took."""
    protocol, documents = reopener.reopen(run, split, dtype)
    windows = protocol.windows([documents[doc_id] for doc_id in doc_ids])
    n_tokens = sum(w.n_scored for w in windows)
    if n_tokens == 0:
        raise RbpxError(f"no document of the {len(doc_ids):,} drawn has a scored token; give more with limit=N")
    advance = begin(n_tokens)
    wall_from = time.monotonic()
    rows = measure_windows(protocol.loaded, windows, reopener.processes, request.tokens_per_batch, advance)
    return pa.table(rows.columns), time.monotonic() - wall_from
