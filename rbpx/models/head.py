"""A model's output head: maps hidden states to the float32 logits that the model would emit.

Shapes: B windows, T tokens, N positions, D hidden width, V vocabulary.
"""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn

from rbpx.errors import RbpxError
from rbpx.models.devices import input_device
from rbpx.models.tensor_parallel import TensorGroup, part_of_head
from rbpx.ranks.definition import Map, TokenRanks, begin_ranks, linear_float32
from rbpx.ranks.split_vocabulary import VocabularyPart, rank_part

_PROBE_LOGIT = 100.0  # largest logit of the probe, large enough for a soft cap to have an effect
_ROUNDING = 1e-6  # relative error of a factor that was measured in float32
_PROBE_TOKENS = 8  # several rows of the vocabulary, at no cost


@dataclass(frozen=True, eq=False)
class HeadProduct:
    """The product of a head, formed in float32 from weights of any dtype.

    Attributes:
        logits: hidden states [N, D] -> float32 [N, V].
        weight_VD: if the head is a plain matrix product in CPU memory.
    """

    logits: Map
    weight_VD: Tensor | None = None
    bias_V: Tensor | None = None


def float32_product(head: nn.Module, dtype: torch.dtype) -> HeadProduct:
    """The product of an output head."""
    if type(head) is nn.Linear and hasattr(head, "_hf_hook"):  # accelerate's hook of a model split over devices
        head = _in_memory(head)
    bias: Tensor | None = getattr(head, "bias", None)
    if isinstance(head, nn.Linear) and type(head) in (nn.Linear, _MovingLinear) and head.weight.device.type == "cpu":
        weight_VD, bias_V = head.weight.detach(), None if bias is None else bias.detach()
        logits: Map = head if dtype == torch.float32 else lambda h_ND: linear_float32(h_ND, weight_VD, bias_V)
        return HeadProduct(logits, weight_VD, bias_V)
    if dtype == torch.float32:
        return HeadProduct(lambda hidden_ND: head(hidden_ND).float())
    if isinstance(head, nn.Linear) and head.weight.is_cuda:
        weight_DV, width = _of_whole_tiles(head.weight.detach()).T, len(head.weight)

        def on_gpu(hidden_ND: Tensor) -> Tensor:  # no float32 copy of the head; addmm with out_dtype is broken
            logits_NV = torch.mm(hidden_ND.to(weight_DV.device), weight_DV, out_dtype=torch.float32)[:, :width]
            return logits_NV if bias is None else logits_NV.add_(bias)

        return HeadProduct(on_gpu)
    wide = copy.deepcopy(head).float()
    return HeadProduct(lambda hidden_ND: wide(hidden_ND.float()))


def _of_whole_tiles(weight_VD: Tensor) -> Tensor:
    """Zero-padded to a multiple of 64 rows, because cuBLAS is slower for other widths."""
    n_more = -len(weight_VD) % 64
    return nn.functional.pad(weight_VD, (0, 0, 0, n_more)) if n_more else weight_VD


class _MovingLinear(nn.Linear):
    """Moves its input to the device of its weights."""

    def forward(self, hidden_ND: Tensor) -> Tensor:
        return super().forward(hidden_ND.to(self.weight.device))


def _in_memory(head: nn.Linear) -> nn.Linear:
    """The head of a split model, loaded once; otherwise its hook fetches it for every chunk of positions.

    Offloaded weights are on the meta device, except while their hook has fetched them.
    """
    from accelerate.utils import align_module_device

    resident = _MovingLinear(
        head.in_features, head.out_features, bias=head.bias is not None, device="meta", dtype=head.weight.dtype
    )
    with align_module_device(head):
        weights = {name: nn.Parameter(weight.detach(), requires_grad=False) for name, weight in head.named_parameters()}
    resident.load_state_dict(weights, assign=True)
    return resident


NO_PAST: Final[Mapping[str, Any]] = {"use_cache": False}


class _HeadReachedError(Exception):
    """Stops the forward pass at the head."""


