"""Learns which tokens are hits from the outcomes of their sequences alone, and judges what was learned.

Of the largest model of a group only outcomes are used; the next smaller one, measured on the same tokens, supplies the
features. Learners see some documents and are judged on the others (cross-fitting).

Source: arXiv 2306.11343, for the learner.

Shapes: T tokens, Q sequences, N tokens of each, F features, D documents.
"""

from collections.abc import Sequence
from itertools import chain, product
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.laws.counts.chances import (
    NO_SCORES,
    Block,
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
from rbpx.store.sql import ask
from rbpx.store.store import Record

FOLDS: Final = 5
FEATURES: Final = (
    "ln_position", "ln_frequency", "smaller_neg_logprob", "smaller_ln_rank", "smaller_neg_logprob_before"
)  # fmt: skip


def sequences(document_T: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    """Where each sequence of n tokens begins: documents are cut from their first token on, their ends dropped, [Q]."""
    begin_d = np.flatnonzero(np.diff(document_T, prepend=-1))
    n_d = np.diff(begin_d, append=len(document_T)) // n
    nth_Q = np.arange(n_d.sum()) - np.repeat(np.cumsum(n_d) - n_d, n_d)
    return np.asarray(np.repeat(begin_d, n_d) + n * nth_Q)


def learners(
    connection: duckdb.DuckDBPyConnection, group: Group, k_grid: Sequence[int], lengths: Sequence[int], seed: int
) -> list[Record]:
    """Learn and judge at each k and from sequences of each length, in a measured group; a row for each learner.

    learner: "outcomes" (the fixed point of the unbiased risk), "naive" (each token has the outcome of its sequence),
        "constant" (one chance for all, from the share of passes) or "tokens" (the true hits, the ceiling).
    n: tokens of a sequence; None for "tokens".
    rbp: the share of hits of the tokens that are judged; n_tokens: how many these are.
    status: the status of the first fold that has no model; ok if all have one.
    auc, log_loss_nats, excess: as `rbpx.laws.counts.chances.score_chances` finds them, unknown unless the status is ok.
    told_nats: its log loss, estimated from the outcomes of the unseen documents; None where it was not estimated.
    coefficients: mean over the folds, per standard deviation of each feature; None without a model.
    """
    smaller, run = group.runs[-2:]
    parameters: dict[str, Any] = {"run_id": run.run_id, "smaller_run_id": smaller.run_id, "ties": group.ties.value}
    table = ask(connection, "token_features", **parameters)
    if not table.num_rows:  # no document has a token with all features
        return []
    x_TF = np.column_stack([table[name].to_numpy() for name in FEATURES])
    spread_F = x_TF.std(axis=0)
    # A feature that does not vary would repeat the constant.
    kept_F = spread_F > 1e-9 * np.abs(x_TF).max(axis=0)
    names = ("constant", *(name for name, kept in zip(FEATURES, kept_F, strict=True) if kept))
    x_TF = np.column_stack([np.ones(len(x_TF)), (x_TF[:, kept_F] - x_TF[:, kept_F].mean(axis=0)) / spread_F[kept_F]])
    rank_T, document_T = table["rank"].to_numpy(), table["doc_id"].to_numpy()
    fold_D = np.random.default_rng(seed).permutation(group.n_documents) % FOLDS
    _, fold_T = np.unique(fold_D[document_T], return_inverse=True)  # those with tokens

    def learned(about: Record, hit_T: npt.NDArray[np.bool_], folds: Sequence[Sequence[Block]]) -> tuple[Record, Floats]:
        """A learner, and the logit of each token by what was learned from the other folds; NaN without a model."""
        z_T, thetas, status = np.full(len(hit_T), np.nan), list[Floats](), Status.one_document
        for fold in range(len(folds)):
            seen = [block for other, blocks in enumerate(folds) if other != fold for block in blocks]
            if not seen:  # no document is left to learn from
                return about | {"status": status}, z_T
            found = learn(seen, thetas[-1] if thetas else None)  # from where the fold before ended
            if found.status is not Status.ok:
                return about | {"status": found.status}, z_T
            thetas.append(found.theta_F)
            z_T[fold_T == fold] = x_TF[fold_T == fold][:, : len(found.theta_F)] @ found.theta_F
        coefficients = dict(zip(names, np.mean(thetas, axis=0).tolist(), strict=False))
        return about | {"status": Status.ok, "coefficients": coefficients, **score_chances(z_T, hit_T, document_T)}, z_T

    def of(k: int, n: int | None) -> list[Record]:
        """The three learners that see the outcomes of sequences of n tokens, or (None) the one that sees the hits."""
        hit_T = rank_T <= k
        about: Record = {"learner": "tokens" if n is None else "outcomes", "k": k, "n": n, "rbp": float(hit_T.mean())}
        about |= {"n_tokens": len(hit_T), "status": Status.too_short, **NO_SCORES, "told_nats": None}
        about |= {"coefficients": None}
        at_QN = sequences(document_T, n or 1)[:, None] + np.arange(n or 1)
        if not len(at_QN):
            return [about]
        passed_Q, fold_Q = np.asarray(hit_T[at_QN].all(axis=1)), fold_T[at_QN[:, 0]]
        of_folds = [at_QN[fold_Q == fold] for fold in range(int(fold_T.max()) + 1)]
        folds = [blocks_of(x_TF[at], passed_Q[fold_Q == fold]) for fold, at in enumerate(of_folds)]
        found = [learned(about, hit_T, folds)]
        for name, blocks_as in (("naive", Block.of_tokens), ("constant", Block.of_constant)) if n is not None else ():
            own = [[blocks_as(block) for block in blocks] for blocks in folds]
            found.append(learned(about | {"learner": name}, hit_T, own))
        first, z_T = found[0]
        for row, each_T in found if n is not None and first["status"] is Status.ok else ():
            if row["status"] is Status.ok:
                losses = -ln_hit_chance(each_T[at_QN]), -ln_hit_chance(-each_T[at_QN])
                row["told_nats"] = unbiased_risk(hit_chance(z_T[at_QN]), passed_Q, *losses)
        return [row for row, _ in found]

    with side_by_side() as pool:
        found = pool.map(lambda each: of(*each), product(k_grid, (*lengths, None)))
    return [flat(row) for row in chain.from_iterable(found)]
