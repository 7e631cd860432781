"""Cross-entropy of hidden states under a tied head, in chunks of positions, so that whole logits never exist.

Shapes: N positions, D hidden width, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

_CHUNK = 256  # positions; their float32 logits take 4 MiB at the ladder's vocabulary of 4,096 and stay in cache


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Computes gradients in the forward pass, so that logits of only one chunk exist at a time.

    With e = exp(logit - max) and Z its sum, the gradient in the logits is (e - Z [target]) / Z. The division by Z is
    done on the narrow side of each product, so that the logits are gone over as few times as they can be.
    """

    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, head_VD: Tensor, targets_N: Tensor) -> Tensor:
        grad_ND, grad_VD = torch.empty_like(hidden_ND), torch.zeros_like(head_VD)
        total = hidden_ND.new_zeros(())
        for start in range(0, len(targets_N), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            part_ND, target_N1 = hidden_ND[chunk], targets_N[chunk, None]
            logits_NV = part_ND @ head_VD.T
            max_N1, true_N1 = logits_NV.amax(1, keepdim=True), logits_NV.gather(1, target_N1)
            exp_NV = logits_NV.sub_(max_N1).exp_()
            sum_N1 = exp_NV.sum(1, keepdim=True)
            total += (sum_N1.log() + max_N1 - true_N1).sum()
            exp_NV.scatter_add_(1, target_N1, -sum_N1)
            torch.mm(exp_NV, head_VD, out=grad_ND[chunk])
            grad_ND[chunk] /= sum_N1
            grad_VD.addmm_(exp_NV.T, part_ND / sum_N1)
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
