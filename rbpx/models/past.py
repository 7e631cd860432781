"""A model's cache of tokens read before, so that the shared beginning of several texts is read once.

Keys and values of a shared beginning lie in memory once, and are joined to the continuations layer by layer, per pass.
Other caches, such as Mamba's states, are as long as one token and are copied for each text. Shapes: R rows, texts that
were read together; T tokens, D hidden width.
"""

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from rbpx.models.devices import input_device
from rbpx.models.head import NO_PAST, head_input
from rbpx.models.lengths import beyond_rounding, rope_kind, ropes

_NAMES: Final = ("past_key_values", "cache_params")  # argument names of the cache
# These frequencies depend on the length of the whole text, so a beginning cannot be read alone.
_OF_WHOLE_LENGTH: Final = ("dynamic", "longrope")


class _Joined:
    """Mixin for an attention layer's cache: the keys and values of its own pass, and a link to those before.

    Attributes:
        rows: of `before` that each row of this pass continues, [R].
        keeps: whether a later pass will continue this one.
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
        passes = self.before.passes(self.rows)
        n_unseen = self._n_unseen(sum(layer.keys.shape[-2] for layer, _ in passes))
        keys = _joined([(layer.keys, rows) for layer, rows in passes], key_states, n_unseen)
        return keys, _joined([(layer.values, rows) for layer, rows in passes], value_states, n_unseen)

    def passes(self, rows: Tensor) -> "list[tuple[_Joined, Tensor]]":
        """The layers of the passes in which some rows were read, from the beginning, and the rows there."""
        rows = rows.to(self.keys.device)
        return [*([] if self.before is None else self.before.passes(self.rows.to(rows.device)[rows])), (self, rows)]

    def get_seq_length(self) -> int:
        return self.n_read

    def _count(self, n_tokens: int) -> None:
        self.n_read += n_tokens

    def _n_unseen(self, n_tokens: int) -> int:
        """How many of the tokens before this pass it does not attend to."""
        return 0


def _joined(parts: Sequence[tuple[Tensor, Tensor]], own: Tensor, n_unseen: int) -> Tensor:
    """Keys or values of rows of several passes, then of this one, copied once, without the first `n_unseen`."""
    at = -n_unseen
    n_tokens = at + sum(part.shape[-2] for part, _ in parts) + own.shape[-2]
    joined = own.new_empty(*own.shape[:2], n_tokens, own.shape[-1])
    for part, rows in parts:
        seen, begin = part[:, :, max(0, -at) :], max(0, at)
        at += part.shape[-2]
        if len(part) == 1:
            joined[:, :, begin : max(0, at)] = seen
        else:
            torch.index_select(seen, 0, rows, out=joined[:, :, begin : max(0, at)])
    joined[:, :, at:] = own
    return joined


class _Full(_Joined, DynamicLayer):  # type: ignore[misc]
    ...


class _Sliding(_Joined, DynamicSlidingWindowLayer):  # type: ignore[misc]
    def _count(self, n_tokens: int) -> None:
        super()._count(n_tokens)
        self.cumulative_length = self.n_read

    def _n_unseen(self, n_tokens: int) -> int:
        return int(max(0, n_tokens - self.sliding_window + 1))


@dataclass(frozen=True, eq=False)
class Past:
    """The beginnings that a model has read, or is about to read.

    Attributes:
        name: the model's argument for its cache.
        cache: with one row for each beginning.
        n_tokens: the same for all.
    """

    name: str
    cache: Cache
    n_tokens: int = 0

    def given(self) -> dict[str, Any]:
        """The arguments with which the model reads on."""
        return {self.name: self.cache, "use_cache": True}

    def read_on(self, model: Any, ids_RT: Tensor, rows: Tensor | None) -> "Past":
        """Read the next tokens of some beginnings, and return a past that can be continued.

        `rows` [R] is the beginning that each row of `ids_RT` continues; None where nothing was read before.
        """
        further = self.branched(rows, keeps=True)
        head_input(model, ids_RT, further.given())
        return Past(self.name, further.cache, self.n_tokens + ids_RT.shape[1])

    def branched(self, rows: Tensor | None, keeps: bool) -> "Past":
        """A cache with a row for each of the given rows of this one, which is left unchanged."""
        cache = copy.copy(self.cache)
        cache.layers = [_branched(layer, rows, keeps) for layer in self.cache.layers]
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
    """Whether reading a text in parts gives the states of the text read whole, but for rounding.

    Any error of the model means no. `parts` are two or more places where the text is divided; the part between the last
    two is read in three rows at once.
    """
    try:
        with torch.inference_mode():
            ids_RT = torch.as_tensor(ids, dtype=torch.int64, device=input_device(model))[None]
            last = parts[-1]
            whole = head_input(model, ids_RT)[:, last:].float()
            begun = past.read_on(model, ids_RT[:, : parts[0]], None)
            rows = torch.tensor([0, 0, 0, 2, 0], device=ids_RT.device)
            for begin, end in pairwise(parts):
                n_rows = 3 if end == last else 1
                begun = begun.read_on(model, ids_RT[:, begin:end].repeat(n_rows, 1), rows[:n_rows])
            ended = head_input(model, ids_RT[:, last:].repeat(2, 1), begun.branched(rows[3:], keeps=False).given())
            return not beyond_rounding(ended, whole, model.dtype)
    except Exception:  # each architecture fails in its own way
        return False


def nothing_kept(model: Any) -> dict[str, Any]:
    """The arguments with which a model reads texts from their beginning and keeps no cache.

    With an empty cache, transformers does not look for several texts in one row, which would synchronise a GPU. A model
    whose cache is more than keys and values reads without one.
    """
    past = empty_past(model)
    if past is None or past.name != _NAMES[0]:
        return dict(NO_PAST)
    kinds = [type(layer) for layer in past.cache.layers]
    # A cache has as many layers as an encoder, whose decoder may have others.
    n_layers = getattr(model.config.get_text_config(decoder=True), "decoder_layers", len(kinds))
    if not kinds or len(kinds) != n_layers or not {*kinds} <= {DynamicLayer, DynamicSlidingWindowLayer}:
        return dict(NO_PAST)
    return past.branched(None, keeps=False).given()
