"""The bias of the entropy of ranks, corrected by leaving out documents: a literal loop, and draws of known entropy.

Shapes: D documents, T tokens of each.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from rbpx.questions.entropy import bias as of

Triples = tuple[list[int], list[int], list[float]]


def entropy_jackknife(document: Any, rank: Any, n_tokens: Any) -> tuple[float, float]:
    """Of pairs of document and rank that may repeat."""
    pairs, where = np.unique(np.column_stack([document, rank]), axis=0, return_inverse=True)
    return of.entropy_jackknife(pairs[:, 0], pairs[:, 1].astype(float), np.bincount(where.ravel(), n_tokens))


def plug_in(counts: Mapping[int, float]) -> float:
    n = sum(counts.values())
    return -math.fsum(c / n * math.log(c / n) for c in counts.values() if c)


def by_leaving_out(document: list[int], rank: list[int], n_tokens: list[float]) -> tuple[float, float]:
    """The corrected entropy and its standard error, each document left out in turn and the rest counted anew."""
    rows = list(zip(document, rank, n_tokens, strict=True))

    def without(left_out: int | None) -> float:
        counts = dict.fromkeys(rank, 0.0)
        for d, r, n in rows:
            if d != left_out:
                counts[r] += n
        return plug_in(counts)

    documents = sorted(set(document))
    D = len(documents)
    rest = [without(d) for d in documents]
    mean = math.fsum(rest) / D
    error = math.sqrt((D - 1) / D * math.fsum((value - mean) ** 2 for value in rest))
    return D * without(None) - (D - 1) * mean, error


def uneven(seed: int) -> Triples:
    """Documents of different lengths and numbers, in no order, some of their ranks in two entries."""
    rng = np.random.default_rng(seed)
    document = rng.choice([3, 7, 8, 1000, 52, 4], size=300, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    rank = np.ceil(rng.uniform(size=300) ** -1.2).clip(1, 50_304).astype(int)
    assert len({*zip(document.tolist(), rank.tolist(), strict=True)}) < 300
    return document.tolist(), rank.tolist(), rng.integers(1, 9, size=300).astype(float).tolist()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_equals_a_loop_that_leaves_out_each_document(seed: int) -> None:
    found, expected = entropy_jackknife(*uneven(seed)), by_leaving_out(*uneven(seed))
    assert found == pytest.approx(expected, rel=1e-10)
