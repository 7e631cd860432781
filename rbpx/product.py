"""A model's output head as a module in, its product in float32 out, wherever its weights lie.

Shapes: N positions, D hidden width, V vocabulary.
"""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from rbpx.errors import RbpxError

Map = Callable[[Tensor], Tensor]


def float32_product(head: nn.Module, dtype: torch.dtype) -> Map:
    """Hidden states [N, D] to the head's float32 product [N, V], formed in float32 from weights of any dtype.

    Raises:
        RbpxError: the head is no matrix product and lies outside of memory, so in 16 bits it cannot be had in float32.
    """
    if type(head) is nn.Linear and hasattr(head, "_hf_hook"):  # accelerate's, of a model that is split
        head = _held(head)
    elif dtype != torch.float32 and any(parameter.is_meta for parameter in head.parameters()):
        raise RbpxError(f"its head, a {type(head).__name__}, does not fit into memory; measure it with dtype=float32")
    if dtype == torch.float32:
        return lambda hidden_ND: head(hidden_ND).float()
    if isinstance(head, nn.Linear) and head.weight.is_cuda:
        weight_DV = head.weight.T
        bias: Tensor | None = head.bias

        def on_gpu(hidden_ND: Tensor) -> Tensor:  # no float32 copy of the head; addmm with out_dtype is broken
            logits_NV = torch.mm(hidden_ND.to(weight_DV.device), weight_DV, out_dtype=torch.float32)
            return logits_NV if bias is None else logits_NV + bias.float()

        return on_gpu
    wide = copy.deepcopy(head).float()
    return lambda hidden_ND: wide(hidden_ND.float())


class _Held(nn.Linear):
    """A head's product on the device of its weights, wherever the states come from."""

    def forward(self, hidden_ND: Tensor) -> Tensor:
        return super().forward(hidden_ND.to(self.weight.device))


def _held(head: nn.Linear) -> nn.Linear:
    """The head of a split model in memory, once, since it would be fetched anew for every chunk of positions.

    Offloaded weights are on meta but while their hook has fetched them.
    """
    from accelerate.utils import align_module_device

    held = _Held(
        head.in_features, head.out_features, bias=head.bias is not None, device="meta", dtype=head.weight.dtype
    )
    with align_module_device(head):
        weights = {name: nn.Parameter(weight.detach(), requires_grad=False) for name, weight in head.named_parameters()}
    held.load_state_dict(weights, assign=True)
    return held
