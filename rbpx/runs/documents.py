"""Resamples the documents of a text: ranks of their tokens, bootstrap weights, and means with their replicates.

Parts of one text are resampled together. Other dependence (one author's works) is unknown to the store; a test of the
losses in source order shows it where such documents are neighbours.

Shapes: N runs, D documents, U units (documents, or texts that several were cut from), B replicates, T tokens.
"""

import math
import re
from dataclasses import replace
from typing import Any, Final, TypeVar

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtr

from rbpx.config.keys.laws import Resampled
from rbpx.laws.intervals.estimate import effective_number
from rbpx.laws.numeric import Floats
from rbpx.runs.group import Group
from rbpx.runs.units import Documents
from rbpx.store.columns import numbers
from rbpx.store.sql import ask_once
from rbpx.ties import Ties

EDGES: Final = tuple(
    sorted({*range(1, 11), *(round(10 ** (at / 8)) for at in range(45)), 30, 50, 78, 300, 500, 2500, 3000})
)
"""The k that questions ask for by default, at which `document_hits` counts."""


def distinct_ranks(rank: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """The distinct ranks, ascending, and the index of each given one among them; ranks are multiples of 1/2."""
    halves = (2 * rank).astype(np.intp)
    occurs = np.zeros(halves.max(initial=0) + 1, bool)
    occurs[halves] = True
    return np.flatnonzero(occurs) / 2, np.asarray((np.cumsum(occurs) - 1)[halves])


def rank_edges(V: int, per_decade: int) -> list[int]:
    """Lower edges of rank bins from 1 up: whole numbers evenly spaced in ln rank; the last is V + 1."""
    steps = range(int(per_decade * math.log10(V)) + 1)
    return [*sorted({round(10 ** (at / per_decade)) for at in steps}), V + 1]


def text_tokens(connection: duckdb.DuckDBPyConnection, run_id: str, ties: Ties) -> list[npt.NDArray[Any]]:
    """Document, position, id, nats and rank of each scored token; questions share one read."""
    tokens = ask_once(connection, "text_tokens", run_id=run_id, ties=ties.value)
    return [numbers(tokens[name]) for name in tokens.column_names]


def text_ranks(
    connection: duckdb.DuckDBPyConnection, run_id: str, ties: Ties
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Document and rank of each scored token, [T] each, by document and in the order of the text."""
    doc_T, position_T, _, _, rank_T = text_tokens(connection, run_id, ties)
    further_T = (doc_T[1:] == doc_T[:-1]) & (position_T[1:] > position_T[:-1])
    if not np.all(further_T | (doc_T[1:] > doc_T[:-1])):
        order = np.lexsort((position_T, doc_T))
        doc_T, rank_T = doc_T[order], rank_T[order]
    return doc_T, rank_T.astype(np.float64)


def document_ranks(connection: duckdb.DuckDBPyConnection, run_id: str, ties: Ties) -> pa.Table:
    """Rank counts for resampling: doc_id, rank, n_tokens, sum_logprob (nats), by document and rank."""
    return ask_once(connection, "document_ranks", run_id=run_id, ties=ties.value)


def document_hits(connection: duckdb.DuckDBPyConnection, run_id: str, ties: Ties) -> pa.Table:
    """As `document_ranks` with ranks rounded up to `EDGES` (infinite beyond them), in half the time.

    The log-probabilities of a document are summed in its first row.
    """
    return ask_once(connection, "document_hits", run_id=run_id, ties=ties.value, edges=[float(edge) for edge in EDGES])


_LAGS: Final = (4.0, 100.0, 2 / 9)  # number of lags c (n / m)^p for n members


def neighbours_p(value_N: Floats) -> float:
    """One-sided p-value of neighbours as alike as these, if the order were random.

    The statistic is von Neumann's ratio of the ranks r, sum (r_i+1 - r_i)^2 / sum (r_i - mean)^2, near 2 by chance, in
    normal approximation; at least 3 values, not all equal.

    Source:
        R. Bartels, The Rank Version of von Neumann's Ratio Test for Randomness, JASA 77 (1982), 40.
    """
    _, place_N, n_equal_R = np.unique(value_N, return_inverse=True, return_counts=True)
    rank_N = (np.cumsum(n_equal_R) - (n_equal_R - 1) / 2)[place_N]  # ties share their mean rank
    n, about_N = len(rank_N), rank_N - rank_N.mean()
    ratio = float((np.diff(rank_N) ** 2).sum() / (about_N @ about_N))
    variance = 4 * (n - 2) * (5 * n**2 - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    return float(ndtr((ratio - 2) / math.sqrt(variance)))


def variance_factor(value_N: Floats) -> float:
    """The variance of the sum of a series, with mean 0, relative to that of independent members; at least 1.

    Source:
        W. K. Newey and K. D. West, Econometrica 55 (1987), 703; lags as in Review of Economic Studies 61 (1994), 631.
    """
    c, m, power = _LAGS
    n_lags = min(int(c * (len(value_N) / m) ** power), len(value_N) - 1)
    lags = range(1, n_lags + 1)
    alike = sum((1 - lag / (n_lags + 1)) * float(value_N[lag:] @ value_N[:-lag]) for lag in lags)
    return max(1 + 2 * alike / float(value_N @ value_N), 1.0)


G = TypeVar("G", bound=Group)

_SIGNIFICANT: Final = 0.01  # each text is tested twice
_FEWEST: Final = 20  # minimum number of units for the test of order


def with_documents(connection: duckdb.DuckDBPyConnection, group: G, tests_order: bool) -> G:
    """Add the documents to a measured group; `tests_order` tests neighbours in the source for dependence."""
    if not group.is_measured:
        return group
    rows = ask_once(connection, "document_units", run_id=group.runs[0].run_ids[0])
    if len(rows) != group.n_documents:
        return group
    names = rows["text"].to_pylist()
    is_one_text = len(set(names)) == 1 < len(names)
    names = rows["source_id"].to_pylist() if is_one_text else names
    units = list(dict.fromkeys(names))
    number = {name: at for at, name in enumerate(units)}
    unit_D = np.array([number[name] for name in names])
    tokens_U = np.bincount(unit_D, numbers(rows["n_scored"]))
    documents = Documents(unit_D, int(np.count_nonzero(tokens_U)), effective_number(tokens_U), is_one_text=is_one_text)
    if tests_order and documents.n >= _FEWEST:
        order_U = np.array(sorted(range(len(units)), key=lambda at: _natural(units[at])))
        series = _losses(connection, group, unit_D)[:, order_U[tokens_U[order_U] > 0]]
        alike = [each_U for each_U in series if np.ptp(each_U) > 0 and neighbours_p(each_U) < _SIGNIFICANT]
        documents = replace(documents, dependence=max(map(variance_factor, alike), default=1.0))
    return replace(group, documents=documents)


def _natural(name: str) -> list[Any]:
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"(\d+)", name))]


def _losses(connection: duckdb.DuckDBPyConnection, group: Group, unit_D: npt.NDArray[np.int64]) -> Floats:
    """The effect of each unit on ln of the loss: on the mean of the first and last run, and on their difference."""
    moved = []
    for run in (group.runs[0], group.runs[-1]):
        counts = document_hits(connection, run.run_id, group.ties)
        unit = unit_D[numbers(counts["doc_id"])]
        n_U, nats_U = (
            np.bincount(unit, numbers(counts[name]), int(unit_D.max()) + 1) for name in ("n_tokens", "sum_logprob")
        )
        moved.append(nats_U / nats_U.sum() - n_U / n_U.sum())
    return np.array([moved[0] + moved[1], moved[1] - moved[0]])


def means(group: Group, request: Resampled, counted: pa.Table, total: str, n: str) -> tuple[Floats, Floats]:
    """The ratio of two sums over the documents of each run: the mean [N], and [B, N] under each replicate.

    Documents without a token have no row in `counted`, and are drawn too; NaN where none of those drawn has a token.
    """
    weights_BD = group.weights(request)
    sums = np.zeros((2, weights_BD.shape[1], len(group.runs)))
    for at, run in enumerate(group.runs):
        of_run = counted.filter(pc.equal(counted["run_id"], run.run_id))
        doc_id = numbers(of_run["doc_id"])
        for which, column in enumerate((total, n)):
            sums[which, doc_id, at] = numbers(of_run[column])
    above_DN, below_DN = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        return above_DN.sum(axis=0) / below_DN.sum(axis=0), (weights_BD @ above_DN) / (weights_BD @ below_DN)
