"""A model's output head: hidden states in, the float32 logits that the model itself would emit out.

Shapes: B windows, T tokens, N positions, D hidden width, V vocabulary.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

_PROBE_LOGIT = 100.0  # the probe drives logits this far, where a soft cap shows itself
_PROBE_TOKENS = 8

Map = Callable[[Tensor], Tensor]


class _HeadReachedError(Exception):
    """Raised inside the forward pass where the head would begin: what it was given is all that is wanted."""


def head_input(model: nn.Module, ids_BT: Tensor) -> Tensor:
    """The exact tensor [B, T, D] that the model feeds to its output head; logits are not computed."""
    held: list[Tensor] = []

    def stop(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        held.append(args[0])
        raise _HeadReachedError

    hook = _output_head(model).register_forward_pre_hook(stop)
    try:
        model(input_ids=ids_BT, use_cache=False)
    except _HeadReachedError:
        return held[0]
    finally:
        hook.remove()
    raise ValueError(f"{type(model).__name__} did not call its output head")


def _output_head(model: Any) -> nn.Module:
    head: nn.Module | None = model.get_output_embeddings()
    if head is None:
        raise ValueError(f"{type(model).__name__} has no output head")
    return head


@dataclass(frozen=True)
class Head:
    """How hidden states become logits.

    Attributes:
        logits: hidden states [N, D] -> float32 logits [N, V]; None where the model must be run whole.
        after: what the model does behind the head's product: identity, scale, softcap, or unknown.
        vocab_size: V, rows that compete for a rank, padded ones included.
    """

    logits: Map | None
    after: str
    vocab_size: int


def _after_head(model: Any, head: nn.Module) -> tuple[str, Map | None, int]:
    """Find what the model does behind its head, by a few tokens whose head input is driven up; see `_PROBE_LOGIT`."""
    n_tokens = model.get_input_embeddings().weight.shape[0]
    ids_BT = (torch.arange(_PROBE_TOKENS, device=model.device) * 7919 % n_tokens)[None]
    hidden_BTD = head_input(model, ids_BT)
    gain = _PROBE_LOGIT / float(head(hidden_BTD).float().abs().max())
    plain = head(hidden_BTD * gain).float()
    hook = head.register_forward_pre_hook(lambda module, args: (args[0] * gain,))
    try:
        emitted = model(input_ids=ids_BT, use_cache=False).logits.float()
    finally:
        hook.remove()
    width = int(emitted.shape[-1])
    if emitted.shape != plain.shape:
        return "unknown", None, width
    slack = 4 * torch.finfo(model.dtype).eps  # the same kernel twice; only the rounding of the factor differs

    def same(candidate: Tensor) -> bool:
        return torch.allclose(candidate, emitted, rtol=slack, atol=slack * float(emitted.abs().max()))

    if same(plain):
        return "identity", lambda logits: logits, width
    scale = float((emitted.double() * plain.double()).sum() / (plain.double() ** 2).sum())
    scale = _configured(scale, model.config.get_text_config())
    if same(scale * plain):
        return f"scale {scale:.9g}", lambda logits: logits * scale, width
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    if cap and same(cap * torch.tanh(plain / cap)):
        return f"softcap {cap:.9g}", lambda logits: cap * torch.tanh(logits / cap), width
    return "unknown", None, width


def _configured(scale: float, config: Any) -> float:
    """The configured factor that a measured one rounds to; its digits come from the configuration, not the probe."""
    values = [float(v) for v in config.to_dict().values() if isinstance(v, int | float) and v]
    near = [c for v in values for c in (v, 1 / v) if abs(c / scale - 1) < 0.02]
    return min(near, key=lambda c: abs(c - scale), default=scale)


def open_head(model: Any) -> Head:
    """Probe the model once and return its head as one map to float32 logits, whatever the weights' dtype.

    In 16-bit models the product is formed in float32 from the 16-bit weights and states, because logits that are
    rounded to 16 bits tie and would move ranks.
    """
    with torch.inference_mode():
        module = _output_head(model)
        after, finish, vocab_size = _after_head(model, module)
    if finish is None:
        return Head(None, after, vocab_size)
    product = _float32_product(module, model.dtype)
    return Head(lambda hidden_ND: finish(product(hidden_ND)), after, vocab_size)


def _float32_product(head: nn.Module, dtype: torch.dtype) -> Map:
    if dtype == torch.float32:
        return lambda hidden_ND: head(hidden_ND).float()
    if isinstance(head, nn.Linear) and head.weight.is_cuda:
        weight_DV = head.weight.T
        bias: Tensor | None = head.bias

        def on_gpu(hidden_ND: Tensor) -> Tensor:  # no float32 copy of the head; addmm with out_dtype is broken
            logits_NV = torch.mm(hidden_ND, weight_DV, out_dtype=torch.float32)
            return logits_NV if bias is None else logits_NV + bias.float()

        return on_gpu
    wide = copy.deepcopy(head).float()
    return lambda hidden_ND: wide(hidden_ND.float())
