"""How often the intervals of improvement by token hold the truth."""

from pathlib import Path

import numpy as np
import pytest

from rbpx.config.request import Request
from rbpx.questions.learning.improvements import improvements
from rbpx.runs.select.sizes import select
from rbpx.runs.tokens import tokens_of
from rbpx.store.sql import connect
from rbpx.store.store import Record
from tests.support.synthetic import Truth, write_store


def test_the_intervals_hold_the_truth_as_often_as_they_say(tmp_path: Path) -> None:
    """Slopes that vary between documents; the truth is that of many documents of the same law."""
    law = Truth(S=(1_000, 100_000, 10_000_000), shared=0.5)
    ids = np.random.default_rng(1)

    def analyse(place: str, seed: int, D: int) -> dict[int, Record]:
        store = write_store(tmp_path / place, law, seed, D, 30, token_DT=ids.integers(0, 4, (D, 30)))
        with connect(store) as connection:
            (group,) = select(connection, Request())
            rows = improvements(tokens_of(connection, group, group.runs, Request()), {}, 1, least=1)
            return {row["token_id"]: row for row in rows if row["kind"] == "token"}

    truth = analyse("many", 0, 20_000)
    assert truth[0]["slope"] == pytest.approx(truth[1]["slope"], abs=0.01)
    slope = share = 0
    for seed in range(1, 41):
        for token_id, token in analyse(str(seed), seed, 40).items():
            slope += token["slope_lo"] <= truth[token_id]["slope"] <= token["slope_hi"]
            share += token["share_lo"] <= truth[token_id]["share"] <= token["share_hi"]
    assert 144 <= slope <= 158  # of four tokens in each draw; 152 are expected
    assert 144 <= share <= 158
