"""What measuring a cell costs: a model's shape and how much of a text is read in, FLOPs and memory out.

Symbols: S non-embedding parameters, V rows of the vocabulary, D width of what the head reads, L layers, T tokens of a
window, H heads, A width of all heads together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rbpx.ranks.definition import chunk_bytes_for

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}  # of one number
_MIB = 2**20

# Counted in the code of the architectures, and held against the peaks of real runs in tests/measure/test_costs.py.
_STREAMS = 4  # numbers as wide as the model that a token has while its feed-forward part runs
_INNER_COPIES = 5  # as wide as the feed-forward part: GELU written out has 5, gated parts have 3, others 2
_ATTENTION_STREAMS = 6  # as wide as the model while attention runs: residual, norm, queries, keys, values, output
_SCORE_COPIES = 3  # [H, T] in float32, where attention is computed step by step ("eager")
_SCAN_COPIES = 3  # inner x state of a state-space model, in float32
_CHUNK_COPIES = 2.5  # of a chunk of logits: the logits, those of the logsumexp, two comparisons of a byte each
_PROCESS_MIB = 480  # Python with torch and transformers, as the CPU's peak counts them
_PER_TEXT = 50  # bytes that a byte of the drawn documents takes with its tokens, their places and their ranks


@dataclass(frozen=True)
class Shape:
    """What a causal language model is made of.

    Attributes:
        non_embedding_params: S.
        total_params: all parameters, each once.
        vocab_size: V.
        head_width: D.
        width: of the hidden states.
        layers: L.
        inner: widest linear map inside a layer.
        heads: H; 0 without attention.
        attention_width: A.
        eager: whether attention writes its [H, T, T] scores to memory.
        state: numbers that a token has in the scan of a state-space model, per layer; 0 without one.
        context: tokens that it reads at once, None if its configuration sets no limit.
    """

    non_embedding_params: int
    total_params: int
    vocab_size: int
    head_width: int
    width: int
    layers: int
    inner: int
    heads: int
    attention_width: int
    eager: bool
    state: int
    context: int | None

    def weights_mib(self, dtype: str) -> float:
        """All parameters in that precision, MiB."""
        return self.total_params * BYTES[dtype] / _MIB


@dataclass(frozen=True)
class Load:
    """How much of a text a model reads.

    Attributes:
        n_scored: tokens that are predicted and counted.
        n_read: tokens that go through the model; those that windows share count in each.
        n_pairs: sum over windows of T^2, the (token, context) pairs that attention looks at.
    """

    n_scored: int
    n_read: int
    n_pairs: int


def load_of(window_lengths: Sequence[int], n_scored: int) -> Load:
    """The load of windows of these lengths."""
    return Load(n_scored, sum(window_lengths), sum(T * T for T in window_lengths))


def flops(shape: Shape, load: Load) -> float:
    """Floating-point operations of a forward pass, multiplications and additions each counted.

    2 S for every token that is read, 2 V D for every one that is scored (logits of the others are not computed), and
    4 L A T for the scores and the weighted values of attention over a window of T tokens. The first two are the
    2 N + 2 d_model n_vocab of Kaplan et al. (arXiv 2001.08361, table 1); for attention that table has 2 n_layer n_ctx
    d_attn, the scores alone, and Hoffmann et al. (arXiv 2203.15556, appendix F) count both products, as here.
    """
    dense = 2.0 * shape.non_embedding_params * load.n_read
    head = 2.0 * shape.vocab_size * shape.head_width * load.n_scored
    return dense + head + 4.0 * shape.layers * shape.attention_width * load.n_pairs


def peak_mib(
    shape: Shape,
    dtype: str,
    device: str,
    tokens_per_batch: int,
    window: int,
    text_bytes: int | None = None,
    released_mib: float | None = None,
) -> float:
    """Memory at the peak of measuring a cell in one process, MiB.

    Weights, the activations of a batch in its widest layer, and a chunk of logits: what `runs.peak_mib` tells, which is
    what torch allocated on a GPU and the whole process on a CPU. There the libraries and the text count too; in 16 bits
    the head is copied to float32, and while weights are loaded the file is in memory beside them.

    Args:
        shape: of the model.
        dtype: of weights and activations.
        device: `cpu` or `cuda`.
        tokens_per_batch: padded tokens of a batch, one window at least.
        window: T.
        text_bytes: of the drawn documents; None where they are not known.
        released_mib: of the weight files; None where they are not known.
    """
    size = BYTES[dtype]
    T = min(window, shape.context or window)
    n_batch = T * max(1, tokens_per_batch // T)
    inner_B = (_STREAMS * shape.width + _INNER_COPIES * shape.inner) * size
    scores_B = _SCORE_COPIES * shape.heads * T * BYTES["float32"] if shape.eager else 0
    attention_B = _ATTENTION_STREAMS * shape.width * size + scores_B
    scan_B = _INNER_COPIES * shape.inner * size + _SCAN_COPIES * shape.state * BYTES["float32"] if shape.state else 0
    states_B = shape.head_width * size  # of the scored tokens, beside those of all
    activations = n_batch * (max(inner_B, attention_B, scan_B) + states_B) / _MIB
    logits = _CHUNK_COPIES * chunk_bytes_for(torch.device(device), shape.vocab_size) / _MIB
    weights = shape.weights_mib(dtype)
    if device != "cpu":
        return weights + activations + logits
    process = _PROCESS_MIB + _PER_TEXT * (text_bytes or 0) / _MIB
    if dtype == "float32":
        return process + weights + activations + logits
    loading = weights + (shape.weights_mib("float32") if released_mib is None else released_mib)
    return process + max(loading, weights + activations + logits)
