"""The plain second way to measure: a document's token ids in, its rows out, without anything that makes it fast."""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from rbpx.ranks.definition import TokenRanks


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
    row = np.asarray(logits, np.float64)
    greater, equal = int((row > row[target]).sum()), int((row == row[target]).sum())
    return greater, equal - 1, float(row[target] - row.max() - math.log(math.fsum(np.exp(row - row.max()))))


def assert_ranked(
    ranks: TokenRanks, logits_NV: torch.Tensor, targets_N: torch.Tensor, rtol: float = 0.0, atol: float = 1e-5
) -> None:
    """Each row by the definition, in the types of its columns."""
    rows = [reference_rank(row, target) for row, target in zip(logits_NV.tolist(), targets_N.tolist(), strict=True)]
    greater, ties, logprob = zip(*rows, strict=True)
    assert ranks.greater.tolist() == list(greater)
    assert ranks.ties.tolist() == list(ties)
    np.testing.assert_allclose(ranks.logprob, logprob, rtol=rtol, atol=atol)
    assert [column.dtype for column in vars(ranks).values()] == [np.int32, np.int32, np.float32]
