"""What a model keeps of tokens that it has read, so that texts which begin alike are read once up to where they part.

Keys and values stay where they were computed: those of a beginning that many texts share lie in memory once, and are
joined to what follows layer by layer, for the texts of one pass. Caches of other kinds, such as the states of Mamba,
are as long as one token, and are copied for each text. `continues` tries a model's caches on a text of its own.

Shapes: R rows, texts that were read together; T tokens, D hidden width.
"""

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from rbpx.models.devices import input_device
from rbpx.models.head import head_input
from rbpx.models.lengths import beyond_rounding, rope_kind, ropes

_NAMES: Final = ("past_key_values", "cache_params")  # what models call the cache that they are given
# Frequencies of these positions depend on the length of the whole text, so a beginning cannot be read without its end.
_OF_WHOLE_LENGTH: Final = ("dynamic", "longrope")


class _Joined:
    """Mixin for a layer of attention that keeps the keys and values of its own pass, and knows those before it.

    Attributes:
        before: the layer's keys and values up to this pass; None at the beginning.
        rows: [R], the row there that each row of this pass continues.
        keeps: whether something will continue this pass.
    """

    before: "_Joined | None" = None
    rows: Tensor
    keeps: bool
    keys: Tensor
    values: Tensor
    is_initialized: bool
    n_read = 0

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """The keys and values that this pass attends to: those before it, and its own."""
        if self.keeps:
            self.keys, self.values, self.is_initialized = key_states, value_states, True
            self._count(key_states.shape[-2])
        if self.before is None:
            return key_states, value_states
        key_parts, value_parts = self.before.taken(self.rows)
        past = [self._seen(torch.cat(parts, dim=-2)) for parts in (key_parts, value_parts)]
        return torch.cat([past[0], key_states], dim=-2), torch.cat([past[1], value_states], dim=-2)

    def taken(self, rows: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Keys and values of some rows, pass by pass from the beginning."""
        rows = rows.to(self.keys.device)
        parts: tuple[list[Tensor], list[Tensor]] = ([], [])
        if self.before is not None:
            parts = self.before.taken(self.rows.to(rows.device)[rows])
        for part, own in zip(parts, (self.keys, self.values), strict=True):
            part.append(own.expand(len(rows), *own.shape[1:]) if len(own) == 1 else own[rows])
        return parts

    def get_seq_length(self) -> int:
        """Number of tokens that were read."""
        return self.n_read

    def _count(self, n_tokens: int) -> None:
        self.n_read += n_tokens

    def _seen(self, past: Tensor) -> Tensor:
        return past


class _Full(_Joined, DynamicLayer):  # type: ignore[misc]
    """A layer that attends to all tokens before."""


class _Sliding(_Joined, DynamicSlidingWindowLayer):  # type: ignore[misc]
    """A layer that attends to the last tokens before."""

    def _count(self, n_tokens: int) -> None:
        super()._count(n_tokens)
        self.cumulative_length = self.n_read

    def _seen(self, past: Tensor) -> Tensor:
        first = max(0, past.shape[-2] - self.sliding_window + 1)
        return past[:, :, first:]


@dataclass(frozen=True, eq=False)
class Past:
    """The beginnings that a model has read, or is about to read.

    Attributes:
        name: what the model calls its cache.
        cache: of the model, with one row for each beginning.
        n_tokens: of each beginning, the same for all.
    """

    name: str
    cache: Cache
    n_tokens: int = 0

    def given(self) -> dict[str, Any]:
        """The arguments with which the model reads on."""
        return {self.name: self.cache, "use_cache": True}

    def read_on(self, model: Any, ids_RT: Tensor, rows: Sequence[int] | None) -> "Past":
        """Read the next tokens of some beginnings, each with what follows it, for something to follow in its turn.

        Args:
            model: the model.
            ids_RT: the tokens.
            rows: the beginning that each row continues; None where nothing was read before.
        """
        further = self.branched(rows, keeps=True)
        head_input(model, ids_RT, further.given())
        return Past(self.name, further.cache, self.n_tokens + ids_RT.shape[1])

    def branched(self, rows: Sequence[int] | None, keeps: bool) -> "Past":
        """A cache with a row for each of the given rows of this one, which stays as it is."""
        cache = copy.copy(self.cache)
        index = None if rows is None else torch.as_tensor(rows)
        cache.layers = [_branched(layer, index, keeps) for layer in self.cache.layers]
        return Past(self.name, cache, self.n_tokens)


def _branched(layer: Any, rows: Tensor | None, keeps: bool) -> Any:
    if type(layer) in (DynamicLayer, _Full):
        other: Any = _Full()
    elif type(layer) in (DynamicSlidingWindowLayer, _Sliding):
        other = _Sliding(layer.sliding_window)
    else:
        other = copy.copy(layer)
        for name, value in vars(layer).items():
            if isinstance(value, dict):  # of the states of linear attention
                setattr(other, name, dict(value))
        if rows is not None:
            other.reorder_cache(rows)
        return other
    other.keeps = keeps
    if rows is not None:
        other.before, other.rows = layer, rows
        other._count(layer.n_read)
    return other


def empty_past(model: Any) -> Past | None:
    """The past of a model that has read nothing; None if it takes no cache of transformers."""
    takes = inspect.signature(model.forward).parameters
    name = next((name for name in _NAMES if name in takes), None)
    if name is None or any(rope_kind(rope) in _OF_WHOLE_LENGTH for rope in ropes(model)):
        return None
    return Past(name, DynamicCache(config=model.config))


def continues(model: Any, past: Past, ids: Sequence[int], parts: Sequence[int]) -> bool:
    """Whether a model that reads a text in parts gets the states of the text read whole, but for rounding.

    Any error of the model says no: it can then be read whole, and what is wrong there is raised by that.

    Args:
        model: the model.
        past: its empty past.
        ids: the text.
        parts: where it is divided, two places.
    """
    first, second = parts
    try:
        with torch.inference_mode():
            ids_RT = torch.as_tensor(ids, dtype=torch.int64, device=input_device(model))[None]
            whole = head_input(model, ids_RT)[:, second:].float()
            begun = past.read_on(model, ids_RT[:, :first], None)
            begun = begun.read_on(model, ids_RT[:, first:second].repeat(3, 1), [0, 0, 0])
            ended = head_input(model, ids_RT[:, second:].repeat(2, 1), begun.branched([2, 0], keeps=False).given())
            return not beyond_rounding(ended, whole, model.dtype)
    except Exception:  # each architecture fails in its own way
        return False
