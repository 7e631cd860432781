"""Finds the tokens that all runs of a group scored: their losses and ranks in each run, and means over documents.

Shapes: M tokens, T runs in order, D documents, B replicates, X summed columns.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from rbpx.config.keys.laws import Resampled
from rbpx.laws.intervals.estimate import Estimate, Recipe, estimate
from rbpx.laws.numeric import Floats
from rbpx.runs.documents import text_tokens
from rbpx.runs.group import Group
from rbpx.runs.run import Run

Ints = NDArray[np.int64]
_BITS: Final = (41, 21)  # of a key: the bits for position and token id, and for token id


class Tokens(NamedTuple):
    """The tokens of a text that every run scored.

    Attributes:
        x_T: ln of the position of each run on the axis, ascending.
        key_M: document, position and token id packed into one number, ascending.
        nats_MT: -logprob under each run.
        rank_MT: one run after another in memory.
        weights_BD: how often each document is drawn in each replicate.
        n_left_out: tokens of the last run that another one did not score.
    """

    x_T: Floats
    key_M: Ints
    nats_MT: NDArray[np.float32]
    rank_MT: NDArray[np.float32]
    weights_BD: Floats
    n_effective: float
    n_left_out: int = 0

    @property
    def doc_M(self) -> Ints:
        """The document of each token, ascending."""
        return self.key_M >> _BITS[0]

    @property
    def token_id_M(self) -> Ints:
        """The token ids."""
        return self.key_M & (1 << _BITS[1]) - 1

    def means(self, values_MX: NDArray[np.floating | np.bool_]) -> tuple[Floats, Floats]:
        """Means over the tokens, [X], and of each replicate, [B, X]."""
        doc_M, D = self.doc_M, self.weights_BD.shape[1]
        return self._means(np.stack([np.bincount(doc_M, each_M, D) for each_M in values_MX.T], axis=1))

    def shares(self, cell_M: Ints, n_cells: int) -> tuple[Floats, Floats]:
        """The share of tokens in each cell, [X], and of each replicate, [B, X]."""
        n_DX = np.bincount(self.doc_M * n_cells + cell_M, minlength=self.weights_BD.shape[1] * n_cells)
        return self._means(n_DX.reshape(-1, n_cells).astype(np.float64))

    def _means(self, sums_DX: Floats) -> tuple[Floats, Floats]:
        doc_M = self.doc_M
        n_D = np.bincount(doc_M, minlength=len(sums_DX))
        with np.errstate(divide="ignore", invalid="ignore"):
            return sums_DX.sum(axis=0) / len(doc_M), (self.weights_BD @ sums_DX) / (self.weights_BD @ n_D)[:, None]

    def estimate(self, value: float, of_B: Floats, recipe: Recipe = Recipe.uncentred) -> Estimate:
        """A number with its interval over documents."""
        return estimate(float(value), of_B, self.n_effective, recipe)


def points_of(group: Group) -> list[Run]:
    """One run for each position on the axis, in order: the first of its replicates."""
    once = {float(run.x): run for run in reversed(group.runs) if run.x is not None}
    return [once[x] for x in sorted(once)]


def tokens_of(connection: duckdb.DuckDBPyConnection, group: Group, runs: Sequence[Run], request: Resampled) -> Tokens:
    """The tokens that all runs scored: same document, position and id."""
    found = [_scored(connection, group, run) for run in runs]
    last_M = found[-1][0]
    key_M = reduce(lambda kept, of: kept if np.array_equal(kept, of[0]) else np.intersect1d(kept, of[0]), found, last_M)
    nats_TM, rank_TM = zip(*(_of_keys(key_M, *of) for of in found), strict=True)
    x_T = np.log([float(run.x or 0.0) for run in runs])
    drawn = group.weights(request), group.n_effective
    return Tokens(x_T, key_M, np.stack(nats_TM, axis=1), np.stack(rank_TM).T, *drawn, len(last_M) - len(key_M))


def _scored(connection: duckdb.DuckDBPyConnection, group: Group, run: Run) -> list[NDArray[Any]]:
    doc_id, position, token_id, nats, rank = text_tokens(connection, run.run_id, group.ties)
    key = doc_id.astype(np.int64) << _BITS[0] | position.astype(np.int64) << _BITS[1] | token_id
    columns, is_known = [key, nats, rank], np.isfinite(nats)
    if not is_known.all():
        columns = [each[is_known] for each in columns]
    if np.all(columns[0][1:] > columns[0][:-1]):  # measured runs mostly come in order
        return columns
    order = np.argsort(columns[0])
    return [each[order] for each in columns]


def _of_keys(key_M: Ints, key_N: Ints, *columns: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    if np.array_equal(key_M, key_N):
        return columns
    at_M = np.searchsorted(key_N, key_M)
    return tuple(each[at_M] for each in columns)
