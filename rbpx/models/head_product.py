"""The matrix product of an output head in float32, on whatever devices its weights lie.

Shapes: N positions, D hidden width, V vocabulary.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rbpx.errors import RbpxError
from rbpx.ranks.product import Map, linear_float32


@dataclass(frozen=True, eq=False)
class HeadProduct:
    """The product of a head, formed in float32 from weights of any dtype.

    Attributes:
        logits: hidden states [N, D] -> float32 [N, V].
        weight_VD: the matrix, if the head is a plain matrix product in CPU memory; else None.
        bias_V: the bias that is added, or None.
    """

    logits: Map
    weight_VD: Tensor | None = None
    bias_V: Tensor | None = None


def float32_product(head: nn.Module, dtype: torch.dtype) -> HeadProduct:
    """The product of an output head.

    Raises:
        RbpxError: the head is not a plain matrix product and its 16-bit weights are offloaded, so they cannot be
            widened to float32.
    """
    if type(head) is nn.Linear and hasattr(head, "_hf_hook"):  # accelerate's hook of a model split over devices
        head = _in_memory(head)
    elif dtype != torch.float32 and any(parameter.is_meta for parameter in head.parameters()):
        raise RbpxError(f"its head, a {type(head).__name__}, does not fit into memory; measure it with dtype=float32")
    bias: Tensor | None = getattr(head, "bias", None)
    if isinstance(head, nn.Linear) and type(head) in (nn.Linear, _MovingLinear) and head.weight.device.type == "cpu":
        weight_VD, bias_V = head.weight.detach(), None if bias is None else bias.detach()
        logits: Map = head if dtype == torch.float32 else lambda h_ND: linear_float32(h_ND, weight_VD, bias_V)
        return HeadProduct(logits, weight_VD, bias_V)
    if dtype == torch.float32:
        return HeadProduct(lambda hidden_ND: head(hidden_ND).float())
    if isinstance(head, nn.Linear) and head.weight.is_cuda:
        weight_DV = head.weight.T

        def on_gpu(hidden_ND: Tensor) -> Tensor:  # no float32 copy of the head; addmm with out_dtype is broken
            logits_NV = torch.mm(hidden_ND.to(weight_DV.device), weight_DV, out_dtype=torch.float32)
            return logits_NV if bias is None else logits_NV + bias.float()

        return HeadProduct(on_gpu)
    wide = copy.deepcopy(head).float()
    return HeadProduct(lambda hidden_ND: wide(hidden_ND.float()))


class _MovingLinear(nn.Linear):
    """A linear layer that moves its input to the device of its weights."""

    def forward(self, hidden_ND: Tensor) -> Tensor:
        return super().forward(hidden_ND.to(self.weight.device))


def _in_memory(head: nn.Linear) -> nn.Linear:
    """The head of a split model, loaded into memory once; its hook would fetch it for every chunk of positions.

    Offloaded weights are on the meta device except while their hook has fetched them.
    """
    from accelerate.utils import align_module_device

    resident = _MovingLinear(
        head.in_features, head.out_features, bias=head.bias is not None, device="meta", dtype=head.weight.dtype
    )
    with align_module_device(head):
        weights = {name: nn.Parameter(weight.detach(), requires_grad=False) for name, weight in head.named_parameters()}
    resident.load_state_dict(weights, assign=True)
    return resident
