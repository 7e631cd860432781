"""The terms of replicates from the counts of documents, against the definition on the counts of every replicate."""

from typing import Any

import numpy as np
import pytest

from rbpx.laws.intervals.estimate import document_weights
from rbpx.laws.ranks.error_entropy import decompose, replicate_terms

NAMES = ("error_entropy", "self_alignment", "confidence", "cross_entropy_nats")


def counts(seed: int, n_documents: int, n_ranks: int, n_tokens: int) -> tuple[Any, ...]:
    """Ranks of every kind: in one document, in a few and in nearly all; document, rank, tokens, sum of logprobs."""
    rng = np.random.default_rng(seed)
    document, rank = rng.integers(n_documents, size=n_tokens), (n_ranks * rng.random(n_tokens) ** 4).astype(int)
    pairs, n = np.unique(np.column_stack([document, rank]), axis=0, return_counts=True)
    rank_N = np.unique(pairs[:, 1], return_inverse=True)[1]
    return pairs[:, 0], rank_N, n.astype(float), -n * rng.gamma(2.0, 1.5, len(n))


def assert_as_defined(document: Any, rank: Any, n: Any, logprob: Any, weights_BD: Any, rel: float = 1e-11) -> None:
    dense_DR = np.zeros((2, weights_BD.shape[1], rank.max() + 1))
    dense_DR[:, document, rank] = n, logprob
    plain, found = decompose(*(weights_BD @ dense_DR)), replicate_terms(document, rank, n, logprob, weights_BD)
    for name in NAMES:
        assert getattr(found, name) == pytest.approx(getattr(plain, name), rel=rel, abs=1e-12)


@pytest.mark.parametrize(("n_documents", "n_ranks", "n_tokens"), [(60, 900, 5_000), (2, 40, 30), (300, 60, 4_000)])
def test_they_are_those_of_the_definition(n_documents: int, n_ranks: int, n_tokens: int) -> None:
    found = counts(1, n_documents, n_ranks, n_tokens)
    n_rows = np.bincount(found[1])
    assert n_ranks < 100 or {1, 2, 3} <= set(n_rows.tolist()), "ranks of one document and of few were meant"
    assert_as_defined(*found, document_weights(n_documents, 300, 0).astype(float))


def test_ranks_that_no_two_documents_share_need_no_product() -> None:
    document, rank = np.array([0, 0, 1, 2]), np.array([0, 1, 2, 3])
    logprob = np.array([-1.0, -9.0, -4.0, -2.5])
    assert_as_defined(document, rank, np.array([2.0, 1.0, 3.0, 1.0]), logprob, document_weights(3, 50, 1).astype(float))


def test_a_resample_without_a_token_is_unknown() -> None:
    """The third document has none."""
    weights_BD = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 3.0]])
    found = replicate_terms(
        np.array([0, 1]), np.array([0, 0]), np.array([2.0, 1.0]), np.array([-1.0, -2.0]), weights_BD
    )
    for name in NAMES:
        assert np.isfinite(getattr(found, name)).tolist() == [True, False]
