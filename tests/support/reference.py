"""The plain second way to measure: a document's token ids in, its rows out, without anything that makes it fast."""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch


class Row(NamedTuple):
    """One scored token of a document, as the store's `tokens` has it."""

    position: int
    token_id: int
    greater: int
    ties: int
    logprob: float


def reference_rows(model: Any, ids: Sequence[int], special_ids: Collection[int]) -> list[Row]:
    """Score one document, unpadded and alone: full float32 logits, then counting one vocabulary entry after another.

    A token is scored unless it, or the token before it, is in `special_ids`; the first is predicted from nothing.
    """
    assert model.dtype == torch.float32
    with torch.no_grad():
        logits = model(torch.tensor([list(ids)])).logits[0].numpy()
    assert logits.dtype == np.float32
    assert np.isfinite(logits).all()
    rows = []
    for position in range(1, len(ids)):
        if ids[position - 1] in special_ids or ids[position] in special_ids:
            continue
        greater, ties, logprob = reference_rank(logits[position - 1].tolist(), ids[position])
        rows.append(Row(position, ids[position], greater, ties, logprob))
    return rows


def reference_rank(logits: Sequence[float], target: int) -> tuple[int, int, float]:
    """Greater, ties and logprob of one target by the definition (float32 values are exact as Python floats)."""
    greater = ties = 0
    for token_id, logit in enumerate(logits):
        greater += logit > logits[target]
        ties += logit == logits[target] and token_id != target
    highest = max(logits)
    log_sum = highest + math.log(math.fsum(math.exp(logit - highest) for logit in logits))
    return greater, ties, logits[target] - log_sum
