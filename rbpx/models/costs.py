"""Estimates FLOPs and memory of measuring a cell from the model's architecture and the tokens read.

Symbols: S non-embedding parameters that a token uses, V rows of the vocabulary, D width of the head's input, L layers,
T tokens of a window, A width of all heads together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rbpx.models.architecture import BYTES, Architecture
from rbpx.ranks.definition import chunk_bytes_for

_MIB = 2**20

_STREAMS = 4  # tensors as wide as the model while its feed-forward part runs
_INNER_COPIES = 3  # tensors as wide as the feed-forward part: gated layers have 3, others 2
_CHUNK_COPIES = 2.5  # of a chunk of logits: the logits, the logsumexp's copy, two comparisons of a byte each


@dataclass(frozen=True)
class TokensRead:
    """How much of a text a model reads.

    Attributes:
        n_read: tokens that pass through the model; one in several windows counts in each.
        n_pairs: sum over windows of T^2, the (token, context) pairs of attention.
        n_bytes: of the text that they cover; 0 where not computed.
    """

    n_scored: int
    n_read: int
    n_pairs: int
    n_bytes: int = 0


def tokens_read(window_lengths: Sequence[int], n_scored: int) -> TokensRead:
    """Tokens and pairs of windows of these lengths."""
    return TokensRead(n_scored, sum(window_lengths), sum(T * T for T in window_lengths))


def flops(model: Architecture, text: TokensRead) -> float:
    """Floating-point operations of a forward pass; additions and multiplications each count.

    2 S per token read, 2 V D per token scored, and 4 L A T for attention scores and weighted values over a window of T
    tokens. The first two are the 2 N + 2 d_model n_vocab of Kaplan et al. (arXiv 2001.08361, table 1); for attention
    that table has the scores alone, whereas Hoffmann et al. (arXiv 2203.15556, appendix F) count both products, as
    here.
    """
    dense = 2.0 * (model.active_params or model.non_embedding_params) * text.n_read
    head = 2.0 * model.vocab_size * model.head_width * text.n_scored
    return dense + head + 4.0 * model.layers * model.attention_width * text.n_pairs


def memory_mib(model: Architecture, dtype: str, device: str, tokens_per_batch: int, window: int) -> float:
    """Memory of measuring a cell, MiB: its weights, a batch in the feed-forward part of a layer, a chunk of logits.

    Not counted are the process itself, what loading takes besides, and layers that are not feed-forward and take more.
    """
    T = min(window, model.context or window)
    n_batch = T * max(1, tokens_per_batch // T)
    of_token_B = (_STREAMS * model.width + _INNER_COPIES * model.inner + model.head_width) * BYTES[dtype]
    logits_B = _CHUNK_COPIES * chunk_bytes_for(torch.device(device), model.vocab_size)
    return model.weights_mib(dtype) + (n_batch * of_token_B + logits_B) / _MIB
