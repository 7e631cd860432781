"""Estimates FLOPs and peak memory of measuring a cell from the model's architecture and the tokens read.

Symbols: S non-embedding parameters that a token uses, V rows of the vocabulary, D width of the head's input, L layers,
T tokens of a window, H heads, A width of all heads together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rbpx.models.architecture import BYTES, Architecture
from rbpx.ranks.definition import chunk_bytes_for

_MIB = 2**20

# Counted in the architectures' code, and compared with measured peaks in tests/measure/test_costs.py.
_STREAMS = 4  # tensors as wide as the model while its feed-forward part runs
_INNER_COPIES = 3  # tensors as wide as the feed-forward part: gated layers have 3, others 2
_ATTENTION_STREAMS = 6  # tensors as wide as the model in attention: residual, norm, queries, keys, values, output
_SCORE_COPIES = 3  # tensors [H, T] in float32, if attention is computed step by step ("eager")
_SCAN_STREAMS = 5  # tensors as wide as the inner part of a state-space model
_SCAN_COPIES = 3  # tensors inner x state of a state-space model, in float32
_CHUNK_COPIES = 2.5  # of a chunk of logits: the logits, the logsumexp's copy, two comparisons of a byte each
_PROCESS_MIB = 480  # Python with torch and transformers, which the peak on a CPU includes
_BYTES_PER_TEXT_BYTE = 50  # memory per byte of the documents: tokens, offsets, ranks


@dataclass(frozen=True)
class TokensRead:
    """How much of a text a model reads.

    Attributes:
        n_scored: tokens that are predicted and counted.
        n_read: tokens that pass through the model; one in several windows counts in each.
        n_pairs: sum over windows of T^2, the (token, context) pairs of attention.
        n_bytes: of the text that they cover, each once; 0 where not computed.
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

    2 S per token read, 2 V D per token scored (other logits are not computed), and 4 L A T for attention scores and
    weighted values over a window of T tokens. The first two are the 2 N + 2 d_model n_vocab of Kaplan et al. (arXiv
    2001.08361, table 1); for attention that table has 2 n_layer n_ctx d_attn, the scores alone, whereas Hoffmann et al.
    (arXiv 2203.15556, appendix F) count both products, as here.
    """
    dense = 2.0 * (model.active_params or model.non_embedding_params) * text.n_read
    head = 2.0 * model.vocab_size * model.head_width * text.n_scored
    return dense + head + 4.0 * model.layers * model.attention_width * text.n_pairs


def peak_mib(
    model: Architecture,
    dtype: str,
    device: str,
    tokens_per_batch: int,
    window: int,
    text_bytes: int | None = None,
    released_mib: float | None = None,
    expanded: bool = False,
) -> float:
    """Peak memory of measuring a cell in one process, MiB: an estimate of `runs.peak_mib`.

    Sums the weights, the activations of a batch in the widest layer, and a chunk of logits. On a GPU this is torch's
    allocation; on a CPU it is the whole process, so libraries and text count too, and the weight files of 16-bit
    weights while these are loaded.

    Args:
        model: its architecture.
        dtype: of weights and activations.
        device: `cpu` or `cuda`.
        tokens_per_batch: padded tokens of a batch; a batch has at least one window.
        window: T.
        text_bytes: of the documents; None if unknown.
        released_mib: size of the weight files; None if unknown.
        expanded: whether they are of a GGUF file, whose matrices are expanded in float32 one by one.
    """
    size = BYTES[dtype]
    T = min(window, model.context or window)
    n_batch = T * max(1, tokens_per_batch // T)
    inner_B = (_STREAMS * model.width + _INNER_COPIES * model.inner) * size
    scores_B = _SCORE_COPIES * model.heads * T * BYTES["float32"] if model.eager else 0
    attention_B = _ATTENTION_STREAMS * model.width * size + scores_B
    scan_B = _SCAN_STREAMS * model.inner * size + _SCAN_COPIES * model.state * BYTES["float32"] if model.state else 0
    states_B = model.head_width * size  # of the scored tokens, in addition to those of all
    activations = n_batch * (max(inner_B, attention_B, scan_B) + states_B) / _MIB
    logits = _CHUNK_COPIES * chunk_bytes_for(torch.device(device), model.vocab_size) / _MIB
    weights = model.weights_mib(dtype)
    if device != "cpu":
        return weights + activations + logits
    process = _PROCESS_MIB + _BYTES_PER_TEXT_BYTE * (text_bytes or 0) / _MIB
    if dtype == "float32" and not expanded:
        return process + weights + activations + logits
    if expanded:  # the largest matrix exists four times at once; others twice
        embedding = model.vocab_size * model.head_width * BYTES["float32"] / _MIB
        loading = max(weights + 2 * embedding, 4 * embedding)
    else:
        loading = weights + (model.weights_mib("float32") if released_mib is None else released_mib)
    return process + max(loading, weights + activations + logits)
