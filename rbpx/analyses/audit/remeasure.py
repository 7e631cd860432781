"""Measures some documents of stored runs again in float32, for the audit of precision. Nothing is written.

A run of another engine is compared with rbpx's float32 as well, and refused where it is further away than rounding
explains. For a 16-bit run, rbpx measures the documents once more in that precision to know how much that is.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa

from rbpx.analyses.again import Again, measured_again, name_of
from rbpx.analyses.audit.analysis import ROUNDING, Allowance, Audit, Remeasured, RunAudit, analyse
from rbpx.analyses.question import Measured
from rbpx.config.options import Dtype
from rbpx.config.request import Request
from rbpx.data.corpus import Document
from rbpx.errors import MeasureError, RbpxError
from rbpx.groups.group import Group, Run
from rbpx.groups.select.sizes import select
from rbpx.measure.cell import device_names, versions
from rbpx.measure.distributed import ProcessGroup, init_process_group
from rbpx.measure.extract import measure_windows
from rbpx.measure.results import Failure
from rbpx.store.named import open_store
from rbpx.store.sql.queries import ask_beside, connect
from rbpx.store.store import Store

_DECISIVE = ("torch", "transformers", "tokenizers")  # versions that can change what a model computes
_LOGGER = logging.getLogger(__name__)


def remeasure(request: Request) -> tuple[list[Audit], Measured]:
    """Measure `limit` documents of each selected run again, and compare; a run that fails does not stop the others.

    Raises:
        RbpxError: no measured run is selected, or the device is not available.
    """
    store, dtype = open_store(request.store), request.dtype and request.dtype.value
    audits, failures = list[Audit](), list[Failure]()
    with connect(store, with_fits=False) as connection:
        groups = [group for group in select(connection, request) if group.is_measured]
        groups = [group for group in groups if dtype in (None, group.first.dtype)]
        if not groups:
            asked = "the request" if dtype is None else f"the request with dtype={dtype}"
            raise RbpxError(f"no measured runs in store={request.store} match {asked}; see python -m rbpx status")
        processes = init_process_group(request.device.value)
        if dtype is None:
            groups = _without_same(groups, store, processes)
        n_runs = sum(len(group.runs) for group in groups)
        if n_runs == 0:
            return [], Measured((), ())
        with measured_again("audit", "audit in float32", n_runs, request, store, processes) as again:
            for group in groups:
                drawn = np.random.default_rng(request.seed).permutation(group.n_documents)[: request.limit]
                doc_ids: list[int] = sorted(drawn.tolist())  # the same ones for every size
                measured = list(again.each(group.runs, partial(_measure, connection, again, group, doc_ids)))
                if measured:
                    audits.append(analyse(measured, group, doc_ids, request))
                    failures += [failure for each in audits[-1].runs for failure in _refused(each)]
    run_ids = tuple(each.run.run_id for audit in audits for each in audit.runs)
    return audits, Measured(run_ids, (*again.failures, *failures))


def _without_same(groups: list[Group], store: Store, processes: ProcessGroup) -> list[Group]:
    """The groups without the runs that would give the same numbers here; logs how many those are."""
    device = ", ".join(device_names([str(processes.device)]))

    def is_same(run: Run) -> bool:
        facts = store.manifest(run.run_id)
        same = all(facts["versions"].get(name) == versions()[name] for name in _DECISIVE)
        in_file = "gguf" in facts["versions"]  # what its weights are rounded to, so they are again
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


def _measure(
    connection: duckdb.DuckDBPyConnection, again: Again, group: Group, doc_ids: Sequence[int], run: Run
) -> tuple[Remeasured, str]:
    """The ranks of a run beside those of the same tokens in float32, and how far another engine may be from them.

    Raises:
        MeasureError: only one of both measurements has a token.
    """

    def choose(documents: list[Document]) -> list[Document]:
        return [documents[doc_id] for doc_id in doc_ids]

    rows, told = again.score(run, choose, measure_windows, Dtype.float32)
    exact = pa.table(rows.columns)
    parameters = {"run_id": run.run_id, "doc_ids": list(doc_ids), "ties": group.ties.value}
    pairs = ask_beside(connection, exact, "rank_pairs", **parameters)
    alone = pairs["rank"].null_count + pairs["rank_again"].null_count
    if alone:
        raise MeasureError(
            f"the tokenizer now cuts the text into other tokens than when it was measured ({alone:,} ranks have no "
            "partner), so nothing can be compared; look at the versions with `show`, and measure it anew"
        )
    if run.engine is None:
        return Remeasured(pairs), told
    # Two right implementations round independently in one precision, so both are about as far from float32.
    own = ROUNDING
    if run.dtype != Dtype.float32.value:
        rows, _ = again.score(run, choose, measure_windows, shows=False)
        own = _rounding(pa.table(rows.columns), exact)
    tolerance = again.request.tolerance
    return Remeasured(pairs, Allowance(tolerance * own.share, tolerance * own.nats)), told


def _rounding(rounded: pa.Table, exact: pa.Table) -> Allowance:
    """What a precision changes: the share of tokens of another rank, the largest move of a log-probability."""
    ranks, exact_ranks = (table["greater"].to_numpy() + table["ties"].to_numpy() for table in (rounded, exact))
    nats = abs(rounded["logprob"].to_numpy().astype("float64") - exact["logprob"].to_numpy())
    share = float((ranks != exact_ranks).mean())
    return Allowance(max(share, ROUNDING.share), max(float(nats.max()), ROUNDING.nats))


def _refused(audit: RunAudit) -> list[Failure]:
    """Why another engine is refused; empty where it is not."""
    run, moves, allowed = audit.run, audit.moves, audit.allowed
    if allowed is None or allowed.holds(moves):
        return []
    by = "" if moves.largest_move is None else f", by up to {moves.largest_move:,g}"
    error = (
        f"{run.engine} is refused: {moves.share_changed:.3%} of {moves.n_tokens:,} tokens have another rank than in "
        f"rbpx's float32 ({allowed.share:.3%} allowed){by}, and log-probabilities are off by up to "
        f"{moves.largest_logprob_move:.2g} nats ({allowed.nats:.2g} allowed); check its weights, its dtype and its "
        "options, or raise tolerance="
    )
    return [Failure(name_of(run), error, request_is_wrong=False)]
