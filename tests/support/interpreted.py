"""The GPU's kernel in a process whose Triton interprets it, on a CPU."""

import os

import torch
from torch import Tensor


def interpret() -> None:
    """Before Triton is imported."""
    os.environ["TRITON_INTERPRET"] = "1"


def rank_there(logits_NV: Tensor, targets_N: Tensor) -> Tensor:
    """What the kernel makes of these logits: greater, ties, the bits of logprob, and whether a row is finite."""
    from rbpx.ranks.gpu_kernel import count_rows

    own_N = logits_NV.gather(1, targets_N[:, None])[:, 0]
    greater_N, equal_N, shift_bits, log_sum_bits, finite_N = count_rows(logits_NV, own_N)
    logprob_N = own_N - shift_bits.view(torch.float32) - log_sum_bits.view(torch.float32)
    return torch.stack([greater_N, equal_N - 1, logprob_N.view(torch.int32), finite_N])
