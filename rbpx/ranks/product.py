"""A model's output head as a module in, its product in float32 out, wherever its weights lie.

Shapes: N positions, D hidden width, V vocabulary.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rbpx.errors import RbpxError

Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Product:
    """The product of a head, formed in float32 from weights of any dtype.

    Attributes:
        logits: hidden states [N, D] -> float32 [N, V].
        weight_VD: the matrix, where the product is no more than that and lies in the memory of the CPU; else None.
        bias_V: what is added to it, or None.
    """

    logits: Map
    weight_VD: Tensor | None = None
    bias_V: Tensor | None = None


def float32_product(head: nn.Module, dtype: torch.dtype) -> Product:
    """The product of an output head.

    Raises:
        RbpxError: the head is no matrix product and lies outside of memory, so in 16 bits it cannot be had in float32.
    """
    if type(head) is nn.Linear and hasattr(head, "_hf_hook"):  # accelerate's, of a model that is split
        head = _held(head)
    elif dtype != torch.float32 and any(parameter.is_meta for parameter in head.parameters()):
        raise RbpxError(f"its head, a {type(head).__name__}, does not fit into memory; measure it with dtype=float32")
    bias: Tensor | None = getattr(head, "bias", None)
    if isinstance(head, nn.Linear) and type(head) in (nn.Linear, _Held) and head.weight.device.type == "cpu":
        weight_VD, bias_V = head.weight.detach(), None if bias is None else bias.detach()
        plain = (
            (lambda h_ND: head(h_ND)) if dtype == torch.float32 else lambda h_ND: product_of(h_ND, weight_VD, bias_V)
        )
        return Product(plain, weight_VD, bias_V)
    if dtype == torch.float32:
        return Product(lambda hidden_ND: head(hidden_ND).float())
    if isinstance(head, nn.Linear) and head.weight.is_cuda:
        weight_DV = head.weight.T

        def on_gpu(hidden_ND: Tensor) -> Tensor:  # no float32 copy of the head; addmm with out_dtype is broken
            logits_NV = torch.mm(hidden_ND.to(weight_DV.device), weight_DV, out_dtype=torch.float32)
            return logits_NV if bias is None else logits_NV + bias.float()

        return Product(on_gpu)
    wide = copy.deepcopy(head).float()
    return Product(lambda hidden_ND: wide(hidden_ND.float()))


def product_of(
    hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None, out_NV: Tensor | None = None
) -> Tensor:
    """Float32 [N, V] on the CPU, into `out_NV` where there is one; 16-bit weights are widened as they are read."""
    hidden_ND, weight_DV = hidden_ND.to("cpu", torch.float32), weight_VD.float().T
    if bias_V is None:
        return torch.mm(hidden_ND, weight_DV, out=out_NV)
    return torch.addmm(bias_V.float(), hidden_ND, weight_DV, out=out_NV)


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
