"""How often the intervals of a gap between slices hold the truth."""

import math
from pathlib import Path

import numpy as np

from rbpx.config.request import Request
from rbpx.questions.gaps.pairs import pairs_of
from rbpx.runs.select.sizes import select
from rbpx.store.sql import connect
from tests.support.asking import ask, refused
from tests.support.synthetic import Truth, write_store


def test_the_intervals_hold_the_truth_as_often_as_they_say(tmp_path: Path) -> None:
    """A hundred texts in one store."""
    S = (1_000, 20_000, 400_000, 8_000_000)
    hard, easy = Truth(S, C=6.0, alpha=0.12, scatter=0.02), Truth(S, C=3.0, alpha=0.07, scatter=0.02)
    true_ratio = 2 * math.exp(-0.05 * np.log(S).mean())
    for seed in range(100):
        store = write_store(tmp_path, hard, seed, n_tokens=40, dataset=f"text{seed:03d}", late=easy, cut=20)
    request = Request(resamples=100, k=10, slices={"early": "position <= 20"})
    with connect(store) as connection:
        for name in ("tokens", "documents"):  # in memory, or each of 800 questions would open 400 files
            rows_of_all = connection.sql(f"FROM {name}").to_arrow_table()
            connection.unregister(name)
            connection.from_arrow(rows_of_all).create(name)
        found = pairs_of(connection, select(connection, request), request)
    assert len(found) == 100
    delta = ratio = 0
    for each in found:
        gap = each[0].gap
        sign, power = (-1, 1 / true_ratio) if gap.swapped else (1, true_ratio)
        assert gap.delta.lo is not None
        assert gap.delta.hi is not None
        assert gap.ratio.lo is not None
        assert gap.ratio.hi is not None
        delta += gap.delta.lo <= -0.05 * sign <= gap.delta.hi
        ratio += gap.ratio.lo <= power <= gap.ratio.hi
    assert 88 <= delta <= 99  # 95 are expected; beyond these the probability is below 1 %
    assert 88 <= ratio <= 99


def test_one_slice_is_none_to_compare(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", Truth(), seed=1, n_documents=5, n_tokens=12).root
    with refused("does not divide any of the scored tokens"):
        ask(store, "gaps", slices="position")
