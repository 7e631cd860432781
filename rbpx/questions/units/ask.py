"""Answers `units`.

No law is fitted: bits per byte are nats per token times a constant of text and tokenizer, so their law in S has the
exponent of cross-entropy. Shapes: D documents, R ranks, B replicates.
"""

import math
from functools import partial
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_array

from rbpx.display.chart.figure import spread
from rbpx.display.law_columns import estimate_in
from rbpx.display.section import interval_of
from rbpx.display.table import SIZE, interval, table_of
from rbpx.display.vocabulary import number, rough, size_name, whole
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, Recipe, by_name, estimate
from rbpx.laws.numeric import Floats
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.questions.units import UnitsKeys
from rbpx.runs.documents import document_ranks
from rbpx.runs.group import By, Group
from rbpx.runs.select.groups import select
from rbpx.store.columns import numbers
from rbpx.store.sql import ask
from rbpx.store.store import Record

PERCENTS: Final = (50, 90, 99)  # of the tokens have a rank of at most the quantile
SHARES: Final = (0.001, 0.01)  # k / V
_MOST: Final = 4  # models on a terminal
_MEDIAN: Final = "relative_rank_50"
_BLOCK_BYTES: Final = 64 * 2**20  # of replicates at a time


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: UnitsKeys) -> Result:
    """Expresses each run, with the same replicates for every size."""
    weights_BD, rows = group.weights(request), list[Record]()
    for run in group.runs:
        counts = document_ranks(connection, run.run_id, group.ties)
        covered = ask(connection, "document_bytes", run_id=run.run_id)
        bytes_D = np.full(group.n_documents, np.nan)
        bytes_D[numbers(covered["doc_id"])] = numbers(covered["n_bytes_scored"])
        of = express(counts, bytes_D, weights_BD, run.vocab_size or 0, group.n_effective)
        names = group.names() | run.names() | {"run_id": run.run_id, "vocab_size": run.vocab_size}
        rows.append({**names, **by_name(**of)})
    tokens = [row | {"n_tokens": run.n_tokens} for row, run in zip(rows, group.runs, strict=True)]
    uncounted = any(row["bits_per_byte"] is None for row in rows)
    note = "–: measured before bytes were counted by token; `store rm` such a run and measure it again."
    told = {row["size"] for row in spread(rows, _MOST)}
    note = note if uncounted else ""
    title = "Nats per token and bits per byte"
    tables = [
        BITS.of(title, tokens, group.title, note=note, brief=[row["size"] in told for row in tokens]),
        RANKS.of("Rank of the true token, rank/V, and RBP at k of a share of V", rows, group.title, brief=False),
    ]
    return Result([group], rows, tables, [_said(rows[0], rows[-1])])


def _said(first: Record, last: Record) -> str:
    unit, key = ("bits per byte", "bits_per_byte") if last["bits_per_byte"] is not None else ("nats", "nats_per_token")
    larger, smaller = size_name(last["size"]), size_name(first["size"])
    told, ranked = f"{larger} takes {interval_of(estimate_in(last, key))} {unit}", f"{last[_MEDIAN]:.2%}"
    told += "" if first is last else f", {smaller} {number(first[key], 3)}"
    more = "" if first is last else f", {smaller} within its {first[_MEDIAN]:.2%}"
    return f"{told}; {larger} has half of the true tokens within its {ranked} likeliest{more}."


def express(
    counts: pa.Table, bytes_D: Floats, weights_BD: npt.NDArray[Any], vocab_size: int, n_effective: float
) -> dict[str, Estimate]:
    """Expresses one run in units that tokenizers share.

    bits_per_byte are the nats of the scored tokens / ln 2 / the bytes of text (UTF-8) that they stand for; rank_50 a
    quantile of the rank, relative_rank_50 that / V; rbp_at_0.001_V Pr(rank <= share V), unknown below share V = 1.
    """
    D = len(bytes_D)
    doc, rank, tokens, logprob = (numbers(counts[name]) for name in ("doc_id", "rank", "n_tokens", "sum_logprob"))
    tokens_D, nats_D = _sum(doc, tokens, D), -_sum(doc, logprob, D)

    def ratio(above_D: Floats, below_D: Floats) -> Estimate:
        with np.errstate(invalid="ignore"):  # a replicate may have no tokens
            replicate_B = (weights_BD @ above_D) / (weights_BD @ below_D)
            return estimate(above_D.sum() / below_D.sum(), replicate_B, n_effective, Recipe.percentile)

    said = {
        "nats_per_token": ratio(nats_D, tokens_D),
        "bits_per_byte": ratio(nats_D / math.log(2), bytes_D),
        "tokens_per_byte": ratio(tokens_D, bytes_D),
    }
    quantiles = _rank_quantiles(doc, rank, tokens, weights_BD, n_effective)
    said |= {f"rank_{percent}": quantile for percent, quantile in quantiles.items()}
    said |= {f"relative_rank_{percent}": quantile.times(1 / vocab_size) for percent, quantile in quantiles.items()}
    for share in SHARES:
        hits_D = _sum(doc, tokens * (rank <= share * vocab_size), D)
        said[f"rbp_at_{share:g}_V"] = ratio(hits_D, tokens_D) if share * vocab_size >= 1 else NO_ESTIMATE
    return said


