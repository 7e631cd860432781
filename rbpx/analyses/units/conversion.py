"""Units that families of different tokenizers share: bits per byte, and ranks relative to V, of one run.

A token is a different stretch of text in every tokenizer, and a rank is one of V: nats per token and ranks compare
models of one tokenizer only. Bits per byte and rank/V compare any. Shapes: D documents, R different ranks, B resamples.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import csr_array

from rbpx.laws.bootstrap import Recipe, estimate
from rbpx.laws.interval import Estimate

Floats = npt.NDArray[np.float64]

PERCENTS: Final = (50, 90, 99)  # of the tokens, whose rank is at most the quantile
SHARES: Final = (0.001, 0.01)  # k / V
_BLOCK_BYTES: Final = 64 * 2**20  # of resampled counts at a time


@dataclass(frozen=True)
class Units:
    """One run under one tie rule.

    Attributes:
        nats_per_token: cross-entropy of the scored tokens.
        bits_per_byte: their nats / ln 2 / the bytes of text (UTF-8) that they stand for.
        tokens_per_byte: scored tokens / the same bytes.
        rank: by percent of the tokens, the smallest rank that so many do not exceed.
        relative_rank: the same of rank / V.
        rbp: by share of V, Pr(rank <= share V); unknown where share V is below 1.
    """

    nats_per_token: Estimate
    bits_per_byte: Estimate
    tokens_per_byte: Estimate
    rank: dict[int, Estimate]
    relative_rank: dict[int, Estimate]
    rbp: dict[float, Estimate]


def express(
    counts: pa.Table, bytes_D: Floats, weights_BD: npt.NDArray[Any], vocab_size: int, n_resampled: int | None = None
) -> Units:
    """Express what one run says in units that other tokenizers share.

    Args:
        counts: doc_id, rank, n_tokens, sum_logprob (`document_ranks`).
        bytes_D: bytes that the scored tokens of each document stand for, shape [D]; NaN where that is not known.
        weights_BD: how often each document is drawn in each resample, shape [B, D].
        vocab_size: V of this model, its own.
        n_resampled: documents, or texts that several were cut from; None for all documents.
    """
    D = len(bytes_D)
    n_resampled = D if n_resampled is None else n_resampled
    doc, rank, tokens, logprob = (counts[name].to_numpy() for name in ("doc_id", "rank", "n_tokens", "sum_logprob"))
    tokens_D, nats_D = _sum(doc, tokens, D), -_sum(doc, logprob, D)
    hits_SD = [_sum(doc, tokens * (rank <= share * vocab_size), D) for share in SHARES]

    def ratio(above_D: Floats, below_D: Floats) -> Estimate:
        with np.errstate(invalid="ignore"):  # a resample may draw no token
            resampled_B = (weights_BD @ above_D) / (weights_BD @ below_D)
            return estimate(above_D.sum() / below_D.sum(), resampled_B, n_resampled, Recipe.percentile)

    quantiles = _rank_quantiles(doc, rank, tokens, weights_BD, n_resampled)
    has_k = [share * vocab_size >= 1 for share in SHARES]
    unknown = Estimate(None, None, None)
    return Units(
        nats_per_token=ratio(nats_D, tokens_D),
        bits_per_byte=ratio(nats_D / math.log(2), bytes_D),
        tokens_per_byte=ratio(tokens_D, bytes_D),
        rank=quantiles,
        relative_rank={percent: _scaled(rank, 1 / vocab_size) for percent, rank in quantiles.items()},
        rbp={s: ratio(h, tokens_D) if is_k else unknown for s, h, is_k in zip(SHARES, hits_SD, has_k, strict=True)},
    )


def _sum(doc: Any, of: Any, n_documents: int) -> Floats:
    return np.bincount(doc, of, n_documents).astype(np.float64)


def _rank_quantiles(
    doc: Any, rank: Any, tokens: Any, weights_BD: npt.NDArray[Any], n_resampled: int
) -> dict[int, Estimate]:
    D = weights_BD.shape[1]
    rank_R, column = np.unique(rank, return_inverse=True)
    tokens_DR = csr_array((tokens.astype(np.float64), (doc, column)), (D, len(rank_R)))

    def quantiles(weights: npt.NDArray[Any]) -> Floats:
        """Shape [B, percents]; NaN for a resample without a token. Whole numbers, so nothing is rounded."""
        reached_BR = np.asarray((tokens_DR.T @ weights.T.astype(np.float64)).T).cumsum(axis=1)
        n_B1 = reached_BR[:, -1:]
        at = [rank_R[np.argmax(100 * reached_BR >= percent * n_B1, axis=1)] for percent in PERCENTS]
        return np.where(n_B1 > 0, np.stack(at, axis=1), np.nan)

    rows = max(1, _BLOCK_BYTES // (8 * len(rank_R)))
    blocks = [quantiles(weights_BD[begin : begin + rows]) for begin in range(0, len(weights_BD), rows)]
    measured, resampled = quantiles(np.ones((1, D), np.int64))[0], np.concatenate(blocks)
    return {
        percent: estimate(measured[at], resampled[:, at], n_resampled, Recipe.percentile)
        for at, percent in enumerate(PERCENTS)
    }


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    def times(end: float | None) -> float | None:
        return None if end is None else end * factor

    return Estimate(times(estimate.value), times(estimate.lo), times(estimate.hi))
