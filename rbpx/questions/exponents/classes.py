"""Computes exponents of the tokens whose ids improve with size, and of all others."""

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.power.law import fit_power_law
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import size_points, weigh
from rbpx.runs.token_slopes import improving
from rbpx.runs.tokens import document_of, scored, token_id_of, tokens_of
from rbpx.store.store import Record

LOSSES = ("rbp", "cross_entropy")


def of_classes(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Iterator[Record]:
    """Yields a row for the tokens whose ids `learning` finds to improve and one for all others, if both exist.

    `share` is their share of all tokens; `difference` the exponent of their -ln RBP_1 minus that of their
    cross-entropy, with an interval over documents and models.
    """
    tokens = tokens_of(connection, group, group.runs, request)
    named, n_ids = improving(tokens) if len(tokens.key_M) else ([], 0)
    if not named or len(named) == n_ids:
        return
    of_runs = [scored(connection, group, run) for run in group.runs]
    is_named = [np.isin(token_id_of(of_run["key"]), named) for of_run in of_runs]
    weights_BD = group.weights(request)
    for name, wanted in (("improving", True), ("others", False)):
        own = [of_named == wanted for of_named in is_named]
        evidence = [
            weigh(_counts(of_run, of_class), weights_BD, [1], run.vocab_size or 0, LOSSES)
            for of_run, of_class, run in zip(of_runs, own, group.runs, strict=True)
        ]
        hits, loss = size_points(group, evidence, request, [1], LOSSES)
        ratio, share = hits.over(loss), float(own[0].mean())
        fit = fit_power_law(ratio.S_N, ratio.y_N, ratio.replicates, backtests=False)
        of_loss = fit_power_law(loss.S_N, loss.y_N, backtests=False).alpha.value
        yield {"tokens": name, "share": share, "alpha_cross_entropy": of_loss, **by_name(difference=fit.alpha)}


def _counts(of_run: dict[str, NDArray[Any]], is_M: NDArray[np.bool_]) -> pa.Table:
    """Tokens of a class in the format of `weigh`, one a row."""
    key, nats, rank = (of_run[name][is_M] for name in ("key", "nats", "rank"))
    ones = np.ones(len(key), np.int64)
    return pa.table(
        {"doc_id": document_of(key), "rank": rank, "n_tokens": ones, "sum_logprob": -nats.astype(np.float64)}
    )
