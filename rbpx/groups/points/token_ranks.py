"""The ranks of the tokens of a run: those that occur, in the order of its text, and how often in each document.

Counts by document come in one order, so that sums over them are the same to the bit.

A bin of ranks, and its columns in tables.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.display.view import Column, magnitude, whole
from rbpx.store.sql.queries import ask
from rbpx.ties import Ties

_MOST_BYTES: Final = 256 * 2**20  # of counts that are kept

_Kept = OrderedDict[tuple[str, Ties], tuple[pa.Table, int]]  # and its bytes
_KEPT: ContextVar[_Kept | None] = ContextVar("kept document ranks", default=None)


def distinct_ranks(rank: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """The ranks that occur, ascending, and where each of some ranks is among them; they are multiples of 1/2."""
    halves = (2 * rank).astype(np.intp)
    occurs = np.zeros(halves.max(initial=0) + 1, bool)
    occurs[halves] = True
    return np.flatnonzero(occurs) / 2, np.asarray((np.cumsum(occurs) - 1)[halves])


def rank_edges(V: int, per_decade: int) -> list[int]:
    """Where bins of ranks begin, from 1 up: evenly spaced in ln rank, whole numbers; the last is V + 1."""
    steps = range(int(per_decade * math.log10(V)) + 1)
    return [*sorted({round(10 ** (at / per_decade)) for at in steps}), V + 1]


def text_ranks(
    connection: duckdb.DuckDBPyConnection, run_id: str, ties: Ties
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Document and rank of each scored token, documents one after another, tokens in the order of the text, [T] each.

    Measured runs were written in that order and mostly come in it, which takes less time to see than to sort.
    """
    tokens = ask(connection, "text_ranks", run_id=run_id, ties=ties.value)
    doc_T, position_T, rank_T = (tokens[name].to_numpy() for name in ("doc_id", "position", "rank"))
    further_T = (doc_T[1:] == doc_T[:-1]) & (position_T[1:] > position_T[:-1])
    if not np.all(further_T | (doc_T[1:] > doc_T[:-1])):
        order = np.lexsort((position_T, doc_T))
        doc_T, rank_T = doc_T[order], rank_T[order]
    return doc_T, rank_T


@contextmanager
def document_ranks_kept() -> Iterator[None]:
    """Count each run once for all that asks within the context, as long as the counts fit into 256 MiB.

    All that asks has to ask one store; a context within another shares the counts of the outer one.
    """
    if _KEPT.get() is not None:
        yield
        return
    token = _KEPT.set(OrderedDict())
    try:
        yield
    finally:
        _KEPT.reset(token)


def document_ranks(connection: duckdb.DuckDBPyConnection, run_id: str, ties: Ties) -> pa.Table:
    """What documents are resampled from: doc_id, rank, n_tokens, sum_logprob (nats), by document and rank."""
    kept, key = _KEPT.get(), (run_id, ties)
    if kept is not None and key in kept:
        kept.move_to_end(key)
        return kept[key][0]
    counts = ask(connection, "document_ranks", run_id=run_id, ties=ties.value)
    if kept is not None:
        kept[key] = counts, counts.nbytes
        while sum(n_bytes for _, n_bytes in kept.values()) > _MOST_BYTES:
            kept.popitem(last=False)
    return counts


@dataclass(frozen=True)
class RankBin:
    """Tokens with a rank from the first to the last of a bin."""

    first_rank: int
    last_rank: int
    n_tokens: int

    @property
    def rank(self) -> float:
        """The geometric mean of the first and the last."""
        return float((self.first_rank * self.last_rank) ** 0.5)


BINS: Final[tuple[Column[RankBin], ...]] = (
    whole("ranks from", "first_rank", lambda found: found.first_rank),
    whole("to", "last_rank", lambda found: found.last_rank),
    magnitude("middle", "rank", lambda found: found.rank, "geometric mean of the ranks"),
    whole("tokens", "n_tokens", lambda found: found.n_tokens),
)
"""The columns of a table of bins, which has more of its own."""
