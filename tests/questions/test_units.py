"""Units across tokenizers: bytes, ratios and quantiles as a loop over tokens counts them, intervals as often right."""

import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from rbpx.store.store import Store
from tests.support.asking import ask
from tests.support.stores import Measured, manifests, rank_by_hand, reseal, runs_by_size
from tests.support.synthetic import Truth, write_store

# --------------------------------------------------------------------------------------------------------- bytes


# ---------------------------------------------------------------------------------------------------- the numbers


def test_units_are_those_of_a_loop_over_the_tokens(measured: Measured) -> None:
    found = {row["size"]: row for row in ask(measured.store, "units", resamples=100, ties="mid").rows}
    assert list(found) == ["xs", "s", "m", "l"]
    for size, run in runs_by_size(measured.store).items():
        row, V = found[size], run["vocab_size"]
        rank = np.sort(rank_by_hand(run, "mid"))
        n, n_bytes = len(rank), manifests(measured.store)[run["run_id"]]["n_bytes_scored"]
        nats = -sum(float(logprob) for logprob in run["logprob"])
        assert row["nats_per_token"] == pytest.approx(nats / n)
        assert row["bits_per_byte"] == pytest.approx(nats / math.log(2) / n_bytes)
        assert row["tokens_per_byte"] == pytest.approx(n / n_bytes)
        for percent in (50, 90, 99):
            smallest = next(r for i, r in enumerate(rank, 1) if 100 * i >= percent * n)
            assert row[f"rank_{percent}"] == smallest
            assert row[f"relative_rank_{percent}"] == pytest.approx(smallest / V)
        assert row["rbp_at_0.001_V"] is None  # V is 320
        assert row["rbp_at_0.01_V"] == pytest.approx(sum(r <= 3.2 for r in rank) / n)


def test_a_run_that_does_not_know_its_bytes_has_no_bits_per_byte(tmp_path: Path) -> None:
    write_store(tmp_path / "store", Truth(S=(1000,)), seed=1)
    for run in Store(tmp_path / "store").run_ids():
        path = tmp_path / "store" / "runs" / run / "documents.parquet"
        pq.write_table(pq.read_table(path).drop_columns("n_bytes_scored"), path)
        reseal(path.parent)
    asked = ask(tmp_path / "store", "units", resamples=50)
    (row,) = asked.rows
    assert (row["bits_per_byte"], row["bits_per_byte_lo"], row["tokens_per_byte"]) == (None, None, None)
    assert row["nats_per_token_lo"] < row["nats_per_token"] < row["nats_per_token_hi"]
    assert "measured before bytes" in asked.words
