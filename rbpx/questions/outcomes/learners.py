"""Learns which tokens are hits from the outcomes of their sequences alone, and scores what was learned.

Source: arXiv 2306.11343.

Shapes: T tokens, Q sequences, N tokens of each, F features, D documents.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.laws.counts.chances import (
    NO_SCORES,
    blocks_of,
    hit_chance,
    learn,
    ln_hit_chance,
    score_chances,
    unbiased_risk,
)
from rbpx.laws.intervals.estimate import flat
from rbpx.laws.numeric import Floats
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import side_by_side
from rbpx.status import Status
from rbpx.store.columns import numbers
from rbpx.store.sql import ask
from rbpx.store.store import Record

FOLDS: Final = 5
FEATURES: Final = (
    "ln_position", "ln_frequency", "smaller_neg_logprob", "smaller_ln_rank", "smaller_neg_logprob_before"
)  # fmt: skip


def sequences(document_T: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    """Start index of each sequence of n tokens, [Q]; documents are cut from their first token, remainders dropped."""
    begin_d = np.flatnonzero(np.diff(document_T, prepend=-1))
    n_d = np.diff(begin_d, append=len(document_T)) // n
    nth_Q = np.arange(n_d.sum()) - np.repeat(np.cumsum(n_d) - n_d, n_d)
    return np.asarray(np.repeat(begin_d, n_d) + n * nth_Q)


def learners(
    connection: duckdb.DuckDBPyConnection, group: Group, k_grid: Sequence[int], lengths: Sequence[int], seed: int
) -> list[Record]:
    """Trains and scores at each k and sequence length in a measured group; returns a row for each.

    status: of the first fold without a model. auc, log_loss_nats, excess: of `score_chances`. told_nats: the log loss
    as estimated from the outcomes of unseen documents. coefficients: mean over the folds, per standard deviation of
    each feature.
    """
    smaller, run = group.runs[-2:]
    parameters: dict[str, Any] = {"run_id": run.run_id, "smaller_run_id": smaller.run_id, "ties": group.ties.value}
    table = ask(connection, "token_features", **parameters)
    if not table.num_rows:  # no document has a token with all features
        return []
    x_TF = np.column_stack([numbers(table[name]) for name in FEATURES])
    spread_F = x_TF.std(axis=0)
    # A constant feature would repeat the intercept.
    kept_F = spread_F > 1e-9 * np.abs(x_TF).max(axis=0)
    names = ("constant", *(name for name, kept in zip(FEATURES, kept_F, strict=True) if kept))
    x_TF = np.column_stack([np.ones(len(x_TF)), (x_TF[:, kept_F] - x_TF[:, kept_F].mean(axis=0)) / spread_F[kept_F]])
    rank_T, document_T = numbers(table["rank"]), numbers(table["doc_id"])
    fold_D = np.random.default_rng(seed).permutation(group.n_documents) % FOLDS
    _, fold_T = np.unique(fold_D[document_T], return_inverse=True)  # documents with tokens

    def learned(k: int, n: int) -> Record:
        hit_T = rank_T <= k
        row: Record = {"learner": "outcomes", "k": k, "n": n, "rbp": float(hit_T.mean()), "n_tokens": len(hit_T)}
        row |= {"status": Status.too_few_tokens, **NO_SCORES, "told_nats": None, "coefficients": None}
        at_QN = sequences(document_T, n)[:, None] + np.arange(n)
        if not len(at_QN):
            return row
        passed_Q, fold_Q = np.asarray(hit_T[at_QN].all(axis=1)), fold_T[at_QN[:, 0]]
        of_folds = [at_QN[fold_Q == fold] for fold in range(int(fold_T.max()) + 1)]
        folds = [blocks_of(x_TF[at], passed_Q[fold_Q == fold]) for fold, at in enumerate(of_folds)]
        z_T, thetas = np.full(len(hit_T), np.nan), list[Floats]()
        for fold in range(len(folds)):
            seen = [block for other, blocks in enumerate(folds) if other != fold for block in blocks]
            if not seen:  # no document is left to train on
                return row | {"status": Status.one_document}
            found = learn(seen, thetas[-1] if thetas else None)  # starts at the solution of the fold before
            if isinstance(found, Status):
                return row | {"status": found}
            thetas.append(found)
            z_T[fold_T == fold] = x_TF[fold_T == fold] @ found
        losses = -ln_hit_chance(z_T[at_QN]), -ln_hit_chance(-z_T[at_QN])
        row["told_nats"] = unbiased_risk(hit_chance(z_T[at_QN]), passed_Q, *losses)
        row["coefficients"] = dict(zip(names, np.mean(thetas, axis=0).tolist(), strict=True))
        return row | {"status": Status.ok, **score_chances(z_T, hit_T, document_T)}

    with side_by_side() as pool:
        found = pool.map(lambda each: learned(*each), product(k_grid, lengths))
    return [flat(row) for row in found]
