"""The loss that a training minimises, under a tied head, in chunks of positions so that whole logits never exist.

With logits z of a position, ln Z = ln sum exp z and the target t, it is
    ln Z - (1 - s) z_t - s mean(z) + c (ln Z)^2
where s smooths labels (arXiv 1512.00567, section 7) and c weights the z-loss (arXiv 2204.02311, section 5). At
s = c = 0 it is cross-entropy. Cross-entropy is reported whatever is minimised.

Shapes: N positions, D hidden width, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from rbpx.config.recipe import Objective

_CHUNK = 256  # positions; their float32 logits take 4 MiB at the ladder's vocabulary of 4,096 and stay in cache
_PLAIN = Objective()


class _ChunkedLoss(torch.autograd.Function):
    """Computes gradients in the forward pass, so that logits of only one chunk exist at a time.

    With e = exp(logit - max) and Z its sum, the gradient in the logits is ((1 + 2 c ln Z) e - (1 - s) Z [target]) / Z
    - s / V. The division by Z, and all that is the same for every token of V, is done on the narrow side of each
    product, so that as few passes as possible go over the logits.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, head_VD: Tensor, targets_N: Tensor, smoothing: float, z_weight: float
    ) -> tuple[Tensor, Tensor]:
        grad_ND, grad_VD = torch.empty_like(hidden_ND), torch.zeros_like(head_VD)
        nats, more = hidden_ND.new_zeros(()), hidden_ND.new_zeros(())
        mean_D = head_VD.mean(0)  # its product with a state is the mean logit
        for start in range(0, len(targets_N), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            part_ND, target_N1 = hidden_ND[chunk], targets_N[chunk, None]
            logits_NV = part_ND @ head_VD.T
            max_N1, true_N1 = logits_NV.amax(1, keepdim=True), logits_NV.gather(1, target_N1)
            exp_NV = logits_NV.sub_(max_N1).exp_()
            sum_N1 = exp_NV.sum(1, keepdim=True)
            ln_Z_N1 = sum_N1.log() + max_N1
            nats += (ln_Z_N1 - true_N1).sum()
            if smoothing:
                more += smoothing * (true_N1.sum() - (part_ND @ mean_D).sum())
            if z_weight:
                more += z_weight * (ln_Z_N1**2).sum()
                exp_NV.mul_(1 + 2 * z_weight * ln_Z_N1)
            exp_NV.scatter_add_(1, target_N1, -(1 - smoothing) * sum_N1)
            torch.mm(exp_NV, head_VD, out=grad_ND[chunk])
            grad_ND[chunk] /= sum_N1
            grad_VD.addmm_(exp_NV.T, part_ND / sum_N1)
        if smoothing:
            grad_ND -= smoothing * mean_D
            grad_VD -= smoothing / len(head_VD) * hidden_ND.sum(0)
        ctx.save_for_backward(grad_ND, grad_VD)
        ctx.n_positions = len(targets_N)
        cross_entropy = nats / len(targets_N)
        ctx.mark_non_differentiable(cross_entropy)
        return (nats + more) / len(targets_N), cross_entropy

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        grad_ND, grad_VD = ctx.saved_tensors
        scale = grads[0] / ctx.n_positions
        return grad_ND * scale, grad_VD * scale, None, None, None


def chunked_loss(
    hidden_ND: Tensor, head_VD: Tensor, targets_N: Tensor, objective: Objective = _PLAIN
) -> tuple[Tensor, Tensor]:
    """Mean loss under softmax(hidden @ head.T), differentiable in both factors (first order), and cross-entropy.

    Args:
        hidden_ND: states.
        head_VD: the head.
        targets_N: true tokens.
        objective: what is minimised; cross-entropy by default.

    Returns:
        The loss, and plain cross-entropy, which carries no gradient; both in nats a position.
    """
    loss: tuple[Tensor, Tensor] = _ChunkedLoss.apply(  # type: ignore[no-untyped-call]
        hidden_ND, head_VD, targets_N, objective.label_smoothing, objective.z_loss
    )
    return loss
