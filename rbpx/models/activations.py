"""Activations that transformers puts together from several operations, in the one operation that torch has for them."""

from torch import nn

# 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), in eight passes over memory: a fifth of GPT-2's time on a CPU.
_TANH_GELU = ("NewGELUActivation", "FastGELUActivation")


def in_one_pass(model: nn.Module) -> None:
    """Replace them in a model, whose states then differ by rounding."""
    for module in model.modules():
        for name, child in module.named_children():
            if type(child).__name__ in _TANH_GELU:
                setattr(module, name, nn.GELU(approximate="tanh"))
