"""The linear layers of a model on the CPU by oneDNN, whatever its code calls them.

Shapes: N positions, D width of a layer's input, V of its output.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from rbpx.ranks.product import HAS_ONEDNN, by_onednn


class LinearByOneDNN(TorchFunctionMode):
    """While it is entered, products of float32 states and weights in CPU memory are formed by oneDNN."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Form the product, or call what was called."""
        kwargs = kwargs or {}
        if function is F.linear and not kwargs and len(args) in (2, 3) and _plain(*args):
            return by_onednn(*args)
        if function is torch.addmm and not kwargs and _plain(args[1], args[2].T, args[0]):
            return by_onednn(args[1], args[2].T, args[0])
        return function(*args, **kwargs)


def _plain(states_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None) -> bool:
    tensors = (states_ND, weight_VD) if bias_V is None else (states_ND, weight_VD, bias_V)
    return (
        HAS_ONEDNN
        and weight_VD.ndim == 2
        and states_ND.numel() > 0
        and (bias_V is None or bias_V.ndim == 1)
        and all(type(t) in (Tensor, nn.Parameter) and t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors)
    )
