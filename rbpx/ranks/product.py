"""The product of hidden states with a head's matrix, in float32 on the CPU, whatever the precision of the weights.

Shapes: N positions, D hidden width, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Map = Callable[[Tensor], Tensor]


def linear_float32(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None) -> Tensor:
    """Float32 logits [N, V]; 16-bit weights are widened as they are read."""
    hidden_ND, weight_DV = hidden_ND.to("cpu", torch.float32), weight_VD.float().T
    if bias_V is None:
        return torch.mm(hidden_ND, weight_DV)
    return torch.addmm(bias_V.float(), hidden_ND, weight_DV)
