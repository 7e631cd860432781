"""Hidden states and a head on the CPU in; the ranks of their targets out, a tile of the vocabulary at a time.

A chunk of positions with the whole vocabulary reads the head's matrix anew for a few positions, and costs up to twice
the product alone. A tile, many positions by a thousand entries, does not, and stays in a core's cache until it is
counted. But its rows are counted before the target's own tile has come by, when the target's logit is known but for its
last digits. So what lies within those digits is kept and judged at the end by the target's logit out of its own tile:
the counts are those of the definition, tie by tie. The few rows where that logit lay elsewhere, or where more than
`NEAR_KEPT` entries lie that near, are ranked again with all of their logits at once.

Shapes: N positions, n of them in a slab of one thread, D hidden width, V vocabulary, v entries in a tile.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import numpy as np
import torch
from torch import Tensor

from rbpx.ranks.cpu_kernel import Tally
from rbpx.ranks.definition import NonFiniteLogits, TokenRanks, rank_hidden
from rbpx.ranks.product import Map, product_of

_ENTRIES = 1024  # in a tile
_ROWS = 512  # at most in a slab
_FEWEST_ROWS = 64  # below it a thread of its own does not pay
_ALL_TILES_BYTES = 32 << 20  # of all threads together
_DIGITS = 2.0**-20  # of the sum of |h w|: what rounding may move a product, many times over


def rank_tiles(
    hidden_ND: Tensor, targets_N: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None, finish: Map | None = None
) -> TokenRanks:
    """Do what `ranks.rank_hidden` does for a head that is a matrix product, without [N, V] logits.

    Args:
        hidden_ND: the states that the model feeds to its output head, on any device.
        targets_N: token ids, integers in [0, V).
        weight_VD: the head's matrix on the CPU, of any dtype; products are formed in float32.
        bias_V: what is added to them.
        finish: what the model does to each logit by itself afterwards, growing or falling with it: a scale, a soft cap.

    Raises:
        NonFiniteLogits: a row of logits holds NaN, +inf or -inf; its `row` counts from the first of all N.
        ValueError: there is not one target per position.
    """
    if len(hidden_ND) != len(targets_N):
        raise ValueError(f"{len(hidden_ND)} hidden states for {len(targets_N)} targets")
    if len(hidden_ND) == 0:
        return rank_hidden(hidden_ND, targets_N, lambda h_nD: h_nD.new_empty(0, len(weight_VD)), len(weight_VD))
    hidden_ND, targets_N = hidden_ND.to("cpu", torch.float32), targets_N.to("cpu", torch.int64)
    threads = torch.get_num_threads()
    rows = min(_ROWS, max(1, _ALL_TILES_BYTES // (4 * _ENTRIES * threads)))
    rows = min(rows, max(_FEWEST_ROWS, -(-len(targets_N) // threads)))
    slabs = (
        torch.split(hidden_ND, rows),
        torch.split(targets_N, rows),
        repeat(weight_VD),
        repeat(bias_V),
        repeat(finish),
    )
    if len(slabs[0]) == 1:
        tallies = [_tally_slab(*next(zip(*slabs, strict=False)))]
    else:
        with ThreadPoolExecutor(threads, initializer=lambda: torch.set_num_threads(1)) as crew:
            tallies = list(crew.map(_tally_slab, *slabs))
    finite_N = np.concatenate([tally.finite_n for tally in tallies])
    if not finite_N.all():
        raise NonFiniteLogits(int(finite_N.argmin()))
    greater_N, ties_N, logprob_N, settled_N = (
        np.concatenate([getattr(tally, column) for tally in tallies])
        for column in ("greater_n", "ties_n", "logprob_n", "settled_n")
    )
    if not settled_N.all():
        (again,) = np.nonzero(~settled_N)
        at_once = _all_at_once(weight_VD, bias_V, finish)
        try:
            whole = rank_hidden(hidden_ND[again], targets_N[again], at_once, len(weight_VD))
        except NonFiniteLogits as problem:
            raise NonFiniteLogits(int(again[problem.row])) from None
        greater_N[again], ties_N[again], logprob_N[again] = whole.greater, whole.ties, whole.logprob
    return TokenRanks(greater_N, ties_N, logprob_N)


def _tally_slab(
    hidden_nD: Tensor, targets_n: Tensor, weight_VD: Tensor, bias_V: Tensor | None, finish: Map | None
) -> Tally:
    with torch.inference_mode():  # a mode of each thread by itself
        low_n, high_n = _enclose(hidden_nD, targets_n, weight_VD, bias_V, finish)
        tally = Tally(targets_n.numpy(), low_n.numpy(), high_n.numpy())
        room = torch.empty(len(hidden_nD) * _ENTRIES)
        for start in range(0, len(weight_VD), _ENTRIES):
            weight_vD = weight_VD[start : start + _ENTRIES]
            bias_v = None if bias_V is None else bias_V[start : start + _ENTRIES]
            tile_nv = room[: len(hidden_nD) * len(weight_vD)].view(len(hidden_nD), len(weight_vD))
            product_of(hidden_nD, weight_vD, bias_v, tile_nv)
            tally.add((tile_nv if finish is None else finish(tile_nv)).numpy(), start)
        return tally


def _enclose(
    hidden_nD: Tensor, targets_n: Tensor, weight_VD: Tensor, bias_V: Tensor | None, finish: Map | None
) -> tuple[Tensor, Tensor]:
    """Between which float32 the target's logit will lie, in whatever order its products are added."""
    terms_nD = hidden_nD * weight_VD[targets_n].float()
    logit_n, size_n = terms_nD.sum(1), terms_nD.abs().sum(1)
    if bias_V is not None:
        logit_n, size_n = logit_n + bias_V[targets_n].float(), size_n + bias_V[targets_n].float().abs()
    ends = [logit_n - _DIGITS * size_n, logit_n + _DIGITS * size_n]
    if finish is not None:
        ends = [finish(end_n) for end_n in ends]
        slack_n = 4 * torch.finfo(torch.float32).eps * torch.maximum(*(end_n.abs() for end_n in ends))
        ends = [torch.minimum(*ends) - slack_n, torch.maximum(*ends) + slack_n]
    return ends[0], ends[1]


def _all_at_once(weight_VD: Tensor, bias_V: Tensor | None, finish: Map | None) -> Callable[[Tensor], Tensor]:
    def logits(hidden_nD: Tensor) -> Tensor:
        plain_nV = product_of(hidden_nD, weight_VD, bias_V)
        return plain_nV if finish is None else finish(plain_nV)

    return logits
