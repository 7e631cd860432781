"""The exponents among the tokens whose ids get better with size, and among all others."""

from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow.compute as pc

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import by_name, student_t
from rbpx.laws.power.law import fit_power_law
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import size_points, weigh
from rbpx.store.sql import ask, ask_once
from rbpx.store.store import Record

LOSSES = ("rbp", "cross_entropy")


def of_classes(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Iterator[Record]:
    """The tokens whose ids `learning` finds to get better, and all others; none where there are not both.

    `share` is theirs of all tokens; `difference` the exponent of their -ln RBP_1 minus that of their cross-entropy,
    with an interval over documents and models.
    """
    run_ids = [run.run_id for run in group.runs]
    ln_S = np.log([run.non_embedding_params for run in group.runs]).tolist()
    asked = {"run_ids": run_ids, "ln_sizes": ln_S, "ties": group.ties.value}
    rows = ask_once(connection, "improvements", k=1, **asked).to_pylist()
    named = [row["token_id"] for row in rows if _improves(row)]
    if not named or len(named) == len(rows):
        return
    asked = {"token_ids": named, "ties": group.ties.value}
    ranks = [ask(connection, "class_ranks", run_id=run_id, **asked) for run_id in run_ids]
    total, weights_BD = pc.sum(ranks[0]["n_tokens"]).as_py(), group.weights(request)
    for name, is_named in (("improving", True), ("others", False)):
        own = [table.filter(pc.equal(table["named"], is_named)) for table in ranks]
        evidence = [
            weigh(table, weights_BD, [1], run.vocab_size or 0, LOSSES)
            for table, run in zip(own, group.runs, strict=True)
        ]
        hits, loss = size_points(group, evidence, request, [1], LOSSES)
        ratio, share = hits.over(loss), pc.sum(own[0]["n_tokens"]).as_py() / total
        fit = fit_power_law(ratio.S_N, ratio.y_N, ratio.replicates, backtests=False)
        of_loss = fit_power_law(loss.S_N, loss.y_N, backtests=False).alpha.value
        yield {"tokens": name, "share": share, "alpha_cross_entropy": of_loss, **by_name(difference=fit.alpha)}


def _improves(row: Record) -> bool:
    """Whether the interval over documents of the slope of a token id lies below 0, as in `learning`."""
    stderr = row["slope_stderr"]
    return stderr is not None and row["slope"] + student_t(row["n_documents"] - 1) * stderr < 0
