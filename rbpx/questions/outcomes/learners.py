"""Learns which tokens are hits from the outcomes of their sequences alone, and judges what was learned.

Of the largest model of a group only outcomes are used; the next smaller one, measured on the same tokens, supplies the
features. Learners see some documents and are judged on the others (cross-fitting).

Source: arXiv 2306.11343, for the learner.

Shapes: T tokens, Q sequences, N tokens of each, F features, D documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.laws.counts.chances import Block, blocks_of, hit_chance, judge, learn, ln_hit_chance, unbiased_risk
from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate
from rbpx.laws.numeric import Floats
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import side_by_side
from rbpx.status import Status
from rbpx.store.sql import ask

FOLDS: Final = 5
FEATURES: Final = (
    "ln_position", "ln_frequency", "smaller_neg_logprob", "smaller_ln_rank", "smaller_neg_logprob_before"
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Learner:
    """One way to learn, judged on documents that it did not see; its attributes are the columns of its row.

    Attributes:
        learner: "outcomes" (the fixed point of the unbiased risk), "naive" (each token has the outcome of its
            sequence), "constant" (one chance for all, from the share of passes) or "tokens" (the true hits, the
            ceiling).
        k: a hit is a rank of at most k.
        n: tokens of a sequence; None for "tokens".
        rbp: the share of hits of the tokens that are judged.
        n_tokens: how many these are.
        status: the status of the first fold that has no model; ok if all have one.
        auc: as `rbpx.laws.counts.chances.judge` finds it, unknown unless the status is ok; so are the next two.
        log_loss_nats: against the true hits.
        excess: mean chance minus the share of hits.
        told_nats: its log loss, estimated from the outcomes of the unseen documents; None where it was not estimated.
        coefficients: mean over the folds, per standard deviation of each feature; None without a model.
    """

    learner: str
    k: int
    n: int | None
    rbp: float
    n_tokens: int
    status: Status
    auc: Estimate = NO_ESTIMATE
    log_loss_nats: Estimate = NO_ESTIMATE
    excess: Estimate = NO_ESTIMATE
    told_nats: float | None = None
    coefficients: dict[str, float] | None = None


@dataclass(frozen=True, eq=False)
class _Tokens:
    """Tokens in the order of the text.

    Attributes:
        rank_T: their ranks.
        x_TF: features, the first one constant.
        names: names of the features.
        document_T: the document of each token.
        fold_T: the fold of each token, documents whole; what is learned from the other folds judges it.
    """

    rank_T: Floats
    x_TF: Floats
    names: tuple[str, ...]
    document_T: npt.NDArray[np.int64]
    fold_T: npt.NDArray[np.intp]


def sequences(document_T: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    """Where each sequence of n tokens begins: documents are cut from their first token on, their ends dropped, [Q]."""
    begin_d = np.flatnonzero(np.diff(document_T, prepend=-1))
    n_d = np.diff(begin_d, append=len(document_T)) // n
    nth_Q = np.arange(n_d.sum()) - np.repeat(np.cumsum(n_d) - n_d, n_d)
    return np.asarray(np.repeat(begin_d, n_d) + n * nth_Q)


def learners(
    connection: duckdb.DuckDBPyConnection, group: Group, k_grid: Sequence[int], lengths: Sequence[int], seed: int
) -> tuple[Learner, ...]:
    """Learn and judge at each k and from sequences of each length, in a measured group."""
    smaller, run = group.runs[-2:]
    parameters: dict[str, Any] = {"run_id": run.run_id, "smaller_run_id": smaller.run_id, "ties": group.ties.value}
    table = ask(connection, "token_features", **parameters)
    if not table.num_rows:  # no document has a token with all features
        return ()
    x_TF = np.column_stack([table[name].to_numpy() for name in FEATURES])
    spread_F = x_TF.std(axis=0)
    # A feature that does not vary would repeat the constant.
    kept_F = spread_F > 1e-9 * np.abs(x_TF).max(axis=0)
    x_TF = (x_TF[:, kept_F] - x_TF[:, kept_F].mean(axis=0)) / spread_F[kept_F]
    names = ("constant", *(name for name, kept in zip(FEATURES, kept_F, strict=True) if kept))
    document_T = table["doc_id"].to_numpy()
    fold_D = np.random.default_rng(seed).permutation(group.n_documents) % FOLDS
    _, fold_T = np.unique(fold_D[document_T], return_inverse=True)  # those with tokens
    x_TF = np.column_stack([np.ones(len(x_TF)), x_TF])
    tokens = _Tokens(table["rank"].to_numpy(), x_TF, names, document_T, fold_T)
    with side_by_side() as pool:
        found = pool.map(lambda of: _learners(tokens, *of), product(k_grid, (*lengths, None)))
    return tuple(chain.from_iterable(found))


def _learners(tokens: _Tokens, k: int, n: int | None) -> list[Learner]:
    """The three learners that see the outcomes of sequences of n tokens, or (None) the one that sees the hits."""
    hit_T = tokens.rank_T <= k
    kind = "tokens" if n is None else "outcomes"
    about = Learner(kind, k, n, float(hit_T.mean()), len(hit_T), Status.too_short)
    at_QN = sequences(tokens.document_T, n or 1)[:, None] + np.arange(n or 1)
    if not len(at_QN):
        return [about]
    passed_Q = np.asarray(hit_T[at_QN].all(axis=1))
    of_folds = [np.flatnonzero(tokens.fold_T[at_QN[:, 0]] == fold) for fold in range(int(tokens.fold_T.max()) + 1)]
    folds = [blocks_of(tokens.x_TF[at_QN[of_fold]], passed_Q[of_fold]) for of_fold in of_folds]
    found = [_learn(about, tokens, hit_T, folds)]
    if n is None:
        return [found[0][0]]
    for name, of in (("naive", Block.of_tokens), ("constant", Block.of_constant)):
        of_outcomes = [[of(block) for block in blocks] for blocks in folds]
        found.append(_learn(replace(about, learner=name), tokens, hit_T, of_outcomes))
    if found[0][0].status is not Status.ok:
        return [each for each, _ in found]
    eta_QN = hit_chance(found[0][1][at_QN])

    def told(z_QN: Floats) -> float:
        return unbiased_risk(eta_QN, passed_Q, -ln_hit_chance(z_QN), -ln_hit_chance(-z_QN))

    return [replace(each, told_nats=told(z_T[at_QN])) if each.status is Status.ok else each for each, z_T in found]


def _learn(
    about: Learner, tokens: _Tokens, hit_T: npt.NDArray[np.bool_], folds: Sequence[Sequence[Block]]
) -> tuple[Learner, Floats]:
    """A learner, and the logit of each token by what was learned from the other folds; NaN without a model."""
    z_T = np.full(len(hit_T), np.nan)
    thetas: list[Floats] = []
    for fold in range(len(folds)):
        seen = [block for other, blocks in enumerate(folds) if other != fold for block in blocks]
        if not seen:  # no document is left to learn from
            return replace(about, status=Status.one_document), z_T
        learned = learn(seen, thetas[-1] if thetas else None)  # from where the fold before ended
        if learned.status is not Status.ok:
            return replace(about, status=learned.status), z_T
        thetas.append(learned.theta_F)
        unseen = tokens.fold_T == fold
        z_T[unseen] = tokens.x_TF[unseen][:, : len(learned.theta_F)] @ learned.theta_F
    coefficients = dict(zip(tokens.names, np.mean(thetas, axis=0).tolist(), strict=False))
    judged: dict[str, Any] = judge(z_T, hit_T, tokens.document_T)
    return replace(about, status=Status.ok, coefficients=coefficients, **judged), z_T
