"""The linear layers of a model on the CPU by oneDNN, whatever its code calls them.

Torch calls MKL for products of float32, which on AMD's Zen 4 takes up to a fifth more time than the other library that
torch comes with. It is asked by the operation that torch's own compiler calls, and leaves the weights where they are.

Shapes: N positions, D width of a layer's input, V of its output.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class LinearByOneDNN(TorchFunctionMode):
    """While it is entered, and gradients are not asked for, products of float32 in CPU memory are formed by oneDNN."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Form the product of a linear layer or of GPT-2's Conv1D, or call what was called."""
        if func is F.linear and not kwargs and _fits(*args):
            states_ND, weight_VD, *rest = args
            return _product(states_ND, weight_VD, rest[0] if rest else None)
        if func is torch.addmm and not kwargs and _fits(args[1], args[2].T, args[0]):
            return _product(args[1], args[2].T, args[0])
        return func(*args, **(kwargs or {}))


def _product(states_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None) -> Any:
    return torch.ops.mkldnn._linear_pointwise(states_ND, weight_VD, bias_V, "none", [], "")


def _fits(states_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None) -> bool:
    operands = [states_ND, weight_VD, *([] if bias_V is None else [bias_V])]
    return (
        _HAS_ONEDNN
        and not torch.is_grad_enabled()
        and states_ND.ndim > 1
        and states_ND.numel() > 0
        and weight_VD.ndim == 2
        and (bias_V is None or bias_V.ndim == 1)
        and all(type(operand) in (Tensor, nn.Parameter) for operand in operands)
        and all(operand.dtype == torch.float32 and operand.device.type == "cpu" for operand in operands)
    )
