"""The exponents among the tokens whose ids get better with size, and among all others.

Shapes: N sizes, D documents, B resamples.
"""

import math
from collections.abc import Iterator, Sequence

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import Replicates, by_name, student_t
from rbpx.laws.numeric import Floats, neg_ln
from rbpx.laws.power.law import fit_power_law
from rbpx.runs.group import Group
from rbpx.store.sql import ask
from rbpx.store.store import Record


def of_classes(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Iterator[Record]:
    """The tokens whose ids `learning` finds to get better, and all others; none where there are not both.

    `share` is theirs of all tokens; `difference` the exponent of their -ln RBP_1 minus that of their cross-entropy,
    with an interval over documents and models.
    """
    S, run_ids = [run.non_embedding_params for run in group.runs], [run.run_id for run in group.runs]
    asked = {"run_ids": run_ids, "ln_sizes": [math.log(size) for size in S], "ties": group.ties.value}
    rows = ask(connection, "improvements", k=1, **asked).to_pylist()
    named = [row["token_id"] for row in rows if _improves(row)]
    if not named or len(named) == len(rows):
        return
    sums_23ND, weights_BD = _class_sums(connection, group, named), group.weights(request)
    total = float(sums_23ND[:, 0, 0].sum())
    for name, by_document in zip(("improving", "others"), sums_23ND, strict=True):
        n_N, hits_N, nats_N = by_document.sum(axis=2)
        ratio_BN = _ratio(*(weights_BD @ each.T for each in by_document))
        replicates = Replicates.of(ratio_BN, group.n_resampled)
        fit = fit_power_law(S, _ratio(n_N, hits_N, nats_N), replicates, backtests=False)
        loss = fit_power_law(S, nats_N / n_N, backtests=False)
        shown = {"tokens": name, "share": float(n_N[0]) / total, "alpha_cross_entropy": loss.alpha.value}
        yield shown | by_name(difference=fit.alpha)


def _ratio(n: Floats, hits: Floats, nats: Floats) -> Floats:
    """-ln RBP_1 over cross-entropy; of a resample without such a token it is not a number, which leaves it out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return neg_ln(np.clip(hits / n, 0.0, 1.0)) / (nats / n)


def _class_sums(connection: duckdb.DuckDBPyConnection, group: Group, token_ids: Sequence[int]) -> Floats:
    """Tokens, hits and nats of the tokens of some ids, then of all others, by size and document: [2, 3, N, D]."""
    sums_23ND = np.zeros((2, 3, len(group.runs), group.n_documents or 0))
    for at, run in enumerate(group.runs):
        sums = ask(connection, "class_sums", run_id=run.run_id, token_ids=list(token_ids), ties=group.ties.value)
        which, doc_id = 1 - sums["named"].to_numpy().astype(int), sums["doc_id"].to_numpy()
        for row, name in enumerate(("n_tokens", "n_hits", "nats")):
            sums_23ND[which, row, at, doc_id] = sums[name].to_numpy()
    return sums_23ND


def _improves(row: Record) -> bool:
    """Whether the interval over documents of the slope of a token id lies below 0, as in `learning`."""
    stderr = row["slope_stderr"]
    return stderr is not None and row["slope"] + student_t(row["n_documents"] - 1) * stderr < 0
