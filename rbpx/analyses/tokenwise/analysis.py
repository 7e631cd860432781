"""Learns which tokens are hits from the outcomes of sequences alone, and judges what was learned (verb tokenwise).

Of the largest model of a group only outcomes are used; the next smaller one, measured on the same tokens, supplies the
features. Learners see some documents and are judged on the others (cross-fitting).

Source: arXiv 2306.11343, for the learner.

Shapes: T tokens, Q sequences, N tokens of each, F features, D documents.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rbpx.config.request import Request
from rbpx.groups.group import Group
from rbpx.groups.points.sizes import side_by_side
from rbpx.laws.counts.chances import (
    UNJUDGED,
    Block,
    Judgement,
    blocks_of,
    hit_chance,
    judge,
    learn,
    ln_hit_chance,
    unbiased_risk,
)
from rbpx.laws.intervals.estimate import by_name
from rbpx.laws.numeric import Floats
from rbpx.status import Status
from rbpx.store.sql import ask
from rbpx.store.store import Record, Store

DEFAULT_K: Final = (1, 10)
DEFAULT_N: Final = (5, 10, 20)
FOLDS: Final = 5
FEATURES: Final = (
    "ln_position", "ln_frequency", "smaller_neg_logprob", "smaller_ln_rank", "smaller_neg_logprob_before"
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Learner:
    """One way to learn, judged on documents that it did not see.

    Attributes:
        name: "outcomes" (the fixed point of the unbiased risk), "naive" (each token has the outcome of its sequence),
            "constant" (one chance for all, from the share of passes) or "tokens" (the true hits, the ceiling).
        n: tokens of a sequence; None for "tokens".
        status: the status of the first fold that has no model; ok if all have one.
        judgement: how good its chances are against the true hits; unjudged unless the status is ok.
        told_nats: its log loss, estimated from the outcomes of the unseen documents; None where it was not estimated.
        coefficients: mean over the folds, per standard deviation of each feature; None without a model.
    """

    name: str
    n: int | None
    status: Status
    judgement: Judgement = field(default_factory=UNJUDGED.copy)
    told_nats: float | None = None
    coefficients: dict[str, float] | None = None


@dataclass(frozen=True, eq=False)
class TokenwiseResult:
    """The learners of one group; the features of its last run come from the last but one.

    Attributes:
        group: the runs.
        n_tokens: how many tokens are judged.
        learners: each behind the k of its hits and the true share of hits.
    """

    group: Group
    n_tokens: int
    learners: tuple[tuple[int, float, Learner], ...]


@dataclass(frozen=True, eq=False)
class _Tokens:
    """Tokens in the order of the text.

    Attributes:
        x_TF: features, the first one constant.
        names: names of the features.
        document_T: the document of each token.
        fold_T: the fold of each token, documents whole; what is learned from the other folds judges it.
    """

    x_TF: Floats
    names: tuple[str, ...]
    document_T: npt.NDArray[np.int64]
    fold_T: npt.NDArray[np.intp]

    def blocks(self, at_QN: npt.NDArray[np.int64], passed_Q: npt.NDArray[np.bool_]) -> list[list[Block]]:
        """Sequences of tokens as blocks, those of each fold together."""
        folds = range(int(self.fold_T.max()) + 1)
        of_folds = [np.flatnonzero(self.fold_T[at_QN[:, 0]] == fold) for fold in folds]
        return [blocks_of(self.x_TF[at_QN[of_fold]], passed_Q[of_fold]) for of_fold in of_folds]

    def sequences(self, n: int) -> npt.NDArray[np.int64]:
        """Indices [Q, n] of the consecutive sequences of n tokens of each document."""
        starts = np.flatnonzero(np.diff(self.document_T, prepend=-1))
        nth_T = np.arange(len(self.document_T)) - np.repeat(starts, np.diff(starts, append=len(self.document_T)))
        first = np.flatnonzero(nth_T % n == 0)
        first = first[first + n <= len(nth_T)]
        first = first[self.document_T[first] == self.document_T[first + n - 1]]
        return np.asarray(first[:, None] + np.arange(n))


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> TokenwiseResult:
    """Learn and judge at each k, in a measured group."""
    smaller, run = group.runs[-2:]
    k_grid = request.k.grid(min(run.vocab_size or 0, smaller.vocab_size or 0), DEFAULT_K)
    parameters: dict[str, Any] = {"run_id": run.run_id, "smaller_run_id": smaller.run_id, "ties": group.ties.value}
    table = ask(connection, "token_features", **parameters)
    lengths = request.n.listed(DEFAULT_N)
    if not table.num_rows:  # no document has a token with all features
        too_short = [Learner("outcomes", n, Status.too_short) for n in lengths]
        return TokenwiseResult(group, 0, tuple((k, math.nan, each) for k in k_grid for each in too_short))
    tokens, rank_T = _tokens(table, group, request.seed), table["rank"].to_numpy()
    found: list[tuple[int, float, Learner]] = []
    with side_by_side() as pool:
        for k in k_grid:
            hit_T = rank_T <= k
            found += [(k, float(hit_T.mean()), each) for each in _at_one_k(pool, tokens, hit_T, lengths)]
    return TokenwiseResult(group, len(rank_T), tuple(found))


def _tokens(table: pa.Table, group: Group, seed: int) -> _Tokens:
    """Features in units of their spread, and the documents of each fold."""
    x_TF = np.column_stack([table[name].to_numpy() for name in FEATURES])
    spread_F = x_TF.std(axis=0)
    # A feature that does not vary would repeat the constant.
    kept_F = spread_F > 1e-9 * np.abs(x_TF).max(axis=0)
    x_TF = (x_TF[:, kept_F] - x_TF[:, kept_F].mean(axis=0)) / spread_F[kept_F]
    names = ("constant", *(name for name, kept in zip(FEATURES, kept_F, strict=True) if kept))
    document_T = table["doc_id"].to_numpy()
    fold_D = np.random.default_rng(seed).permutation(group.n_documents) % FOLDS
    _, fold_T = np.unique(fold_D[document_T], return_inverse=True)  # those with tokens
    return _Tokens(np.column_stack([np.ones(len(x_TF)), x_TF]), names, document_T, fold_T)


def _at_one_k(
    pool: ThreadPoolExecutor, tokens: _Tokens, hit_T: npt.NDArray[np.bool_], lengths: Sequence[int]
) -> list[Learner]:
    """All learners of one k."""
    ceiling = pool.submit(lambda: _learn("tokens", None, tokens, hit_T, tokens.blocks(tokens.sequences(1), hit_T)))
    by_length = pool.map(lambda n: _learners(tokens, hit_T, n), lengths)
    return [*(each for of_length in by_length for each in of_length), ceiling.result()[0]]


def _learners(tokens: _Tokens, hit_T: npt.NDArray[np.bool_], n: int) -> list[Learner]:
    """The three learners that see outcomes only."""
    at_QN = tokens.sequences(n)
    if not len(at_QN):
        return [Learner("outcomes", n, Status.too_short)]
    passed_Q = np.asarray(hit_T[at_QN].all(axis=1))
    folds = tokens.blocks(at_QN, passed_Q)
    outcomes, z_T = _learn("outcomes", n, tokens, hit_T, folds)
    eta_QN = hit_chance(z_T[at_QN])
    found = [(outcomes, z_T)]
    for name, of in (("naive", Block.of_tokens), ("constant", Block.of_constant)):
        found.append(_learn(name, n, tokens, hit_T, [[of(block) for block in blocks] for blocks in folds]))

    def told(z_QN: Floats) -> float:
        return unbiased_risk(eta_QN, passed_Q, -ln_hit_chance(z_QN), -ln_hit_chance(-z_QN))

    knows = outcomes.status is Status.ok
    return [
        replace(each, told_nats=told(z_T[at_QN])) if knows and each.status is Status.ok else each for each, z_T in found
    ]


def _learn(
    name: str, n: int | None, tokens: _Tokens, hit_T: npt.NDArray[np.bool_], folds: Sequence[Sequence[Block]]
) -> tuple[Learner, Floats]:
    """A learner, and the logit of each token by what was learned from the other folds; NaN without a model."""
    z_T = np.full(len(hit_T), np.nan)
    thetas: list[Floats] = []
    for fold in range(len(folds)):
        seen = [block for other, blocks in enumerate(folds) if other != fold for block in blocks]
        if not seen:  # no document is left to learn from
            return Learner(name, n, Status.one_document), z_T
        learned = learn(seen, thetas[-1] if thetas else None)  # from where the fold before ended
        if learned.status is not Status.ok:
            return Learner(name, n, learned.status), z_T
        thetas.append(learned.theta_F)
        unseen = tokens.fold_T == fold
        z_T[unseen] = tokens.x_TF[unseen][:, : len(learned.theta_F)] @ learned.theta_F
    coefficients = dict(zip(tokens.names, np.mean(thetas, axis=0).tolist(), strict=False))
    return Learner(name, n, Status.ok, judge(z_T, hit_T, tokens.document_T), None, coefficients), z_T


def keep(store: Store, result: TokenwiseResult) -> list[Record]:
    """A row for each learner, for programs; a learner is not a law, so nothing enters `fits`."""
    rows = []
    smaller, run = result.group.runs[-2:]
    about = result.group.names() | {"size": run.size, "smaller": smaller.size}
    for k, rbp, learner in result.learners:
        row: Record = {**about, "k": k, "n": learner.n, "learner": learner.name, "status": learner.status}
        row |= {"n_tokens": result.n_tokens, "rbp": rbp, "run_ids": [run.run_id, smaller.run_id]}
        row |= by_name(**learner.judgement)
        rows.append(row | {"told_nats": learner.told_nats, "coefficients": learner.coefficients})
    return rows
