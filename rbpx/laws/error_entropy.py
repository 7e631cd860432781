"""Decomposition of cross-entropy by rank: tokens and log-probabilities per rank in, three terms that add up to it out.

Source: What Scales in Cross-Entropy Scaling Law? (arXiv 2510.04067). Shapes: E is the number of ranks, ... any
leading axes (resamples).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.arrays import Floats

EQUATION: Final = "CE = H(P) + KL(P || Q) - ln(sum_e S_e)"
SOURCE: Final = "arXiv 2510.04067"


@dataclass(frozen=True)
class Terms:
    """The terms of the decomposition, in nats; arrays over the leading axes (0-dimensional when there are none).

    error_entropy + self_alignment + confidence = cross_entropy_nats, exact to rounding.
    """

    error_entropy: Floats
    self_alignment: Floats
    confidence: Floats
    cross_entropy_nats: Floats


def decompose(n_tokens: ArrayLike, sum_logprob: ArrayLike) -> Terms:
    """Error-entropy, self-alignment and confidence of a distribution of ranks.

    P(e) = n_e / n, S_e = exp(sum_logprob_e / n_e) (geometric mean of the scores of the tokens of rank e),
    Q(e) = S_e / sum S, sums over the ranks that occur: H(P) = -sum P ln P, KL = sum P ln(P/Q), confidence =
    -ln(sum S). Each term is computed from its own definition; none is the remainder of the others.

    Args:
        n_tokens: number of tokens of each rank, shape [..., E]; ranks with 0 tokens are left out of the sums exactly.
        sum_logprob: sum of the log-probabilities of those tokens, nats, shape [..., E].

    Returns:
        Terms with arrays of shape [...].

    Raises:
        ValueError: if shapes differ, a row has no tokens, a count is negative or a number is not finite.

    Source:
        arXiv 2510.04067; its ranks are strict, so use the optimistic rule to compare.
    """
    n_E = rank_counts(n_tokens)
    sum_logprob_E = np.asarray(sum_logprob, dtype=np.float64)
    if n_E.shape != sum_logprob_E.shape:
        raise ValueError(f"n_tokens has shape {n_E.shape}, sum_logprob {sum_logprob_E.shape}")
    if not np.all(np.isfinite(sum_logprob_E)):
        raise ValueError("sum_logprob must be finite")
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


def rank_counts(n_tokens: ArrayLike) -> Floats:
    """Counts of ranks as float64, ranks along the last axis.

    Raises:
        ValueError: if a count is negative or not finite, or a row has no tokens.
    """
    n_E = np.asarray(n_tokens, dtype=np.float64)
    if n_E.ndim < 1 or not np.all(np.isfinite(n_E)) or np.any(n_E < 0):
        raise ValueError("n_tokens must be finite counts >= 0 with ranks along the last axis")
    if np.any(n_E.sum(axis=-1) <= 0):
        raise ValueError("every row of n_tokens needs at least one token")
    return n_E
