"""Ranks targets where each process holds a part of the vocabulary: each counts in its part, and counts are summed.

Only a few numbers per position are exchanged, never logits.

Shapes: N positions, n of them in a chunk, D hidden width, v entries of the vocabulary in this process's part.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rbpx.ranks.definition import Map, NonFiniteLogits, TokenRanks, chunk_bytes_for, count_rows

_BYTES_PER_LOGIT = 4


@dataclass(frozen=True)
class VocabularyPart:
    """The part of the vocabulary whose logits this process computes.

    Attributes:
        start: the first entry.
        width: v; 0 where there are more processes than entries.
        widest: the largest v of all processes, so that all of them take the same chunks.
        sum_over: a tensor to its sum over the processes, on each of them; `max_over` to its elementwise maximum.
    """

    start: int
    width: int
    widest: int
    sum_over: Callable[[Tensor], Tensor]
    max_over: Callable[[Tensor], Tensor]

    def below(self, vocab_size: int) -> "VocabularyPart":
        """The part of the first `vocab_size` entries of the vocabulary."""
        return replace(self, width=max(0, min(self.width, vocab_size - self.start)))


def rank_part(hidden_ND: Tensor, targets_N: Tensor, head: Map, part: VocabularyPart) -> TokenRanks:
    """Rank as `rank_hidden` does; every process of the group calls this with the same states and targets.

    The target's logit comes from the process that holds it. The log-probability is summed in float64, part by part.

    Raises:
        NonFiniteLogits: as `rank_logits`, in whichever process; all raise it.
        ValueError: the logits are not float32, or not [n, v].
    """
    rows = max(1, chunk_bytes_for(hidden_ND.device, part.widest) // (_BYTES_PER_LOGIT * part.widest))
    chunks = []
    with torch.no_grad():
        for hidden_nD, targets_n in zip(torch.split(hidden_ND, rows), torch.split(targets_N, rows), strict=True):
            chunks.append(_rank_chunk(head(hidden_nD)[:, : part.width], targets_n, part))
    greater, ties, logprob, infinite = torch.cat([torch.empty(4, 0), *(chunk.cpu() for chunk in chunks)], 1).numpy()
    if infinite.any():
        raise NonFiniteLogits(int(infinite.argmax()))
    return TokenRanks(greater.astype(np.int32), ties.astype(np.int32), logprob.astype(np.float32))


def _rank_chunk(logits_nv: Tensor, targets_n: Tensor, part: VocabularyPart) -> Tensor:
    """Float64 [4, n], the same on all processes: greater, ties, logprob, and parts with a logit that is not finite."""
    if logits_nv.dtype != torch.float32:
        raise ValueError(f"Ranks need float32 logits, got {logits_nv.dtype}, which tie by rounding")
    if logits_nv.shape != (len(targets_n), part.width):
        raise ValueError(f"Logits of shape {tuple(logits_nv.shape)} for {len(targets_n)} targets in {part.width} rows")
    place_n = targets_n.to(logits_nv.device, torch.int64) - part.start
    here_n = (place_n >= 0) & (place_n < part.width)
    target_n = logits_nv.new_zeros(len(targets_n))
    if part.width:
        own_n = logits_nv.gather(1, place_n.clamp(0, part.width - 1)[:, None])[:, 0]
        target_n = torch.where(here_n, own_n, target_n)
    target_n = part.sum_over(target_n)  # one of them is not zero, so the sum is exact
    counts_4n = torch.zeros(4, len(targets_n), dtype=torch.float64, device=logits_nv.device)
    logsumexp_n = torch.full_like(counts_4n[0], -torch.inf)
    if part.width:
        greater_n, equal_n, *bits, finite_n = count_rows(logits_nv, target_n)
        counts_4n[:2], counts_4n[3] = torch.stack([greater_n, equal_n - here_n.int()]), 1 - finite_n
        logsumexp_n = sum(each.view(torch.float32).double() for each in bits)
    top_n = part.max_over(logsumexp_n)
    counts_4n[2] = (logsumexp_n - top_n).exp()
    greater_n, ties_n, total_n, infinite_n = part.sum_over(counts_4n)
    return torch.stack([greater_n, ties_n, target_n.double() - top_n - total_n.log(), infinite_n])
