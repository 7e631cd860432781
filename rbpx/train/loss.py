"""Cross-entropy of hidden states under a tied head, in chunks of positions, so that whole logits never exist.

Shapes: N positions, D hidden width, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

_CHUNK = 512  # positions; their float32 logits take 8 MiB at the ladder's vocabulary of 4,096 and stay in cache


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Computes gradients in the forward pass, so that logits of only one chunk exist at a time."""

    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, head_VD: Tensor, targets_N: Tensor) -> Tensor:
        grad_ND, grad_VD = torch.empty_like(hidden_ND), torch.zeros_like(head_VD)
        total = hidden_ND.new_zeros(())
        for start in range(0, len(targets_N), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            part_ND, target_N1 = hidden_ND[chunk], targets_N[chunk, None]
            logits_NV = part_ND @ head_VD.T
            logsumexp_N1 = torch.logsumexp(logits_NV, 1, keepdim=True)
            total += (logsumexp_N1 - logits_NV.gather(1, target_N1)).sum()
            error_NV = logits_NV.sub_(logsumexp_N1).exp_()
            error_NV.scatter_add_(1, target_N1, -torch.ones_like(logsumexp_N1))
            torch.mm(error_NV, head_VD, out=grad_ND[chunk])
            grad_VD.addmm_(error_NV.T, part_ND)
        ctx.save_for_backward(grad_ND, grad_VD)
        ctx.n_positions = len(targets_N)
        return total / len(targets_N)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        grad_ND, grad_VD = ctx.saved_tensors
        scale = grads[0] / ctx.n_positions
        return grad_ND * scale, grad_VD * scale, None


def chunked_cross_entropy(hidden_ND: Tensor, head_VD: Tensor, targets_N: Tensor) -> Tensor:
    """Mean of -ln softmax(hidden @ head.T)[target] in nats, differentiable in both factors (first order)."""
    loss: Tensor = _ChunkedCrossEntropy.apply(hidden_ND, head_VD, targets_N)  # type: ignore[no-untyped-call]
    return loss
