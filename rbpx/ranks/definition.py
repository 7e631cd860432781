"""Defines a rank: exact greater, ties and logprob of each target, from logits or from hidden states.

Shapes: N positions, D width of the hidden states, V width of the vocabulary as the model emits it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Map = Callable[[Tensor], Tensor]


def linear_float32(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None) -> Tensor:
    """Float32 logits [N, V]; 16-bit weights are widened as they are read."""
    hidden_ND, weight_DV = hidden_ND.to("cpu", torch.float32), weight_VD.float().T
    if bias_V is None:
        return torch.mm(hidden_ND, weight_DV)
    return torch.addmm(bias_V.float(), hidden_ND, weight_DV)


_BYTES_PER_LOGIT = 4
_CACHE_BYTES = 1 << 20  # a chunk of this size stays in a core's cache between passes
_FEWEST_ROWS = 64  # with fewer, reading the head again for every chunk costs more than the cache saves
_CPU_BYTES = 16 << 20  # limit of a chunk with many rows of the vocabulary
_GPU_BYTES = 256 << 20  # large enough to hide kernel launches
_GPU_ROWS = 256  # of logits; a product of another multiple leaves part of its last tiles idle
# torch for CUDA on Linux includes triton; elsewhere torch's own operations are used.
_HAS_TRITON = find_spec("triton") is not None


def chunk_bytes_for(device: torch.device, vocab_size: int) -> int:
    """A good size of one chunk of logits: within a CPU core's cache if that pays, larger on a GPU."""
    if device.type != "cpu":
        return _GPU_BYTES
    return min(_CPU_BYTES, max(_CACHE_BYTES, _FEWEST_ROWS * _BYTES_PER_LOGIT * vocab_size))


@dataclass(frozen=True, eq=False)
class TokenRanks:
    """The measurement at N positions, from which the rank (pessimistic, optimistic, mid) is derived when queried.

    Attributes:
        greater: entries whose logit exceeds the target's.
        ties: other entries whose logit equals it.
        logprob: of the target, in nats.
    """

    greater: npt.NDArray[np.int32]
    ties: npt.NDArray[np.int32]
    logprob: npt.NDArray[np.float32]


class NonFiniteLogits(ValueError):
    """Logits with NaN, which would count as rank 1, or an infinity at position `row`."""

    def __init__(self, row: int) -> None:
        super().__init__(f"The logits of position {row} contain NaN or an infinity, so they have no rank")
        self.row = row


def rank_logits(logits_NV: Tensor, targets_N: Tensor) -> TokenRanks:
    """Count, at each position, the logits above and equal to the target's, and give the target's log-probability.

    greater = #{v: z_v > z_t}, ties = #{v != t: z_v = z_t}, logprob = z_t - logsumexp(z); z_t is taken from the same
    logits that it is compared with (RBP paper, arXiv 2510.20387, eq. 3).

    Raises:
        NonFiniteLogits: a row contains NaN, +inf or -inf.
        ValueError: the logits are not float32 (16 bits would tie by rounding), or the shapes do not match.
    """
    with torch.no_grad():
        return _collect([_rank_rows(logits_NV, targets_N)])()


def rank_hidden(
    hidden_ND: Tensor,
    targets_N: Tensor,
    head: Callable[[Tensor], Tensor],
    vocab_size: int,
    chunk_bytes: int | None = None,
) -> TokenRanks:
    """Rank as `rank_logits` does, in chunks of positions, so that [N, V] logits never exist.

    `head` maps hidden states of n positions to their float32 logits [n, V].

    Raises:
        NonFiniteLogits: as `rank_logits`; its `row` counts from the first of all N.
        ValueError: the head's logits are not float32 or not [n, vocab_size], or there is not one target per position.
    """
    return begin_ranks(hidden_ND, targets_N, head, vocab_size, chunk_bytes)()


def begin_ranks(
    hidden_ND: Tensor,
    targets_N: Tensor,
    head: Callable[[Tensor], Tensor],
    vocab_size: int,
    chunk_bytes: int | None = None,
) -> Callable[[], TokenRanks]:
    """Begin `rank_hidden` without waiting for the device; the returned function waits, gives the ranks or raises."""
    return _collect(map_chunks(_rank_rows, hidden_ND, targets_N, head, vocab_size, chunk_bytes))


