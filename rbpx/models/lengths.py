"""Finds which windows a model may read in one batch; in some models states depend on the longest text of the batch.

longrope's switch lengths are known; a trial on loading detects other causes.

Shapes: B windows, T tokens.
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
# Largest relative difference of equal states: float32 rounding is below
# 1e-5, a position or a key too many or too few is above 1e-2.
_ROUNDING_SHARE: Final = {torch.float32: 1e-4, torch.float64: 1e-4}
_ROUNDING_SHARE_16: Final = 0.0625


@dataclass(frozen=True)
class Lengths:
    """The lengths of text that a batch may mix without changing any state.

    Attributes:
        borders: a batch has no texts on both sides of one of these numbers of tokens.
        one: whether all texts of a batch need one length.
    """

    borders: tuple[int, ...] = ()
    one: bool = False

    def kind(self, n_tokens: int) -> int:
        """The class of a text; texts of one class may share a batch."""
        return n_tokens if self.one else bisect_left(self.borders, n_tokens)


def rope_borders(model: Any) -> tuple[int, ...]:
    """The numbers of tokens beyond which longrope changes the frequencies of the whole batch, in order."""
    longs = [rope for rope in ropes(model) if rope_kind(rope) == "longrope"]
    return tuple(sorted({int(rope["original_max_position_embeddings"]) for rope in longs}))


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


def lengths_of(model: Any, context: int | None) -> Lengths:
    """Determine which lengths a batch may mix, by reading a long and a short window together and alone.

    `context` is the model's longest input, tokens; None for no limit.

    Raises:
        RbpxError: it reads one input twice with different states, so its ranks are not reproducible.
    """
    borders = rope_borders(model)
    n_long = min([n for n in (context, *borders) if n is not None], default=_TRIAL)
    n_long = min(n_long, _TRIAL)
    n_short = max(1, n_long // 4)
    n_rows = model.get_input_embeddings().weight.shape[0]
    ids = torch.arange(n_long + n_short, device=input_device(model)) * 7919 % n_rows
    ids_BT = torch.zeros((2, n_long), dtype=torch.int64, device=ids.device)
    ids_BT[0], ids_BT[1, :n_short] = ids[:n_long], ids[n_long:]
    with torch.inference_mode():
        long, again = (head_input(model, ids_BT[:1]) for _ in range(2))
        short, both = head_input(model, ids_BT[1:, :n_short]), head_input(model, ids_BT)
    if not all(bool(states.isfinite().all()) for states in (long, again, short)):
        return Lengths(borders)  # ranking will fail and name the position
    if beyond_rounding(again, long, model.dtype):
        raise RbpxError(
            f"{type(model).__name__} reads the same {n_long} tokens twice with different states, so no rank of it "
            "would be found again; measure a model without chance in its forward pass"
        )
    differs = any(
        beyond_rounding(together, alone, model.dtype)
        for together, alone in ((both[:1], long), (both[1:, :n_short], short))
    )
    return Lengths(borders, differs)