def _sum(doc: Any, of: Any, n_documents: int) -> Floats:
    return np.bincount(doc, of, n_documents).astype(np.float64)


def _rank_quantiles(
    doc: Any, rank: Any, tokens: Any, weights_BD: npt.NDArray[Any], n_effective: float
) -> dict[int, Estimate]:
    D = weights_BD.shape[1]
    rank_R, column = np.unique(rank, return_inverse=True)
    tokens_DR = csr_array((tokens.astype(np.float64), (doc, column)), (D, len(rank_R)))

    def quantiles(weights: npt.NDArray[Any]) -> Floats:
        """[B, percents]; NaN without tokens. Counts are integers, so sums are exact."""
        reached_BR = np.asarray((tokens_DR.T @ weights.T.astype(np.float64)).T).cumsum(axis=1)
        n_B1 = reached_BR[:, -1:]
        at = [rank_R[np.argmax(100 * reached_BR >= percent * n_B1, axis=1)] for percent in PERCENTS]
        return np.where(n_B1 > 0, np.stack(at, axis=1), np.nan)

    rows = max(1, _BLOCK_BYTES // (8 * len(rank_R)))
    blocks = [quantiles(weights_BD[begin : begin + rows]) for begin in range(0, len(weights_BD), rows)]
    (measured,), replicates = quantiles(np.ones((1, D), np.int64)), np.concatenate(blocks)
    return {
        percent: estimate(measured[at], replicates[:, at], n_effective, Recipe.percentile)
        for at, percent in enumerate(PERCENTS)
    }


_QUANTILES: Final = ["median" if percent == 50 else f"{percent} %" for percent in PERCENTS]
BITS: Final = table_of(
    "bits", SIZE, ("S", "non_embedding_params", whole), ("V", "vocab_size", whole), ("tokens", "n_tokens", whole),
    *interval("nats/token", "nats_per_token"),
    *interval("bits/byte", "bits_per_byte", number, "of the text of the scored tokens; the same under any tokenizer"),
    *interval("tok/byte", "tokens_per_byte"), ("run", "run_id"),
    first="size nats_per_token bits_per_byte tokens_per_byte, vocab_size, non_embedding_params, n_tokens, run_id, "
    "tokens_per_byte_lo",
)  # fmt: skip
_RANK, _OF_V, _AT_V = ([of.format(x) for x in at] for of, at in (
    ("rank_{}", PERCENTS), ("relative_rank_{}", PERCENTS), ("rbp_at_{:g}_V", SHARES)
))  # fmt: skip
RANKS: Final = table_of(
    "ranks", SIZE,
    *(column for key, of in zip(_RANK, _QUANTILES, strict=True) for column in interval(of, key, ",g")),
    *(column for key, of in zip(_OF_V, _QUANTILES, strict=True) for column in interval(f"{of} / V", key, rough)),
    *(column for key, k in zip(_AT_V, SHARES, strict=True) for column in interval(f"V/{1 / k:.0f}", key, ".3f")),
    first=f"size {' '.join(_OF_V + _AT_V)}, {' '.join(_RANK)}, {' '.join(f'{each}_lo' for each in _OF_V)}, "
    f"{' '.join(f'{each}_lo' for each in _RANK)}, {' '.join(f'{each}_lo' for each in _AT_V)}",
)  # fmt: skip
QUESTION = of_each(answer, select=partial(select, by=By.size))
