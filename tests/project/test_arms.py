"""The study of two arms, judged on drawn ladders whose truth says which contestant has to win, and by how much."""

import itertools
import math

import pandas as pd
import pytest

from experiments.arms import ARMS, COLUMNS, judge, robustness, summary

SIZES = {"3k": 3e3, "7k": 7e3, "25k": 25e3, "85k": 85e3, "200k": 200e3}
OVERCONFIDENT, A, B = 1.2, 0.9, 1.3  # cross-entropy of one arm over that at T*; -ln p = A f^B
RANKS = {"stdlib": 2.5, "pydoc": 3.5}  # -ln RBP_1 at S = 1
NATS = {"stdlib": 8.0, "pydoc": 14.0}  # cross-entropy at T* at S = 1
OTHER = ARMS[1]


def drawn() -> pd.DataFrame:
    """Two arms, two texts and three seeds; success is exp(-A f^B) of f = -ln RBP_1.

    Ranks and T* know nothing of the arms; plain cross-entropy is larger in one.
    """
    rows = []
    for arm, text, seed, (size, S) in itertools.product(("plain", OTHER), RANKS, (1, 2, 3), SIZES.items()):
        f, nats = RANKS[text] * S**-0.13 * (1 + seed / 50), NATS[text] * S**-0.08
        values = {"RBP_1": math.exp(-f), "CE at T*": nats, "CE": nats * (OVERCONFIDENT if arm == OTHER else 1)}
        values |= {"bits per byte": values["CE"] / 2, "CE at 0.8": values["CE"] * 1.1}
        values |= {"RBP_10": math.exp(-f / 2), "T*": 1.1, "exact match of 5": math.exp(-A * f**B)}
        rows += [[arm, text, size, S, seed, quantity, value] for quantity, value in values.items()]
    return pd.DataFrame(rows, columns=COLUMNS)


def errors(judged: pd.DataFrame) -> dict[tuple[str, str], float]:
    rows = summary(judged[judged["target"] == "exact match of 5"])
    return {(row.across, row.contestant): row.error for row in rows.itertuples() if row.way == "chained"}


def test_where_success_follows_ranks_only_their_map_carries_over() -> None:
    judged = judge(drawn())
    found = errors(judged)
    for across in ("other arm", "other text", "other arm, other text"):
        assert found[across, "RBP"] == pytest.approx(0, abs=1e-9)
    assert found["other arm", "CE at T*"] == pytest.approx(0, abs=1e-9)
    # With CE = D S^-.08 and -ln RBP_1 = R S^-.13, the map of CE is -ln p = A R^B (CE / D)^g with g = B .13 / .08.
    g, arms, texts = B * 0.13 / 0.08, [], []
    for text, other, seed in (("stdlib", "pydoc", 1), ("pydoc", "stdlib", 1), ("stdlib", "pydoc", 2),
                              ("pydoc", "stdlib", 2), ("stdlib", "pydoc", 3), ("pydoc", "stdlib", 3)):  # fmt: skip
        nats = A * (RANKS[text] * 2e5**-0.13 * (1 + seed / 50)) ** B
        arms += [nats * abs(OVERCONFIDENT**power - 1) for power in (g, -g)]
        texts.append(nats * abs((RANKS[other] / RANKS[text]) ** B * (NATS[text] / NATS[other]) ** g - 1))
    assert found["other arm", "CE"] == pytest.approx(sum(arms) / 12, rel=1e-9)
    assert found["other text", "CE at T*"] == pytest.approx(sum(texts) / 6, rel=1e-9)


def test_no_prediction_has_seen_the_largest_size() -> None:
    table, other = drawn(), drawn()
    other.loc[other["size"] == "200k", "value"] *= 0.9
    one, changed = judge(table), judge(other)
    assert (one["predicted"] == changed["predicted"]).all()
    assert (one["given"] != changed["given"]).all()


def test_dividing_the_logits_moves_what_cross_entropy_says_and_nothing_that_ranks_say() -> None:
    """Sharpened models have a loss larger by a tenth: with -ln p = A R^B (CE / D)^g, 1.1^g - 1 of it is the error."""
    found = robustness(judge(drawn()))
    error = {row.contestant: row.error for row in found.itertuples() if row.target == "exact match of 5"}
    assert set(found["arm"]) == {"plain, logits / 0.8"}
    assert (error["RBP"], error["CE at T*"]) == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9))
    g = B * 0.13 / 0.08
    nats = [A * (RANKS[text] * 2e5**-0.13 * (1 + seed / 50)) ** B for text in RANKS for seed in (1, 2, 3)]
    assert error["CE"] == pytest.approx(sum(nats) / 6 * (1.1**g - 1), rel=1e-9)
    assert error["bits per byte"] == pytest.approx(error["CE"], rel=1e-9)