def head_input(model: nn.Module, ids_BT: Tensor, past: Mapping[str, Any] = NO_PAST) -> Tensor:
    """The exact tensor [B, T, D] that the model feeds to its output head, after what it read before (`past`)."""
    inputs: list[Tensor] = []

    def stop(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        inputs.append(args[0])
        raise _HeadReachedError

    hook = _output_head(model).register_forward_pre_hook(stop)
    try:
        model(input_ids=ids_BT, **past)
    except _HeadReachedError:
        pass
    finally:
        hook.remove()
    return inputs[0]


def _output_head(model: Any) -> nn.Module:
    head: nn.Module | None = model.get_output_embeddings()
    if head is None:
        raise RbpxError(f"{type(model).__name__} has no output head, so it is not a causal language model")
    return head


@dataclass(frozen=True)
class Head:
    """How hidden states become logits.

    Attributes:
        product: hidden states [N, D] -> float32 [N, at least V]; None if the whole model has to run.
        finish: elementwise function that the model applies to the product.
        after: its name: identity, scale, softcap; unknown, or not finite if it cannot be determined.
        vocab_size: V, rows that compete for a rank, padding included.
        part: the rows that `product` gives, where processes share the vocabulary.
    """

    product: HeadProduct | None
    finish: Map | None
    after: str
    vocab_size: int
    part: VocabularyPart | None = None

    @property
    def logits(self) -> Map | None:
        """Hidden states [N, D] -> float32 logits [N, V], or those of `part`; None if the whole model has to run."""
        product, finish = self.product, self.finish
        if product is None:
            return None
        width = self.vocab_size if self.part is None else self.part.width

        def logits(hidden_ND: Tensor) -> Tensor:
            plain_NV = product.logits(hidden_ND)[:, :width]
            return plain_NV if finish is None else finish(plain_NV)

        return logits

    def rank(self, hidden_ND: Tensor, targets_N: Tensor) -> Callable[[], TokenRanks]:
        """Begin to rank the targets of hidden states [N, D], by tiles of the vocabulary if its matrix is on the CPU.

        The returned function waits for the device and gives the ranks.

        Raises:
            NonFiniteLogits: as `rank_logits`; on a GPU the returned function raises it.
            ValueError: there is no product, or there is not one target per position.
        """
        if self.logits is None:
            raise ValueError("This model has to run whole, so its logits are ranked, not its hidden states")
        if self.part is not None:
            ranks = rank_part(hidden_ND, targets_N, self.logits, self.part)
            return lambda: ranks
        matrix = self._matrix()
        if matrix is None:
            return begin_ranks(hidden_ND, targets_N, self.logits, self.vocab_size)
        from rbpx.ranks.tiles import rank_tiles  # imports numba, which takes half a second

        ranks = rank_tiles(hidden_ND, targets_N, *matrix, self.finish)
        return lambda: ranks

    def _matrix(self) -> tuple[Tensor, Tensor | None] | None:
        """The competing rows of the matrix and of its bias; None if it is not a plain one in CPU memory."""
        if self.product is None or self.product.weight_VD is None:
            return None
        bias_V = self.product.bias_V
        return self.product.weight_VD[: self.vocab_size], None if bias_V is None else bias_V[: self.vocab_size]


def without_tiles(head: Head) -> Head:
    """The head without the tile kernel, for work too small to load it."""
    return replace(head, product=None if head.product is None else HeadProduct(head.product.logits))


def without_padding(head: Head, n_token_ids: int) -> Head:
    """The head without the rows of the vocabulary from `n_token_ids` on, which have no token."""
    vocab_size = min(n_token_ids, head.vocab_size)
    return replace(head, vocab_size=vocab_size, part=None if head.part is None else head.part.below(vocab_size))


def _emitted(model: Any, head: nn.Module, ids_BT: Tensor, largest: float | None) -> tuple[Tensor, Tensor]:
    """Substituted float32 head logits, and the model's output for them; both [B, T, V].

    All that follows the head is thus computed in float32; 16-bit rounding would hide a factor near 1 or a high cap. The
    largest absolute logit is scaled to `largest`; None leaves the logits as they are.
    """
    given: list[Tensor] = []

    def replace_output(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        logits_BTV = output.float()
        highest = float(logits_BTV.abs().max())
        if largest is not None and 0 < highest < math.inf:
            logits_BTV = logits_BTV * (largest / highest)
        given.append(logits_BTV)
        return logits_BTV.clone()  # some models change it in place

    hook = head.register_forward_hook(replace_output)
    try:
        emitted: Tensor = model(input_ids=ids_BT, use_cache=False).logits
    finally:
        hook.remove()
    return given[0][..., : emitted.shape[-1]], emitted.to(given[0].device)  # some cut padding rows off


def _after_head(model: Any, head: nn.Module) -> tuple[str, Map | None, int]:
    """What the model does after its head, from a few tokens: name, function, width of the logits.

    A candidate must explain logits scaled to `_PROBE_LOGIT`, where a soft cap has an effect, and the head's own, where
    a small term shows that rounding of large ones would hide.
    """
    n_rows: int = model.get_input_embeddings().weight.shape[0]
    ids_BT = (torch.arange(_PROBE_TOKENS, device=input_device(model)) * 7919 % n_rows)[None]
    plain, emitted = zip(*(_emitted(model, head, ids_BT, largest) for largest in (_PROBE_LOGIT, None)), strict=True)
    width = int(emitted[0].shape[-1])
    if emitted[0].shape != plain[0].shape:
        return "unknown", None, width
    if not all(bool(logits.isfinite().all()) for logits in (*plain, *emitted)):
        return "not finite", None, width
    slack = 4 * torch.finfo(torch.float32).eps  # only the rounding of the factor differs

    def explains(candidate: Map) -> bool:
        return all(
            torch.allclose(candidate(z), y, rtol=slack, atol=slack * float(y.abs().max()))
            for z, y in zip(plain, emitted, strict=True)
        )

    config = model.config.get_text_config(decoder=True)
    if explains(lambda logits_NV: logits_NV):
        return "identity", None, width
    squares = float((plain[0].double() ** 2).sum())
    if squares > 0:
        scale = _configured(float((emitted[0].double() * plain[0].double()).sum()) / squares, config)
        if explains(lambda logits_NV: logits_NV * scale):
            return f"scale {scale:.9g}", lambda logits_NV: logits_NV * scale, width
    for cap in _soft_caps(config):
        softcap = partial(_softcap, cap=cap)
        if explains(softcap):
            return f"softcap {cap:.9g}", softcap, width
    return "unknown", None, width


def _softcap(logits_NV: Tensor, cap: float) -> Tensor:
    """Logits [N, V] squeezed into (-cap, cap): c tanh(z / c)."""
    return (logits_NV / cap).tanh_().mul_(cap)


def _soft_caps(config: Any) -> list[float]:
    named = {key: value for key, value in config.to_dict().items() if "logit" in key and "cap" in key}
    return [float(cap) for cap in named.values() if isinstance(cap, int | float) and cap > 0]


def _configured(scale: float, config: Any) -> float:
    """The configured value that a measured factor matches, the same to the digit on every machine."""
    values = [float(v) for v in config.to_dict().values() if isinstance(v, int | float) and v]
    near = [c for v in values for c in (v, 1 / v) if abs(c / scale - 1) < _ROUNDING]
    return min(near, key=lambda c: abs(c - scale), default=scale)


def open_head(model: Any, group: TensorGroup | None = None) -> Head:
    """Probe the model once and return its head as a function to float32 logits, for weights of any dtype.

    For 16-bit models the product is formed in float32: logits rounded to 16 bits tie. Of processes that share the model
    (`group`) each computes the logits of its part.

    Raises:
        RbpxError: several processes share it, and its head cannot be divided.
    """
    with torch.inference_mode():
        module = _output_head(model)
        after, finish, vocab_size = _after_head(model, module)
    explained = after not in ("unknown", "not finite")
    if group is not None and explained:
        rows, part = part_of_head(module, group, vocab_size)
        return Head(float32_product(rows, model.dtype), finish, after, vocab_size, part)
    return Head(float32_product(module, model.dtype) if explained else None, finish, after, vocab_size)
