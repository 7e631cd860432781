"""Decomposes cross-entropy by rank into three terms that add up to it.

With n_e tokens of rank e and S_e = exp(L_e / n_e), a replicate needs only sum n_e, sum L_e, sum n_e ln n_e and sum S_e.
The first two are sums over documents, and so are the others for ranks of a single document. Ranks of several documents
take sparse matrix products.

Source: What Scales in Cross-Entropy Scaling Law? (arXiv 2510.04067).

Shapes: E is the number of ranks, ... any leading axes (replicates); N different pairs of document and rank, D
documents, B replicates, R ranks, b and r parts of B and R that fit in the cache of a core.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import xlogy

from rbpx.laws.numeric import Floats

EQUATION: Final = "CE = H(P) + KL(P || Q) - ln(sum_e S_e)"
SOURCE: Final = "arXiv 2510.04067"
Indices = NDArray[np.intp]
_REPLICATES, _RANKS = 256, 128  # at a time: 256 KiB


@dataclass(frozen=True)
class Terms:
    """The terms, in nats: error_entropy + self_alignment + confidence = cross_entropy_nats, exact to rounding."""

    error_entropy: Floats
    self_alignment: Floats
    confidence: Floats
    cross_entropy_nats: Floats


def decompose(n_tokens: ArrayLike, sum_logprob: ArrayLike) -> Terms:
    """Computes error-entropy, self-alignment and confidence, nats, of counts and sums of log-probabilities, [..., E].

    P(e) = n_e / n, S_e = exp(sum_logprob_e / n_e), Q(e) = S_e / sum S, over the ranks that occur: H(P) = -sum P ln P,
    KL = sum P ln(P/Q), confidence = -ln(sum S), each from its own definition. The paper's ranks are strict, so use the
    optimistic rule to compare.
    """
    n_E, sum_logprob_E = np.asarray(n_tokens, dtype=np.float64), np.asarray(sum_logprob, dtype=np.float64)
    n = n_E.sum(axis=-1, keepdims=True)
    occurs_E = n_E > 0
    ln_score_E = np.divide(sum_logprob_E, n_E, out=np.full(n_E.shape, -np.inf), where=occurs_E)
    top = ln_score_E.max(axis=-1, keepdims=True)
    ln_total = top + np.log(np.exp(ln_score_E - top).sum(axis=-1, keepdims=True))
    p_E = n_E / n
    ln_q_E = np.subtract(ln_score_E, ln_total, out=np.zeros(n_E.shape), where=occurs_E)
    ln_p_E = np.log(p_E, out=np.zeros(n_E.shape), where=occurs_E)
    return Terms(
        error_entropy=-np.sum(p_E * ln_p_E, axis=-1),
        self_alignment=np.sum(p_E * (ln_p_E - ln_q_E), axis=-1),
        confidence=-ln_total[..., 0],
        cross_entropy_nats=-np.sum(np.where(occurs_E, sum_logprob_E, 0.0), axis=-1) / n[..., 0],
    )


def replicate_terms(
    document_N: Indices, rank_N: Indices, n_tokens_N: Floats, sum_logprob_N: Floats, weights_BD: Floats
) -> Terms:
    """Computes the terms of each bootstrap replicate, [B]; NaN for a replicate without a token."""
    D = weights_BD.shape[1]
    n_B, logprob_B = (weights_BD @ np.bincount(document_N, sums_N, D) for sums_N in (n_tokens_N, sum_logprob_N))
    with np.errstate(divide="ignore", invalid="ignore"):
        n_B = np.where(n_B > 0, n_B, np.nan)
        cross_entropy_B = -logprob_B / n_B
    ln_score_N = sum_logprob_N / n_tokens_N
    top = float(ln_score_N.max())
    shared_R = np.bincount(rank_N) > 1
    shared_N = shared_R[rank_N]
    of_one = document_N[~shared_N], n_tokens_N[~shared_N]
    n_ln_n_B = weights_BD @ np.bincount(of_one[0], xlogy(of_one[1], of_one[1]), D)
    times_BD = weights_BD.astype(np.intp)
    times = np.arange(times_BD.max(initial=0) + 1.0)
    n_ln_n_B += xlogy(times, times)[times_BD] @ np.bincount(*of_one, D)
    score_B = (weights_BD > 0).astype(np.float64) @ np.bincount(of_one[0], np.exp(ln_score_N[~shared_N] - top), D)
    if shared_N.any():
        shared_B2 = _shared_ranks(
            document_N[shared_N],
            (np.cumsum(shared_R) - 1)[rank_N[shared_N]],
            n_tokens_N[shared_N],
            sum_logprob_N[shared_N] - top * n_tokens_N[shared_N],
            weights_BD,
        )
        n_ln_n_B, score_B = n_ln_n_B + shared_B2[:, 0], score_B + shared_B2[:, 1]
    with np.errstate(divide="ignore"):
        entropy_B, confidence_B = np.log(n_B) - n_ln_n_B / n_B, -(top + np.log(score_B)) + 0 * n_B
    return Terms(entropy_B, cross_entropy_B - confidence_B - entropy_B, confidence_B, cross_entropy_B)


def _shared_ranks(
    document_N: Indices, rank_N: Indices, n_tokens_N: Floats, logprob_N: Floats, weights_BD: Floats
) -> Floats:
    """Sums of n ln n and of the scores over ranks that occur in several documents, [B, 2]."""
    shape = (int(rank_N.max()) + 1, weights_BD.shape[1])
    both_RD = [csr_array((v_N, (rank_N, document_N)), shape) for v_N in (n_tokens_N, logprob_N)]
    sums_B2 = np.zeros((len(weights_BD), 2))
    for begin in range(0, len(weights_BD), _REPLICATES):
        weights_Db = np.ascontiguousarray(weights_BD[begin : begin + _REPLICATES].T)
        for first in range(0, shape[0], _RANKS):
            of_block = (np.asarray(each[first : first + _RANKS] @ weights_Db) for each in both_RD)
            sums_B2[begin : begin + _REPLICATES] += _sums(*of_block)
    return sums_B2


def _sums(n_rb: Floats, logprob_rb: Floats) -> Floats:
    """Sums of n ln n and of exp(logprob / n) over ranks that occur, [b, 2]."""
    divisor_rb = np.maximum(n_rb, 1.0)
    logprob_rb /= divisor_rb
    np.exp(logprob_rb, out=logprob_rb)
    occurs_rb = np.minimum(n_rb, 1.0)  # counts are whole
    scores_b = np.einsum("rb,rb->b", logprob_rb, occurs_rb)
    return np.column_stack([np.einsum("rb,rb->b", n_rb, np.log(divisor_rb, out=divisor_rb)), scores_b])
