"""Audit of precision (verb audit): some documents of stored runs are measured again in float32.

A run records its request, which is repeated: the same text, cut by the same protocol for the same model. Both are
checked against the hashes of the run before anything is compared. Nothing is written.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rbpx.analyses.audit.analysis import Audit, analyse, pair_ranks, sample_documents
from rbpx.config.grid import Cell, cells
from rbpx.config.options import Dtype
from rbpx.config.placement import Split
from rbpx.config.request import Request
from rbpx.data.corpus import Document, text_hash
from rbpx.display.progress import GridProgress
from rbpx.errors import RbpxError
from rbpx.files.digest import digest
from rbpx.groups.selection import Group, Run, select
from rbpx.measure.distributed import ProcessGroup, init_process_group
from rbpx.measure.extract import measure_windows
from rbpx.measure.offline import hash_members
from rbpx.measure.protocol import resolve_protocol
from rbpx.measure.results import Failure
from rbpx.measure.runner import draw_sample, split_of
from rbpx.models.load import load_model
from rbpx.store.queries import connect
from rbpx.store.remote import open_store
from rbpx.store.store import Record, Store

_ASKED = ("model", "dataset", "protocol", "limit", "seed")  # what decides which tokens a run is of

Texts = dict[str, list[Document]]
"""Texts that were read, by a digest of their request."""


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
        n_runs, texts = sum(len(group.runs) for group in groups), Texts()
        with GridProgress("audit in float32", n_runs, quiet=not processes.is_main) as progress:
            for group in groups:
                doc_ids = sample_documents(group, request.limit, request.seed)
                runs, failed = _pair_group(connection, group, doc_ids, request, store, processes, progress, texts)
                failures += failed
                if runs:
                    run_ids += [run.run_id for run, _ in runs]
                    audits.append(analyse(runs, group, doc_ids, request))
    return Remeasured(tuple(audits), tuple(run_ids), tuple(failures))


def _pair_group(
    connection: duckdb.DuckDBPyConnection,
    group: Group,
    doc_ids: list[int],
    request: Request,
    store: Store,
    processes: ProcessGroup,
    progress: GridProgress,
    texts: Texts,
) -> tuple[list[tuple[Run, pa.Table]], list[Failure]]:
    """The runs of a group with their ranks, stored beside measured again; and the runs that could not be measured."""
    paired, failures = [], []
    for run in group.runs:
        name = f"{run.family} {run.size} on {run.dataset} ({run.dtype})"

        def begin(n_tokens: int, what: str = name) -> Callable[[int], None]:
            return progress.begin(what, n_tokens, processes.world_size)

        try:
            with split_of(request, store) as split:
                again, wall_s = _measure_again(run, doc_ids, request, store, processes, texts, begin, split)
            pairs = pair_ranks(connection, group, run, doc_ids, again)
        except RbpxError as problem:
            failures.append(Failure(name, str(problem), request_is_wrong=False))
            progress.finish(f"{name} failed")
            continue
        paired.append((run, pairs))
        progress.finish(f"{name}: {again.num_rows:,} tokens again at {again.num_rows / wall_s:,.0f} tokens/s")
    return paired, failures


def _measure_again(
    run: Run,
    doc_ids: list[int],
    request: Request,
    store: Store,
    processes: ProcessGroup,
    texts: Texts,
    begin: Callable[[int], Callable[[int], None]],
    split: Split | None,
) -> tuple[pa.Table, float]:
    """The scored tokens of some documents of a run, in float32, and the seconds that ranking them took."""
    facts, record = store.manifest(run.run_id), _record(run, store)
    cell, documents = _ask_again(record, store, texts)
    if cell.text_hash != facts["text_hash"]:
        raise RbpxError(
            f"dataset {run.dataset} is not the text that was measured (hash {cell.text_hash}, the run has "
            f"{facts['text_hash']}); bring back the text, or measure the run anew"
        )
    cache = store.root / "hashes.json"
    revision = record["commit"] or cell.revision
    loaded = load_model(cell.model, revision, cell.dtype, processes.device, cache, cell.pickled, split)
    for what, of_run in (("weights_hash", loaded.weights_hash), ("tokenizer_hash", loaded.tokenizer_hash)):
        if of_run != facts[what]:
            raise RbpxError(
                f"{cell.model} is not the model that was measured ({what} {of_run}, the run has {facts[what]}); bring "
                "back the model, or measure the run anew"
            )
    protocol = resolve_protocol(cell, loaded)
    windows = protocol.windows([documents[doc_id] for doc_id in doc_ids])
    n_tokens = sum(w.n_scored for w in windows)
    if n_tokens == 0:
        raise RbpxError(f"no document of the {len(doc_ids):,} drawn has a scored token; give more with limit=N")
    advance = begin(n_tokens)
    wall_from = time.monotonic()
    rows = measure_windows(protocol.loaded, windows, processes, request.tokens_per_batch, advance)
    return pa.table(rows.columns), time.monotonic() - wall_from


def _record(run: Run, store: Store) -> Record:
    """The newest request that this run answered under these names."""
    names = (run.run_id, run.family, run.size, run.dataset)
    answered = [
        cell
        for cell in store.records("cells")
        if (cell["run_id"], *(cell[n] for n in ("family", "size", "dataset"))) == names
    ]
    return max(answered, key=lambda cell: str(cell["asked_at"]))


def _ask_again(record: Record, store: Store, texts: Texts) -> tuple[Cell, list[Document]]:
    """The cell of a record, in float32, and the documents of its text.

    Raises:
        RbpxError: the record has no complete request, or its model or text is not available.
    """
    values = {name: record["config"].get(name) for name in _ASKED}
    if None in values.values():
        raise RbpxError("its record does not contain the whole request; measure the run anew")
    try:
        request = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Request), values))
    except OmegaConfBaseException as problem:
        reason = str(problem).split("\n")[0]
        raise RbpxError(f"its record is of another version of rbpx ({reason}); measure the run anew") from None
    assert isinstance(request, Request)
    request = replace(request, size=[record["size"]], dtype=Dtype.float32, store=str(store.root))
    hashes = hash_members(request, store)
    key = digest([values["dataset"], values["limit"], values["seed"]])
    if key not in texts:
        texts[key] = draw_sample(request, store).documents
    (cell,) = cells(request, text_hash(texts[key]), hashes)
    return cell, texts[key]
