"""The product of hidden states with a matrix, in float32 on the CPU, whatever the precision of the weights.

Torch has two libraries for it. It calls MKL for float32, which on AMD's Zen 4 takes 1.1 to 1.2 times the time of
oneDNN, and no more memory; so oneDNN is asked, by the operation that torch's own compiler calls.

Shapes: N positions, D hidden width, V vocabulary or width of a layer.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Map = Callable[[Tensor], Tensor]
HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def linear_float32(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None) -> Tensor:
    """Float32 logits [N, V] of states [N, D]; 16-bit weights are widened as they are read."""
    hidden_ND, weight_VD = hidden_ND.to("cpu", torch.float32), weight_VD.float()
    bias_V = None if bias_V is None else bias_V.float()
    return by_onednn(hidden_ND, weight_VD, bias_V) if HAS_ONEDNN else torch.nn.functional.linear(hidden_ND, weight_VD, bias_V)


def by_onednn(states_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None) -> Tensor:
    """A linear layer of float32 [..., D] -> [..., V]; the weights may be those of a layer or their transpose, as a view."""
    product_NV: Tensor = torch.ops.mkldnn._linear_pointwise(states_ND, weight_VD, bias_V, "none", [], "")
    return product_NV
