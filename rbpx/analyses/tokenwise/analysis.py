"""Which tokens are hits, learned from outcomes alone (verb tokenwise): learners and their evaluation, from two runs.

Of the largest model of a group only outcomes are used; the next smaller one, measured on the same tokens, supplies the
features. Learners see some documents and are judged on the others (cross-fitting).
Shapes: T tokens, Q sequences, N tokens of each, F features.

Source: arXiv 2306.11343, for the learner.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt

from rbpx.analyses.tokenwise.judgement import Judgement, judge
from rbpx.analyses.tokenwise.law import Learned, hit_chance, learn, unbiased_risk
from rbpx.config.request import Request
from rbpx.groups.points import side_by_side
from rbpx.groups.selection import Group, Run
from rbpx.status import Status
from rbpx.store.queries import ask
from rbpx.store.store import Record, Store

Floats = npt.NDArray[np.float64]

DEFAULT_K: Final = (1, 10)
DEFAULT_N: Final = (5, 10, 20)
FOLDS: Final = 5
FEATURES: Final = (
    "ln_position", "ln_frequency", "smaller_neg_logprob", "smaller_ln_rank", "smaller_neg_logprob_before"
)  # fmt: skip
LEARNERS: Final = ("outcomes", "naive", "constant", "tokens")


@dataclass(frozen=True, eq=False)
class Learner:
    """One way to learn, judged on documents that it did not see.

    Attributes:
        name: "outcomes" (the fixed point of the unbiased risk), "naive" (each token has the outcome of its sequence),
            "constant" (one chance for all, from the share of passes) or "tokens" (the true hits, the ceiling).
        n: tokens of a sequence; None for "tokens".
        judgement: against the true hits; None unless the status is ok.
        told_nats: its log loss estimated from the outcomes of the unseen documents; None where it was not estimated.
        coefficients: mean over the folds, per standard deviation of each feature; None where there are none.
        status: of the first fold that has no model; ok if all have one.
    """

    name: str
    n: int | None
    judgement: Judgement | None
    told_nats: float | None
    coefficients: dict[str, float] | None
    status: Status


@dataclass(frozen=True, eq=False)
class Tokenwise:
    """The learners at one k, and the values they are compared with."""

    k: int
    n_tokens: int
    rbp: float
    learners: tuple[Learner, ...]


@dataclass(frozen=True, eq=False)
class TokenwiseResult:
    """The learners of one group at every requested k; `smaller` is the run that supplies the features."""

    group: Group
    run: Run
    smaller: Run
    by_k: tuple[Tokenwise, ...]


@dataclass(frozen=True, eq=False)
class _Tokens:
    """Tokens in the order of the text."""

    x_TF: Floats
    hit_T: npt.NDArray[np.bool_]
    document_T: npt.NDArray[np.int64]

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
    run, smaller = group.runs[-1], group.runs[-2]
    k_grid = request.k_grid(min(run.vocab_size or 0, smaller.vocab_size or 0), DEFAULT_K)
    lengths = request.n_listed(DEFAULT_N)
    by_k = tuple(_tokenwise(connection, group, k, lengths, request.seed) for k in k_grid)
    return TokenwiseResult(group, run, smaller, by_k)


def _tokenwise(
    connection: duckdb.DuckDBPyConnection, group: Group, k: int, lengths: Sequence[int], seed: int
) -> Tokenwise:
    run_id, smaller_run_id = group.runs[-1].run_id, group.runs[-2].run_id
    parameters: dict[str, Any] = {"run_id": run_id, "smaller_run_id": smaller_run_id, "k": k, "ties": group.ties.value}
    table = ask(connection, "token_features", **parameters)
    x_TF = np.column_stack([table[name].to_numpy() for name in FEATURES])
    spread_F = x_TF.std(axis=0)
    # A feature that does not vary is the constant that is there already.
    kept_F = spread_F > 1e-9 * np.abs(x_TF).max(axis=0)
    x_TF = (x_TF[:, kept_F] - x_TF[:, kept_F].mean(axis=0)) / spread_F[kept_F]
    names = ("constant", *(name for name, kept in zip(FEATURES, kept_F, strict=True) if kept))
    x_TF = np.column_stack([np.ones(len(x_TF)), x_TF])
    tokens = _Tokens(x_TF, table["hit"].to_numpy(zero_copy_only=False), table["doc_id"].to_numpy())
    fold_T = (np.random.default_rng(seed).permutation(group.n_documents) % FOLDS)[tokens.document_T]
    with side_by_side() as pool:
        ceiling = pool.submit(_ceiling, tokens, fold_T, names)
        by_length = pool.map(lambda n: list(_learners(tokens, fold_T, n, names)), lengths)
        learners = [each for of_length in by_length for each in of_length]
        return Tokenwise(k, len(x_TF), float(tokens.hit_T.mean()), (*learners, ceiling.result()))


def _ceiling(tokens: _Tokens, fold_T: Any, names: Sequence[str]) -> Learner:
    z_T, status = np.full(len(fold_T), np.nan), Status.ok
    thetas: list[Floats] = []
    for seen_T, unseen_T in _folds(fold_T):
        learned = _learn(tokens.x_TF[seen_T, None], tokens.hit_T[seen_T], thetas)
        status = learned.status
        if status is not Status.ok:
            break
        thetas.append(learned.theta_F)
        z_T[unseen_T] = tokens.x_TF[unseen_T] @ learned.theta_F
    return _judged("tokens", None, status, z_T, tokens, None, thetas, names)


def _learners(tokens: _Tokens, fold_T: Any, n: int, names: Sequence[str]) -> Iterator[Learner]:
    """The three that see outcomes only."""
    at_QN = tokens.sequences(n)
    if not len(at_QN):
        yield Learner("outcomes", n, None, None, None, Status.too_short)
        return
    passed_Q = np.asarray(tokens.hit_T[at_QN].all(axis=1))
    z_3T = np.full((3, len(fold_T)), np.nan)
    statuses = [Status.ok] * len(z_3T)
    thetas: list[list[Floats]] = [[] for _ in z_3T]
    for seen_T, unseen_T in _folds(fold_T):
        seen_Q = seen_T[at_QN[:, 0]]
        x_QNF, passed = tokens.x_TF[at_QN[seen_Q]], passed_Q[seen_Q]
        naive = (x_QNF.reshape(-1, 1, x_QNF.shape[2]), np.repeat(passed, n))
        for way, (x, labels) in enumerate(((x_QNF, passed), naive, (x_QNF[:, :, :1], passed))):
            if statuses[way] is not Status.ok:  # one fold without a model leaves tokens that cannot be judged
                continue
            learned = _learn(x, labels, thetas[way])
            statuses[way] = learned.status
            thetas[way].append(learned.theta_F)
            z_3T[way, unseen_T] = tokens.x_TF[unseen_T, : x.shape[2]] @ learned.theta_F
    for way, name in enumerate(LEARNERS[:3]):
        told_nats = None
        if statuses[0] is Status.ok and statuses[way] is Status.ok:
            z_QN = z_3T[way][at_QN]
            eta_QN = hit_chance(z_3T[0][at_QN])
            told_nats = unbiased_risk(eta_QN, passed_Q, np.logaddexp(0, -z_QN), np.logaddexp(0, z_QN))
        yield _judged(name, n, statuses[way], z_3T[way], tokens, told_nats, thetas[way], names)


def _learn(x_QNF: Floats, passed_Q: npt.NDArray[np.bool_], before: Sequence[Floats]) -> Learned:
    """As `learn`, from where the fold before ended; where no document is left to learn from, there is nothing."""
    if not len(passed_Q):
        return Learned(np.full(x_QNF.shape[2], np.nan), 0, Status.one_document)
    return learn(x_QNF, passed_Q, before[-1] if len(before) else None)


def _folds(fold_T: Any) -> Iterator[tuple[Any, Any]]:
    """Tokens to learn from and tokens to be judged on, documents whole."""
    for fold in np.unique(fold_T):
        yield fold_T != fold, fold_T == fold


def _judged(
    name: str, n: int | None, status: Status, z_T: Floats, tokens: _Tokens, told_nats: float | None,
    thetas: Sequence[Floats], names: Sequence[str],
) -> Learner:  # fmt: skip
    if status is not Status.ok:
        return Learner(name, n, None, None, None, status)
    theta_F = np.mean(thetas, axis=0)
    coefficients = dict(zip(names, theta_F.tolist(), strict=False))
    return Learner(name, n, judge(z_T, tokens.hit_T, tokens.document_T), told_nats, coefficients, status)


def keep(store: Store, result: TokenwiseResult) -> list[Record]:
    """A row for each learner, for programs; a learner is not a law, so nothing enters `fits`."""
    rows = []
    about = result.group.names() | {"size": result.run.size, "smaller": result.smaller.size}
    for each in result.by_k:
        for learner in each.learners:
            row: Record = {**about, "k": each.k, "n": learner.n, "learner": learner.name, "status": learner.status}
            row |= {"n_tokens": each.n_tokens, "rbp": each.rbp, "run_ids": [result.run.run_id, result.smaller.run_id]}
            for name in ("auc", "log_loss_nats", "excess"):
                measure = None if learner.judgement is None else getattr(learner.judgement, name)
                ends = ("value", "lo", "hi")
                row |= {name if end == "value" else f"{name}_{end}": getattr(measure, end, None) for end in ends}
            rows.append(row | {"told_nats": learner.told_nats, "coefficients": learner.coefficients})
    return rows
