"""Learns the chance that a token is a hit from outcomes of whole sequences, by logistic regression on token features.

eta = P(hit | features) = 1 / (1 + exp(-x theta)). A sequence passes if all its tokens are hits, so that P(hit | pass) =
1 and P(hit | fail) = (eta - prod eta) / (1 - prod eta). With these as label weights the risk of any loss is unbiased,
and the model that is best under its own weights is the maximum likelihood of the outcomes.

Source: Wei et al., arXiv 2306.11343; Zhang et al., arXiv 2004.06316; the AUC of clustered data: Obuchowski, Biometrics
53 (1997), 567.

Shapes: Q sequences, N tokens of each, F features; q, the sequences of one block; T tokens, D documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rbpx.laws.intervals.estimate import NO_ESTIMATE, Estimate, effective_number, from_influence
from rbpx.laws.numeric import Floats
from rbpx.laws.solver import LocalQuadratic, Sets, StoppingRule, diagonal, minimise
from rbpx.status import Status

_ROUNDING: Final = 1e-15  # of the ln-likelihood
_END: Final = StoppingRule(step=1e-11, gain=_ROUNDING)
_WORST_CONDITION: Final = 1e14
_TOKENS: Final = 8192  # of a block, whose terms stay in the cache of a core


@dataclass(frozen=True, eq=False)
class Block:
    """Some of the sequences: the features of their tokens and their outcomes."""

    x_FNq: Floats
    passed_q: NDArray[np.bool_]


def blocks_of(x_QNF: Floats, passed_Q: NDArray[np.bool_]) -> list[Block]:
    """Cuts sequences into blocks."""
    step = max(1, _TOKENS // x_QNF.shape[1])
    parts = [slice(begin, begin + step) for begin in range(0, len(x_QNF), step)]
    return [Block(np.ascontiguousarray(x_QNF[part].transpose(2, 1, 0)), passed_Q[part]) for part in parts]


def hit_chance(z: ArrayLike) -> Floats:
    """eta, the chance of a hit, from its logit x theta."""
    return np.exp(ln_hit_chance(z))


def ln_hit_chance(z: ArrayLike) -> Floats:
    """Its logarithm, -ln(1 + exp(-z))."""
    z = np.asarray(z, dtype=np.float64)
    return np.asarray(np.minimum(z, 0.0) - np.log1p(np.exp(-np.abs(z))))  # five times as fast as np.logaddexp


def hit_given_outcome(eta_QN: ArrayLike, passed_Q: ArrayLike) -> Floats:
    """P(hit | outcome of its sequence) of each token, [Q, N], from eta in (0, 1)."""
    eta = np.asarray(eta_QN, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):  # chances of exactly 0 or 1
        ln_pass_Q = np.log(eta).sum(axis=1)
        of_failed_QN = (eta - np.exp(ln_pass_Q)[:, None]) / -np.expm1(ln_pass_Q)[:, None]
    return np.where(np.asarray(passed_Q, dtype=bool)[:, None], 1.0, of_failed_QN)


def unbiased_risk(eta_QN: ArrayLike, passed_Q: ArrayLike, loss_hit_QN: ArrayLike, loss_miss_QN: ArrayLike) -> float:
    """Estimates the mean loss of the tokens from outcomes: mean of sum_y P(y | outcome) loss(y).

    Its expectation is the mean loss under true labels if eta is the true chance.
    """
    weight_QN = hit_given_outcome(eta_QN, passed_Q)
    return float(np.mean(weight_QN * np.asarray(loss_hit_QN) + (1 - weight_QN) * np.asarray(loss_miss_QN)))


def learn(blocks: Sequence[Block], start_F: Floats | None = None) -> Floats | Status:
    """Finds theta, [F], the fixed point of the unbiased risk of log loss under the weights of its own minimiser.

    Not_positive if all pass, or all fail. Steps use Fisher's information of the outcomes. The likelihood is concave for
    N = 1 only; the search starts at equal chances, or `start_F`. One feature is constant.
    """
    F, N, _ = blocks[0].x_FNq.shape
    n_passed, n_sequences = sum(int(each.passed_q.sum()) for each in blocks), sum(len(each.passed_q) for each in blocks)
    if n_passed in (0, n_sequences):
        return Status.not_positive
    if start_F is None:
        share = (n_passed / n_sequences) ** (1 / N)
        flat_FT = [each.x_FNq.reshape(F, -1) for each in blocks]
        # A constant regressed on the features, one of which is constant too.
        gram_FF, sum_F = sum(each @ each.T for each in flat_FT), sum(each.sum(axis=1) for each in flat_FT)
        start_F = np.linalg.lstsq(gram_FF, sum_F, rcond=None)[0] * np.log(share / (1 - share))

    def objective(theta_FB: Floats, _: Sets) -> LocalQuadratic:
        value, score_F, information_FF = derivatives(blocks, theta_FB[:, 0])
        information_FFB = information_FF[..., None]
        rounding_B = np.array([_ROUNDING * abs(value)])
        return LocalQuadratic(
            np.array([-value]), -score_F[:, None], information_FFB, diagonal(information_FFB), rounding_B
        )

    found = minimise(objective, start_F[:, None], end=_END)
    theta_F = found.theta_PB[:, 0]
    if not found.converged_B[0] or not np.linalg.cond(derivatives(blocks, theta_F)[2]) < _WORST_CONDITION:
        return Status.not_converged
    return theta_F


def derivatives(blocks: Sequence[Block], theta_F: Floats) -> tuple[float, Floats, Floats]:
    """The log-likelihood of the outcomes, its score [F] and Fisher's information [F, F].

    A sequence passes with the chance exp(-L), L the sum of -ln eta over its tokens. With g the sum of x (1 - eta), the
    score is g for a pass and -g / (exp(L) - 1) for a failure, the information g g^T / (exp(L) - 1).
    """
    F = len(theta_F)
    value, score_F, information_FF = 0.0, np.zeros(F), np.zeros((F, F))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # the solver rejects steps that go too far
        for block in blocks:
            z_Nq = np.einsum("f,fnq->nq", theta_F, block.x_FNq)
            far_Nq = np.exp(-np.abs(z_Nq))
            L_q = (np.log1p(far_Nq) - np.minimum(z_Nq, 0.0)).sum(axis=0)
            odds_q = 1 / np.expm1(L_q)
            g_Fq = np.einsum("fnq,nq->fq", block.x_FNq, np.where(z_Nq > 0, far_Nq, 1.0) / (1.0 + far_Nq))
            value -= float(np.where(block.passed_q, L_q, -np.log(-np.expm1(-L_q))).sum())
            score_F += g_Fq @ np.where(block.passed_q, 1.0, -odds_q)
            information_FF += (g_Fq * odds_q) @ g_Fq.T
    return value, score_F, information_FF


ChanceScores = dict[str, Estimate]
"""Scores of predictions, with intervals over documents (none for one document).

