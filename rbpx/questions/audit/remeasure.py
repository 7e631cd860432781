"""Measures some documents of stored runs again and returns the comparison; writes nothing.

rbpx measures in float32, one window at a time, so that an error of batching does not recur. What rounding explains of
a run of another engine is measured too where it has 16 bits. With engine=, the engine itself measures again, in another
order.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa

from rbpx.config.model.placement import EngineConfig
from rbpx.config.options import Dtype
from rbpx.data.corpus import Document
from rbpx.errors import MeasureError, RbpxError
from rbpx.measure.cell import device_names, versions
from rbpx.measure.distributed import ProcessGroup, init_process_group
from rbpx.measure.engine import ServedCell
from rbpx.measure.results import Failure
from rbpx.measure.runner import refuse_launched
from rbpx.questions.audit import AuditKeys
from rbpx.questions.audit.analysis import ROUNDING, Allowance, Audit, Remeasured, analyse
from rbpx.questions.audit.rescore import Rescorer, name_of, names_of, rescorer
from rbpx.questions.question import MeasuredRuns
from rbpx.runs.group import Group
from rbpx.runs.run import Run
from rbpx.store.columns import numbers
from rbpx.store.sql import ask_beside
from rbpx.store.store import Record, Store

_DECISIVE = ("torch", "transformers", "tokenizers")  # versions that can change the outputs of a model
_LOGGER = logging.getLogger(__name__)


def remeasure(
    connection: duckdb.DuckDBPyConnection, groups: Sequence[Group], request: AuditKeys
) -> tuple[list[Audit], MeasuredRuns]:
    """Measures `limit` documents of each run again; a run that fails does not stop the others.

    Raises:
        RbpxError: no run matches, the device is not available, or the engine is not the one of the runs.
    """
    store, dtype, engine = Store(request.store), request.dtype and request.dtype.value, request.engine
    audits, failures = list[Audit](), list[Failure]()
    groups = [of for of in groups if dtype in (None, of.first.dtype) and (engine is None or _is_by(engine, of))]
    if not groups:
        named = " ".join([*([f"dtype={dtype}"] if dtype else []), *([f"engine={engine.name}"] if engine else [])])
        raise RbpxError(f"no runs in store={request.store} that match were measured with {named}")
    if engine is not None:
        refuse_launched(engine)
    processes = init_process_group(request.device.value)
    if dtype is None and engine is None:
        groups = _without_same(groups, store, processes)
    n_runs = sum(len(group.runs) for group in groups)
    if n_runs == 0:
        return [], MeasuredRuns((), ())
    title = "audit in float32" if engine is None else f"audit by {engine.name}"
    with rescorer(title, n_runs, request, store, processes) as again:
        asked = {} if engine is None else _connect(again, engine, [run for group in groups for run in group.runs])
        for group in groups:
            drawn = np.random.default_rng(request.seed).permutation(group.n_documents)[: request.limit]
            doc_ids: list[int] = sorted(drawn.tolist())  # the same ones for every size
            measured = list(again.each(group.runs, partial(_measure, connection, again, asked, group, doc_ids)))
            if measured:
                audits.append(analyse(measured, group, doc_ids, request))
                both = zip(measured, audits[-1].of_runs, strict=True)
                failures += [_refused(run, row) for (run, (_, allowed)), row in both if allowed and not row["is_same"]]
    run_ids = tuple(row["run_id"] for audit in audits for row in audit.of_runs)
    return audits, MeasuredRuns(run_ids, (*again.failures, *failures))


def _is_by(engine: EngineConfig, group: Group) -> bool:
    return group.first.engine is not None and group.first.engine.partition(" ")[0] == engine.name


def _without_same(groups: list[Group], store: Store, processes: ProcessGroup) -> list[Group]:
    device = ", ".join(device_names([str(processes.device)]))

    def is_same(run: Run) -> bool:
        facts = store.manifest(run.run_id)
        same = all(facts["versions"].get(name) == versions()[name] for name in _DECISIVE)
        in_file = "gguf" in facts["versions"]  # the file fixes the rounding of its weights
        dtype = (run.dtype or "").partition("-")[0] if in_file else run.dtype
        return dtype == Dtype.float32.value and same and facts["device"] == device

    n_all = sum(len(group.runs) for group in groups)
    kept = [replace(group, runs=tuple(run for run in group.runs if not is_same(run))) for group in groups]
    n_same = n_all - sum(len(group.runs) for group in kept)
    if n_same and processes.is_main:
        _LOGGER.info(
            f"{n_same} of {n_all} runs were measured in float32 by these versions on this kind of device, so measuring "
            "them again could change nothing; to do it anyway: dtype=float32"
        )
    return [group for group in kept if group.runs]


_Engines = Mapping[str, tuple[ServedCell, list[Document]]]
"""The engine and the documents of each run, by run id."""


def _connect(again: Rescorer, engine: EngineConfig, runs: Sequence[Run]) -> _Engines:
    n_models = len({run.model for run in runs})
    if engine.model is not None and n_models > 1:
        raise RbpxError(
            f"engine.model={engine.model} is one model, and the request selects {n_models}; give one of them with size="
        )
    return {run.run_id: again.reopener.reach(names_of(run), engine) for run in runs}


def _measure(
    connection: duckdb.DuckDBPyConnection,
    again: Rescorer,
    asked: _Engines,
    group: Group,
    doc_ids: Sequence[int],
    run: Run,
) -> tuple[Remeasured, str]:
    if run.run_id in asked:
        exact, told = again.ask(run, *asked[run.run_id], doc_ids)
    else:
        exact, told = again.score(run, doc_ids, Dtype.float32)
    pairs = _pairs(connection, exact, group, doc_ids, run)
    if asked or run.engine is None:
        return (pairs, None), told
    # Two correct implementations round independently, so each is about as far from float32 as the other.
    own, tolerance = ROUNDING, again.request.tolerance
    if run.dtype != Dtype.float32.value:
        rounded, _ = again.score(run, doc_ids, shows=False)
        own = _rounding(rounded, exact)
    return (pairs, Allowance(tolerance * own.share, tolerance * own.nats)), told


def _pairs(
    connection: duckdb.DuckDBPyConnection, again: pa.Table, group: Group, doc_ids: Sequence[int], run: Run
) -> pa.Table:
    parameters = {"run_id": run.run_id, "doc_ids": list(doc_ids), "ties": group.ties.value}
    pairs = ask_beside(connection, again, "rank_pairs", **parameters)
    alone = pairs["rank"].null_count + pairs["rank_again"].null_count
    if alone:
        raise MeasureError(
            f"the tokenizer now cuts the text into other tokens than when it was measured ({alone:,} ranks have no "
            "partner), so nothing can be compared; look at the versions with `show`, and measure it anew"
        )
    return pairs


def _rounding(rounded: pa.Table, exact: pa.Table) -> Allowance:
    ranks, exact_ranks = (numbers(table["greater"]) + numbers(table["ties"]) for table in (rounded, exact))
    nats = abs(numbers(rounded["logprob"]).astype("float64") - numbers(exact["logprob"]))
    share = float((ranks != exact_ranks).mean())
    return Allowance(max(share, ROUNDING.share), max(float(nats.max()), ROUNDING.nats))


def _refused(run: Run, row: Record) -> Failure:
    by = "" if row["largest_move"] is None else f", by up to {row['largest_move']:,g}"
    error = (
        f"{run.engine} is refused: {row['n_changed'] / row['n_tokens']:.3%} of {row['n_tokens']:,} tokens have another "
        f"rank than in rbpx's float32 ({row['allowed_share']:.3%} allowed){by}, and log-probabilities are off by up to "
        f"{row['largest_logprob_move']:.2g} nats ({row['allowed_nats']:.2g} allowed); check its weights, its dtype and "
        "its options, or raise tolerance="
    )
    return Failure(name_of(run), error, request_is_wrong=False)
