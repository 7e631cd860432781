"""GPU kernel: counts, log-sum-exp and finiteness of each row of logits, read from memory once."""

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 4096  # logits of a row that a program holds in registers at a time
_WARPS = 8


@triton.jit
def _count_row(logits, own, out, stride, n_rows, width, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """One program per row; the sum of exponentials is rescaled whenever the largest logit so far changes."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(own + row)
    greater = tl.zeros([BLOCK], tl.int32)
    equal = tl.zeros([BLOCK], tl.int32)
    non_finite = tl.zeros([BLOCK], tl.int32)
    top_B = tl.full([BLOCK], float("-inf"), tl.float32)  # of each lane separately; combined at the end
    sum_B = tl.zeros([BLOCK], tl.float32)
    for start in range(0, width, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < width
        z = tl.load(logits + row * stride + at, mask=inside, other=0.0)
        greater += (inside & (z > target)).to(tl.int32)
        equal += (inside & (z == target)).to(tl.int32)
        # An infinity or NaN has all bits of the exponent set; a comparison of bits cannot be optimised away.
        non_finite += (inside & ((z.to(tl.int32, bitcast=True) & 0x7F800000) == 0x7F800000)).to(tl.int32)
        z = tl.where(inside, z, float("-inf"))
        higher = tl.maximum(top_B, z)
        shift = tl.where(higher == float("-inf"), 0.0, higher)  # a lane without a logit yet: exp(-inf) = 0
        sum_B = sum_B * tl.exp(top_B - shift) + tl.exp(z - shift)
        top_B = higher
    top = tl.max(top_B, axis=0)
    total = tl.sum(sum_B * tl.exp(top_B - top), axis=0)
    tl.store(out + row, tl.sum(greater, axis=0))
    tl.store(out + n_rows + row, tl.sum(equal, axis=0))
    tl.store(out + 2 * n_rows + row, top.to(tl.int32, bitcast=True))
    tl.store(out + 3 * n_rows + row, tl.log(total).to(tl.int32, bitcast=True))
    tl.store(out + 4 * n_rows + row, (tl.sum(non_finite, axis=0) == 0).to(tl.int32))


def count_rows(logits_NV: Tensor, own_N: Tensor) -> Tensor:
    """As `rbpx.ranks.definition.count_rows`; the shift is the largest logit."""
    n_rows, width = logits_NV.shape
    out_5N = torch.empty(5, n_rows, dtype=torch.int32, device=logits_NV.device)
    if n_rows == 0:
        return out_5N
    if logits_NV.stride(1) != 1:
        logits_NV = logits_NV.contiguous()
    _count_row[(n_rows,)](
        logits_NV, own_N.contiguous(), out_5N, logits_NV.stride(0), n_rows, width, BLOCK=_BLOCK, num_warps=_WARPS
    )
    return out_5N