auc: probability that a hit has a higher predicted chance than a miss; None where all tokens are hits or all misses.
log_loss_nats: mean of -ln of the chance predicted for the outcome.
excess: mean predicted chance minus the share of hits.
"""

NO_SCORES: Final = dict.fromkeys(("auc", "log_loss_nats", "excess"), NO_ESTIMATE)


def score_chances(z_T: ArrayLike, hit_T: ArrayLike, document_T: ArrayLike) -> ChanceScores:
    """Judges predicted chances 1 / (1 + exp(-z)) of a hit; documents are numbered from 0."""
    z, hit = np.asarray(z_T, dtype=np.float64), np.asarray(hit_T, dtype=bool)
    document = _document_indices(document_T)
    loss_T = -ln_hit_chance(np.where(hit, z, -z))
    auc = _auc(z, hit, document) if 0 < hit.sum() < len(hit) else NO_ESTIMATE
    excess = _mean_over_documents(hit_chance(z) - hit, document)
    return {"auc": auc, "log_loss_nats": _mean_over_documents(loss_T, document), "excess": excess}


def _document_indices(document_T: ArrayLike) -> NDArray[np.intp]:
    given = np.asarray(document_T)
    return np.asarray((np.cumsum(np.bincount(given) > 0) - 1)[given])


def _auc(z_T: Floats, hit_T: NDArray[np.bool_], document_T: NDArray[np.intp]) -> Estimate:
    n_hits, n_misses = int(hit_T.sum()), int((~hit_T).sum())
    _, group_T = np.unique(z_T, return_inverse=True)  # groups of equal chances, the smallest first; a tie counts half
    hits_G, misses_G = (np.bincount(group_T, of_T, minlength=int(group_T.max()) + 1) for of_T in (hit_T, ~hit_T))
    below_G, above_G = np.cumsum(misses_G) - misses_G / 2, n_hits - (np.cumsum(hits_G) - hits_G / 2)
    wins_T = np.where(hit_T, below_G[group_T] / n_misses, above_G[group_T] / n_hits)
    value = float(wins_T[hit_T].mean())
    return _over_documents(value, (wins_T - value) / np.where(hit_T, n_hits, n_misses), document_T)


def _mean_over_documents(values_T: Floats, document_T: NDArray[np.intp]) -> Estimate:
    value = float(values_T.mean())
    return _over_documents(value, (values_T - value) / len(values_T), document_T)


def _over_documents(value: float, influence_T: Floats, document_T: NDArray[np.intp]) -> Estimate:
    tokens_D = np.bincount(document_T)
    return from_influence(value, np.bincount(document_T, influence_T), effective_number(tokens_D))
