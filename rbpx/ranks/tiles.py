"""Ranks targets from hidden states and a head matrix on the CPU, one tile of the vocabulary at a time.

A tile, many positions by a thousand entries, stays in a core's cache until it is counted. Most are counted before the
tile with the target's own logit, when that is known only up to rounding: logits within the bounds are kept and compared
at the end with the target's logit from its own tile, so counts, ties included, are those of the definition. The few
rows where that fails are ranked again with all of their logits at once.

Shapes: N positions, n of them in a slab of one thread, D hidden width, V vocabulary, v entries in a tile.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rbpx.ranks.cpu_kernel import TileCounter
from rbpx.ranks.cpu_product import ROWS, best_dtype, tile_product, whole_blocks
from rbpx.ranks.definition import Map, NonFiniteLogits, TokenRanks, linear_float32, rank_hidden

_TILE_ENTRIES = 1024  # of the vocabulary; with `_SLAB_ROWS` positions a tile has a MiB, the size of a core's cache
_SLAB_ROWS = 252  # most positions that a thread ranks at a time
_FEWEST_ROWS = 64  # a slab with fewer does not pay for a thread of its own
_ALL_TILES_BYTES = 32 << 20  # of all threads together
_ROUNDING = 2.0**-20  # of the sum of |h w|: many times the effect of the order of float32 additions


def rank_tiles(
    hidden_ND: Tensor, targets_N: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None, finish: Map | None = None
) -> TokenRanks:
    """Rank as `rank_hidden` does, for a head that is a matrix product, without [N, V] logits.

    The head's matrix is on the CPU, of any dtype; products are formed in float32. `finish` is what the model does to
    each logit by itself afterwards, monotonically: a scale, a soft cap.

    Raises:
        NonFiniteLogits: as `rank_hidden`.
        ValueError: there is not one target per position.
    """
    head = (weight_VD, bias_V, finish)

    def begin(hidden_nD: Tensor, targets_n: Tensor) -> TileCounter:
        low_n, high_n = _bounds(hidden_nD, targets_n, *head)
        return TileCounter(targets_n.numpy(), low_n.numpy(), high_n.numpy())

    counters = add_tiles(hidden_ND, targets_N, head, begin)
    finite_N = joined(counters, "finite_n")
    if not finite_N.all():
        raise NonFiniteLogits(int(finite_N.argmin()))
    greater_N, ties_N, logprob_N, exact_N = (
        joined(counters, name) for name in ("greater_n", "ties_n", "logprob_n", "exact_n")
    )
    if not exact_N.all():
        (again,) = np.nonzero(~exact_N)
        states, targets = hidden_ND.cpu()[again], targets_N.cpu()[again]
        try:
            ranks = rank_hidden(states, targets, lambda h_nD: _whole_logits(h_nD, *head), len(weight_VD))
        except NonFiniteLogits as problem:
            raise NonFiniteLogits(int(again[problem.row])) from None
        greater_N[again], ties_N[again], logprob_N[again] = ranks.greater, ranks.ties, ranks.logprob
    return TokenRanks(greater_N, ties_N, logprob_N)


HeadMatrix = tuple[Tensor, Tensor | None, Map | None]  # weights, bias, and what follows them


class Sums(Protocol):
    """Accumulates statistics of some rows, tile by tile."""

    def add(self, tile_nv: npt.NDArray[np.float32], start: int) -> None:
        """Add a tile whose first column is the entry `start` of the vocabulary."""


Counter = TypeVar("Counter", bound=Sums)


def add_tiles(
    hidden_ND: Tensor, targets_N: Tensor, head: HeadMatrix, begin: Callable[[Tensor, Tensor], Counter]
) -> list[Counter]:
    """Form the logits of each slab of positions tile by tile, and accumulate them; threads share the slabs.

    `begin` maps (hidden states, targets) of a slab to its accumulator; returned are those of all slabs, in the order of
    the positions, or one of no rows.
    """
    if len(hidden_ND) != len(targets_N):
        raise ValueError(f"{len(hidden_ND)} hidden states for {len(targets_N)} targets")
    n_threads = torch.get_num_threads()
    n_most = min(_SLAB_ROWS, max(1, _ALL_TILES_BYTES // (4 * _TILE_ENTRIES * n_threads)))
    n_each = max(_FEWEST_ROWS, -(-len(targets_N) // n_threads))
    n_rows = -(-n_each // -(-n_each // n_most))  # equal slabs per thread
    n_rows += -n_rows % ROWS
    hidden_ND, targets_N = hidden_ND.to("cpu", best_dtype(hidden_ND, head[0])), targets_N.to("cpu", torch.int64)
    slabs = list(zip(torch.split(hidden_ND, n_rows), torch.split(targets_N, n_rows), strict=True))
    n_slabs = -(-len(slabs) // n_threads)
    shares = [slabs[first : first + n_slabs] for first in range(0, len(slabs), n_slabs)]
    add = partial(_add_slabs, head, begin)
    if len(shares) == 1:
        return add(slabs)
    with ThreadPoolExecutor(n_threads, initializer=lambda: torch.set_num_threads(1)) as threads:
        return [counter for counters in threads.map(add, shares) for counter in counters]


def joined(counters: Sequence[Sums], name: str) -> npt.NDArray[Any]:
    """One attribute of the accumulators, concatenated over all slabs."""
    return np.concatenate([getattr(counter, name) for counter in counters])


def _add_slabs(
    head: HeadMatrix, begin: Callable[[Tensor, Tensor], Counter], slabs: list[tuple[Tensor, Tensor]]
) -> list[Counter]:
    weight_VD, bias_V, finish = head
    with torch.inference_mode():  # each thread has a mode of its own
        counters = [begin(hidden_nD.float(), targets_n) for hidden_nD, targets_n in slabs]
        states = [whole_blocks(hidden_nD.contiguous()) for hidden_nD, _ in slabs]
        buffer = torch.empty(len(states[0]) * _TILE_ENTRIES)
        for start in range(0, len(weight_VD), _TILE_ENTRIES):
            bias_v = None if bias_V is None else bias_V[start : start + _TILE_ENTRIES]
            logits = tile_product(weight_VD[start : start + _TILE_ENTRIES], bias_v, slabs[0][0].dtype)
            for (_, targets_n), states_nD, counter in zip(slabs, states, counters, strict=True):
                tile_nv = logits(states_nD, buffer)[: len(targets_n)]
                counter.add((tile_nv if finish is None else finish(tile_nv)).numpy(), start)
        return counters


def _bounds(
    hidden_nD: Tensor, targets_n: Tensor, weight_VD: Tensor, bias_V: Tensor | None, finish: Map | None
) -> tuple[Tensor, Tensor]:
    """Float32 values that enclose the target's logit, in whatever order its products are added."""
    terms_nD = hidden_nD * weight_VD[targets_n].float()
    logit_n, size_n = terms_nD.sum(1), terms_nD.abs().sum(1)
    if bias_V is not None:
        logit_n, size_n = logit_n + bias_V[targets_n].float(), size_n + bias_V[targets_n].float().abs()
    bounds = [logit_n - _ROUNDING * size_n, logit_n + _ROUNDING * size_n]
    if finish is not None:
        bounds = [finish(bound_n) for bound_n in bounds]
        slack_n = 4 * torch.finfo(torch.float32).eps * torch.maximum(*(bound_n.abs() for bound_n in bounds))
        bounds = [torch.minimum(*bounds) - slack_n, torch.maximum(*bounds) + slack_n]
    return bounds[0], bounds[1]


def _whole_logits(hidden_nD: Tensor, weight_VD: Tensor, bias_V: Tensor | None, finish: Map | None) -> Tensor:
    logits_nV = linear_float32(hidden_nD, weight_VD, bias_V)
    return logits_nV if finish is None else finish(logits_nV)
