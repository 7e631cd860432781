"""Finds which windows a model may read in one batch; in some models states depend on the longest text of the batch.

longrope's switch lengths are known; a trial on loading detects other causes. Shapes: B windows, T tokens.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from rbpx.errors import RbpxError
from rbpx.models.devices import input_device
from rbpx.models.head import head_input

_TRIAL: Final = 256  # tokens of the longer window: beyond what Reformer reads without hashing, and half of most windows
_FEW: Final = 8  # tokens of a window in which one that is seen from before weighs much
# Largest relative difference of equal states: float32 rounding is below
# 1e-5, a position or a key too many or too few is above 1e-2.
_ROUNDING_SHARE: Final = {torch.float32: 1e-4, torch.float64: 1e-4}
_ROUNDING_SHARE_16: Final = 0.0625


@dataclass(frozen=True)
class Lengths:
    """The lengths of text that a batch may mix without changing any state: none on both sides of a border, or `one`."""

    borders: tuple[int, ...] = ()
    one: bool = False

    def kind(self, n_tokens: int) -> int:
        """The class of a text; texts of one class may share a batch."""
        return n_tokens if self.one else bisect_left(self.borders, n_tokens)


def ropes(model: Any) -> Iterator[dict[str, Any]]:
    """The rotary parameters in a configuration, possibly one per kind of layer."""
    config = model.config.get_text_config(decoder=True)
    left = [getattr(config, name, None) for name in ("rope_parameters", "rope_scaling")]
    while left:
        rope = left.pop()
        if isinstance(rope, dict):
            yield rope
            left += rope.values()


def rope_kind(rope: dict[str, Any]) -> str | None:
    """The kind of rotary positions."""
    return rope.get("rope_type", rope.get("type"))


def beyond_rounding(states: Tensor, other: Tensor, dtype: torch.dtype) -> bool:
    """Whether states differ by more than rounding in that dtype; true where one is NaN."""
    share = _ROUNDING_SHARE.get(dtype, _ROUNDING_SHARE_16)
    other = other.float()
    return not bool(((states.float() - other).abs() <= share * other.abs().max()).all())


def lengths_of(model: Any, context: int | None, is_shared: bool = False) -> Lengths:
    """Determine which lengths a batch may mix, by reading a long and a short window alone and together.

    The model has read nothing yet; processes that share it would have to agree on what a batch may mix.

    Raises:
        RbpxError: its ranks would not be found again: it reads one input twice with different states, its predictions
            depend on later tokens, or what it has read makes another model of it.
    """
    longs = (rope for rope in ropes(model) if rope_kind(rope) == "longrope")  # beyond these all frequencies change
    borders = tuple(sorted({int(rope["original_max_position_embeddings"]) for rope in longs}))
    kind, settings = type(model).__name__, _settings(model)
    n_long = min(n for n in (_TRIAL, context, *borders) if n is not None)
    n_short = max(1, n_long // 4)
    ids = (
        torch.arange(n_long + n_short, device=input_device(model)) * 7919 % model.get_input_embeddings().weight.shape[0]
    )
    ids_BT = torch.zeros((2, n_long), dtype=torch.int64, device=ids.device)
    ids_BT[0], ids_BT[1, :n_short] = ids[:n_long], ids[n_long:]
    with torch.inference_mode():  # the long one first: what is short may switch off what is not causal
        long = head_input(model, ids_BT[:1])
        tried = [_with_other_end(model, ids_BT[:1, :n]) for n in (n_long, min(n_long, _FEW))]
        short = head_input(model, ids_BT[1:, :n_short])
    if not all(bool(states.isfinite().all()) for states in (long, short, *(each for pair in tried for each in pair))):
        return Lengths(borders)  # ranking will fail and name the position
    again = tried[0][0]
    if beyond_rounding(again, long[:, : again.shape[1]], model.dtype):
        raise RbpxError(
            f"{kind} reads the same {n_long} tokens twice with different states, so no rank of it would be found "
            "again; measure a model without chance in its forward pass"
        )
    slack = max(16 * torch.finfo(model.dtype).eps, _ROUNDING_SHARE[torch.float32])
    if not all(torch.allclose(*pair, rtol=slack, atol=slack * float(pair[0].abs().max())) for pair in tried):
        raise RbpxError(f"{kind} is not causal: its predictions depend on later tokens")
    now = _settings(model)
    switched = next((key for key, word in settings.items() if now.get(key) != word), None)
    if switched is not None:
        raise RbpxError(
            f"{kind} is another model once it has read {n_short} or {n_long} tokens: its {switched[1]} was "
            f"{settings[switched]} and is {now.get(switched)}; to measure that one, say so in its config.json"
        )
    if is_shared:
        return Lengths(borders)
    with torch.inference_mode():
        both = head_input(model, ids_BT)
    differs = any(
        beyond_rounding(together, alone, model.dtype)
        for together, alone in ((both[:1], long), (both[1:, :n_short], short))
    )
    return Lengths(borders, differs)


def _with_other_end(model: Any, ids_BT: Tensor) -> tuple[Tensor, Tensor]:
    """States of the first half of a window, with what follows and with one token over and over."""
    n_kept, other_BT = ids_BT.shape[1] // 2 | 1, ids_BT.clone()  # odd, so that no block of tokens ends there
    other_BT[:, n_kept:] = ids_BT[:, :1]
    before, after = (head_input(model, ids)[:, :n_kept].float() for ids in (ids_BT, other_BT))
    return before, after


def _settings(model: Any) -> dict[tuple[str, str], str]:
    named = ((name, vars(module)) for name, module in model.named_modules())
    return {(name, key): word for name, own in named for key, word in own.items() if isinstance(word, str)}
