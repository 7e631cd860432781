"""Cross-entropy of a tied head over the vocabulary, chunk by chunk: hidden states and targets in, a loss out."""

from typing import Any

import torch
from torch import Tensor

# Shapes: N positions, D hidden width, V vocabulary.
_CHUNK = 512  # positions; their float32 logits stay in cache at the ladder's vocabulary


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Gradients are formed in the forward pass, so that logits of more than one chunk never exist."""

    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, head_VD: Tensor, targets_N: Tensor) -> Tensor:
        grad_ND, grad_VD = torch.empty_like(hidden_ND), torch.zeros_like(head_VD)
        total = hidden_ND.new_zeros(())
        for at in range(0, len(targets_N), _CHUNK):
            part_ND, target_N1 = hidden_ND[at : at + _CHUNK], targets_N[at : at + _CHUNK, None]
            logits_NV = part_ND @ head_VD.T
            logsumexp_N1 = torch.logsumexp(logits_NV, 1, keepdim=True)
            total += (logsumexp_N1 - logits_NV.gather(1, target_N1)).sum()
            error_NV = logits_NV.sub_(logsumexp_N1).exp_()
            error_NV.scatter_add_(1, target_N1, -torch.ones_like(logsumexp_N1))
            torch.mm(error_NV, head_VD, out=grad_ND[at : at + _CHUNK])
            grad_VD.addmm_(error_NV.T, part_ND)
        ctx.save_for_backward(grad_ND, grad_VD)
        ctx.n = len(targets_N)
        return total / len(targets_N)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        grad_ND, grad_VD = ctx.saved_tensors
        scale = grads[0] / ctx.n
        return grad_ND * scale, grad_VD * scale, None


def chunked_cross_entropy(hidden_ND: Tensor, head_VD: Tensor, targets_N: Tensor) -> Tensor:
    """Mean of -ln softmax(hidden @ head.T)[target] in nats, differentiable in both factors (first order)."""
    loss: Tensor = _ChunkedCrossEntropy.apply(hidden_ND, head_VD, targets_N)  # type: ignore[no-untyped-call]
    return loss