def map_chunks(
    of_rows: Callable[[Tensor, Tensor], Tensor],
    hidden_ND: Tensor,
    targets_N: Tensor,
    head: Callable[[Tensor], Tensor],
    vocab_size: int,
    chunk_bytes: int | None = None,
) -> list[Tensor]:
    """The value of `of_rows` for logits [n, V] and targets [n] of each chunk, one at a time; else as `rank_hidden`."""
    if len(hidden_ND) != len(targets_N):
        raise ValueError(f"{len(hidden_ND)} hidden states for {len(targets_N)} targets")
    size = chunk_bytes_for(hidden_ND.device, vocab_size) if chunk_bytes is None else chunk_bytes
    rows = max(1, size // (_BYTES_PER_LOGIT * vocab_size))
    if hidden_ND.is_cuda and rows > _GPU_ROWS:
        rows -= rows % _GPU_ROWS
    chunks = []
    with torch.no_grad():
        for hidden_nD, targets_n in zip(torch.split(hidden_ND, rows), torch.split(targets_N, rows), strict=True):
            logits_nV = head(hidden_nD)
            if logits_nV.shape[-1] != vocab_size:
                raise ValueError(f"The head emits {logits_nV.shape[-1]} logits where vocab_size is {vocab_size}")
            chunks.append(of_rows(logits_nV, targets_n))
            del logits_nV  # else two chunks are in memory at once
    return chunks


def _rank_rows(logits_NV: Tensor, targets_N: Tensor) -> Tensor:
    """Int32 [4, N] on the logits' device: greater, ties, the bits of logprob, and whether the row is finite."""
    if logits_NV.dtype != torch.float32:
        raise ValueError(f"Ranks need float32 logits, got {logits_NV.dtype}, which tie by rounding")
    if logits_NV.ndim != 2 or targets_N.shape != logits_NV.shape[:1]:
        raise ValueError(f"Logits of shape {tuple(logits_NV.shape)} do not fit targets {tuple(targets_N.shape)}")
    targets_N = targets_N.to(logits_NV.device, torch.int64)
    inside_N = (targets_N >= 0) & (targets_N < logits_NV.shape[1])  # raising would synchronise the GPU
    own_N = logits_NV.gather(1, torch.where(inside_N, targets_N, 0)[:, None])[:, 0]
    greater_N, equal_N, shift_bits, log_sum_bits, finite_N = count_rows(logits_NV, own_N)
    logprob_N = own_N - shift_bits.view(torch.float32) - log_sum_bits.view(torch.float32)
    return torch.stack([greater_N, equal_N - 1, logprob_N.view(torch.int32), finite_N * inside_N])


def count_rows(logits_NV: Tensor, own_N: Tensor) -> Tensor:
    """The counts of each row in one pass, int32 [5, N] on the logits' device.

    Logits above `own_N`, from the same float32 logits; equal to it; the bits of a shift and of ln sum exp(z - shift);
    whether all are finite.
    """
    if logits_NV.is_cuda and _HAS_TRITON:
        from rbpx.ranks import gpu_kernel

        return gpu_kernel.count_rows(logits_NV, own_N)
    greater_N = (logits_NV > own_N[:, None]).sum(1, dtype=torch.int32)
    equal_N = (logits_NV == own_N[:, None]).sum(1, dtype=torch.int32)
    logsumexp_N = logits_NV.logsumexp(1)
    # NaN and +inf show in the logsumexp; -inf does not, but shows in the minimum.
    finite_N = logsumexp_N.isfinite() & logits_NV.amin(1).isfinite()
    no_shift_N = torch.zeros_like(greater_N)
    return torch.stack([greater_N, equal_N, no_shift_N, logsumexp_N.view(torch.int32), finite_N.int()])


def _collect(chunks: list[Tensor]) -> Callable[[], TokenRanks]:
    """Begin to copy the results; the returned function waits, then checks that all rows are finite."""
    arrived = arriving(torch.cat(chunks, dim=1))

    def ranks() -> TokenRanks:
        greater, ties, logprob_bits, finite = arrived()
        if not finite.all():
            raise NonFiniteLogits(int(finite.argmin()))
        return TokenRanks(greater, ties, logprob_bits.view(np.float32))

    return ranks


def arriving(values: Tensor) -> Callable[[], npt.NDArray[Any]]:
    """Begin to copy a tensor to the host; the returned function waits for this copy alone."""
    if not values.is_cuda:
        return lambda: values.numpy()
    there = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)  # unpinned copies are synchronous
    there.copy_(values, non_blocking=True)
    copied = torch.cuda.current_stream(values.device).record_event()

    def arrived() -> npt.NDArray[Any]:
        copied.synchronize()
        return there.numpy()

    return arrived
