"""Reads the tokens that all runs of a group scored: their losses and ranks at each, in bytes that their number bounds.

Shapes: M tokens, T runs in order, D documents, B resamples, X whatever columns are summed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rbpx.laws.numeric import Floats
from rbpx.runs.group import Group, Run
from rbpx.store.sql import ask

Ints = NDArray[np.int64]
_BITS: Final = (20, 21)  # of a position, of a token id; 22 are left for documents


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of a text that every run scored.

    Attributes:
        x_T: ln of the place of each run on the axis, ascending.
        doc_M: the document of each, ascending.
        position_M: where it stands there.
        token_id_M: in the tokenizer of the runs.
        byte_M: where its first byte is in the document; -1 where not known.
        nats_MT: -logprob under each run.
        rank_MT: its rank.
        n_documents: that were drawn.
        n_left_out: tokens of the last run that another one did not score.
    """

    x_T: Floats
    doc_M: Ints
    position_M: Ints
    token_id_M: Ints
    byte_M: Ints
    nats_MT: NDArray[np.float32]
    rank_MT: NDArray[np.float32]
    n_documents: int
    n_left_out: int

    def by_document(self, values_MX: NDArray[np.floating]) -> Floats:
        """Sums over the tokens of each document, [D, X]."""
        begins = np.flatnonzero(np.diff(self.doc_M, prepend=-1))
        sums_DX = np.zeros((self.n_documents, values_MX.shape[1]))
        if len(begins):
            sums_DX[self.doc_M[begins]] = np.add.reduceat(values_MX, begins, axis=0, dtype=np.float64)
        return sums_DX

    def counts(self) -> Floats:
        """Tokens of each document, [D]."""
        return np.bincount(self.doc_M, minlength=self.n_documents).astype(np.float64)

    def without_losses(self) -> "Tokens":
        """The same tokens without what takes the memory of one number a run."""
        return replace(self, nats_MT=self.nats_MT[:, :0], rank_MT=self.rank_MT[:, :0])


def points_of(group: Group) -> list[Run]:
    """One run for each place on the axis, in order: of replicates the first."""
    once: dict[float, Run] = {}
    for run in group.runs:
        if run.x is not None:
            once.setdefault(float(run.x), run)
    return [once[x] for x in sorted(once)]


def tokens_of(connection: duckdb.DuckDBPyConnection, group: Group, runs: Sequence[Run]) -> Tokens:
    """The tokens that all runs scored, the same ids at the same places of the text."""
    tables = [ask(connection, "learning_tokens", run_id=run.run_id, ties=group.ties.value) for run in runs]
    keys = [_keys(table) for table in tables]
    kept = keys[0]
    for of_run in keys[1:]:
        kept = np.intersect1d(kept, of_run, assume_unique=True)
    nats_MT, rank_MT = (np.empty((len(kept), len(runs)), np.float32) for _ in range(2))
    for at, (table, of_run) in enumerate(zip(tables, keys, strict=True)):
        chosen = np.searchsorted(of_run, kept)
        nats_MT[:, at], rank_MT[:, at] = (table[name].to_numpy()[chosen] for name in ("nats", "rank"))
    known_M, last = np.isfinite(nats_MT).all(axis=1), tables[-1]
    chosen = np.searchsorted(keys[-1], kept[known_M])
    doc, position, token_id = (last[name].to_numpy()[chosen] for name in ("doc_id", "position", "token_id"))
    byte = last["first_byte"].combine_chunks().fill_null(-1).to_numpy()[chosen]
    x_T = np.log([float(run.x or 0.0) for run in runs])
    nats_MT = np.maximum(nats_MT[known_M], 0)  # a probability of 1 may be rounded to a little more
    n_left_out = len(keys[-1]) - len(chosen)
    return Tokens(x_T, doc, position, token_id, byte, nats_MT, rank_MT[known_M], group.n_documents, n_left_out)


def _keys(table: pa.Table) -> Ints:
    """A number for each token by document, position and id, ascending in the order of the text."""
    doc, position, token_id = (table[name].to_numpy() for name in ("doc_id", "position", "token_id"))
    return np.asarray((doc << _BITS[0] | position) << _BITS[1] | token_id)
