"""Counts of ranks by document, in one order: against a loop, for ranks and documents of more than 16 bits too."""

import functools
import operator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rbpx.groups.token_ranks import counted, document_ranks
from rbpx.store.queries import connect
from rbpx.ties import Ties
from tests.support.synthetic import Truth, write_store


@pytest.mark.parametrize("ties", list(Ties))
def test_counts_are_those_of_a_loop_in_the_order_of_documents_and_ranks(tmp_path: Path, ties: Ties) -> None:
    store = write_store(tmp_path, Truth(scatter=0.01), seed=5, n_documents=7, n_tokens=90)
    with connect(store) as connection:
        ((run_id,), *_) = connection.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall()
        rows = connection.execute(
            "SELECT doc_id, greater, ties, logprob FROM tokens WHERE run_id = ? ORDER BY doc_id, position", [run_id]
        ).fetchall()
        counts = document_ranks(connection, run_id, ties)
        none = document_ranks(connection, "no such run", ties)
    add = {Ties.pessimistic: 1.0, Ties.optimistic: 0.0, Ties.mid: 0.5}[ties]
    check(counts, [(doc_id, greater + add * n_ties + 1, logprob) for doc_id, greater, n_ties, logprob in rows])
    assert none.num_rows == 0
    assert none.schema == counts.schema


@pytest.mark.parametrize(("n_documents", "n_ranks"), [(70_000, 3), (3, 300_000), (2, 40_000)])
def test_documents_and_ranks_of_more_than_16_bits(n_documents: int, n_ranks: int) -> None:
    rng = np.random.default_rng(n_ranks)
    doc_id_N = np.sort(rng.integers(n_documents, size=3_000)).astype(np.int32)
    rank_N = rng.integers(2, 2 * n_ranks, 3_000) / 2
    logprob_N = rng.normal(size=3_000).astype(np.float32)
    counts = counted(doc_id_N, rank_N, logprob_N)
    check(counts, list(zip(doc_id_N.tolist(), rank_N.tolist(), logprob_N.tolist(), strict=True)))


def check(counts: pa.Table, tokens: list[tuple[int, float, float]]) -> None:
    """Counts of document and rank, and sums of the log-probabilities in the order of the tokens, to the last bit."""
    of_place: dict[tuple[int, float], list[float]] = {}
    for doc_id, rank, logprob in tokens:
        of_place.setdefault((doc_id, rank), []).append(logprob)
    assert [tuple(row.values()) for row in counts.to_pylist()] == [
        (*place, len(logprobs), functools.reduce(operator.add, logprobs))
        for place, logprobs in sorted(of_place.items())
    ]
