"""How the files of a run lie on disk: what they take, and which of them a question opens."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbpx.errors import MeasureError
from rbpx.laws.intervals.estimate import document_weights
from rbpx.runs.documents import document_ranks
from rbpx.runs.points.sizes import weigh
from rbpx.store import schema
from rbpx.store.sql import ask, connect
from rbpx.store.store import Store
from rbpx.ties import Ties
from tests.support.synthetic import Truth, write_store

TRUTH = Truth(S=(10**4, 10**5, 10**6, 10**7))


def test_a_token_takes_less_than_seven_and_a_half_bytes_with_real_ranks(tmp_path: Path) -> None:
    from benchmarks.large_store import draw_cell

    rng = np.random.default_rng(0)
    length_D = rng.integers(50, 500, 200)
    token_N = (rng.zipf(1.2, length_D.sum()) % 50_304).astype(np.int32)
    columns = draw_cell(rng, 10**8, length_D, rng.normal(size=200), token_N)
    assert len(np.unique(columns["logprob"])) > 0.9 * len(token_N), (
        "log-probabilities must not be cheaper than real ones"
    )
    tokens = pa.table({"run_id": ["0" * 16] * len(token_N), **columns}, schema=schema.TOKENS)
    store = Store(tmp_path)
    tables = {"rank_counts": schema.RANK_COUNTS.empty_table(), "documents": schema.DOCUMENTS.empty_table()}
    store.write_run("0" * 16, {"run_id": "0" * 16}, {"tokens": tokens, **tables})
    path = store.run_folder("0" * 16) / "tokens.parquet"
    assert path.stat().st_size < 7.5 * len(token_N)
    assert pq.read_table(path).equals(tokens)


def test_a_question_about_one_run_opens_no_file_of_another(tmp_path: Path) -> None:
    store = write_store(tmp_path, TRUTH, seed=2)
    first, *others = store.run_ids()
    with connect(store) as connection:
        for run_id in others:
            for table in ("tokens", "documents"):
                (store.run_folder(run_id) / f"{table}.parquet").unlink()
        assert sum(document_ranks(connection, first, Ties.mid)["n_tokens"].to_pylist()) == 40 * 60
        assert ask(connection, "document_bytes", run_id=first).num_rows == 40
        for gone in ("no such run", "*", others[0]):  # a name is no pattern of others
            with pytest.raises(MeasureError, match=r"^tokens cannot be read: .*tokens\.parquet"):
                document_ranks(connection, gone, Ties.mid)


@pytest.mark.parametrize("ties", ["pessimistic", "mid"])
def test_shares_of_a_run_and_of_its_resamples_are_those_of_a_plain_loop(ties: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    doc, rank = rng.integers(0, 6, 300), rng.integers(1, 40, 300) + (0.5 if ties == "mid" else 0.0)
    counts = pa.table(
        {"doc_id": doc, "rank": rank, "n_tokens": rng.integers(1, 5, 300), "sum_logprob": -rng.random(300)}
    )
    weights_BD, k_grid = document_weights(8, 30, 0), [1, 7, 39, 100]  # documents 6 and 7 have no token
    found = weigh(counts, weights_BD, k_grid, 50, ("rbp", "cross_entropy"))
    n, logprob = counts["n_tokens"].to_numpy(), counts["sum_logprob"].to_numpy()
    for weights, rbp, entropy in [
        (np.ones(8, int), found.measured["rbp"], found.measured["cross_entropy"]),
        *zip(weights_BD, found.replicates["rbp"], found.replicates["cross_entropy"], strict=True),
    ]:
        hits, total, nats = [0] * len(k_grid), 0, 0.0
        for d, r, tokens, sum_logprob in zip(doc, rank, n, logprob, strict=True):
            total, nats = total + weights[d] * tokens, nats - weights[d] * sum_logprob
            hits = [h + weights[d] * tokens * (r <= k) for h, k in zip(hits, k_grid, strict=True)]
        np.testing.assert_allclose(rbp, np.array(hits) / total, rtol=1e-12)
        assert entropy == pytest.approx(nats / total, rel=1e-12)
