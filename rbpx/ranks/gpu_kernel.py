"""Kernel of the GPU path: counts, logprob and finiteness of each row of logits, which is read from memory once.

Shapes: N positions, V width of the vocabulary.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 4096  # logits of a row that a program holds in registers at a time
_WARPS = 8


@triton.jit
def _rank_row(logits, targets, out, stride, n_rows, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """One program per row; the sum of exponentials is rescaled whenever the largest logit so far changes."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    valid = (target >= 0) & (target < width)
    own = tl.load(logits + row * stride + target, mask=valid, other=float("nan"))
    greater = tl.zeros([BLOCK], tl.int32)
    ties = tl.zeros([BLOCK], tl.int32)
    non_finite = tl.zeros([BLOCK], tl.int32)
    top_B = tl.full([BLOCK], float("-inf"), tl.float32)  # of each lane separately; combined at the end
    sum_B = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < width
        z = tl.load(logits + row * stride + at, mask=inside, other=0.0)
        greater += (inside & (z > own)).to(tl.int32)
        ties += (inside & (z == own)).to(tl.int32)
        # An infinity or NaN has all bits of the exponent set; a comparison of bits cannot be optimised away.
        non_finite += (inside & ((z.to(tl.int32, bitcast=True) & 0x7F800000) == 0x7F800000)).to(tl.int32)
        z = tl.where(inside, z, float("-inf"))
        higher = tl.maximum(top_B, z)
        shift = tl.where(higher == float("-inf"), 0.0, higher)  # a lane without a logit yet: exp(-inf) = 0
        sum_B = sum_B * tl.exp(top_B - shift) + tl.exp(z - shift)
        top_B = higher
    top = tl.max(top_B, axis=0)
    total = tl.sum(sum_B * tl.exp(top_B - top), axis=0)
    logprob = own - top - tl.log(total)
    tl.store(out + row, tl.sum(greater, axis=0))
    tl.store(out + n_rows + row, tl.sum(ties, axis=0) - 1)
    tl.store(out + 2 * n_rows + row, logprob.to(tl.int32, bitcast=True))
    tl.store(out + 3 * n_rows + row, ((tl.sum(non_finite, axis=0) == 0) & valid).to(tl.int32))


def rank_rows(logits_NV: Tensor, targets_N: Tensor) -> Tensor:
    """Int32 [4, N]: greater, ties, the bits of logprob (own logit - log-sum-exp, nats), and whether the row is finite.

    The target's logit is taken from the same logits that it is compared with, so counts are exact.

    Args:
        logits_NV: float32, contiguous along the vocabulary.
        targets_N: int64, in [0, V), on the same device. They are not checked beforehand, which would synchronise with
            the device; a row whose target is outside the vocabulary is returned as not finite.
    """
    n_rows, width = logits_NV.shape
    if n_rows == 0:
        return torch.empty(4, 0, dtype=torch.int32, device=logits_NV.device)
    if logits_NV.stride(1) != 1:
        logits_NV = logits_NV.contiguous()
    out_4N = torch.empty(4, n_rows, dtype=torch.int32, device=logits_NV.device)
    _rank_row[(n_rows,)](
        logits_NV, targets_N, out_4N, logits_NV.stride(0), n_rows, width, BLOCK=_BLOCK, num_warps=_WARPS
    )
    return out_4N
