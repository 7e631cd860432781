"""Crossings of `emergence` outside the sizes: over forms, with the law alone beside them, as a command prints them."""

import math
from pathlib import Path

import numpy as np
import pytest

from rbpx.laws.prediction.prediction import find_crossings
from rbpx.questions.emergence.laws import average_crossing, crossing, fit_windows
from rbpx.status import Status
from tests.support.asking import Rows, ask, imported
from tests.support.predictions import predict_batch

S = np.geomspace(1e6, 1e9, 7)
P = np.exp(-40 * S**-0.2 * np.exp(0.02 * np.array([1.0, -1, 1, 0, -1, 0.5, -0.5])))


def test_outside_the_sizes_all_forms_answer_and_the_law_stands_beside_it() -> None:
    """An offset that the points allow keeps the level from being reached, which the law alone cannot know."""
    law, level = fit_windows(S, P), 0.9
    alone = crossing(law, level)
    (reached,) = find_crossings(S, -np.log(P), [-math.log(level)]) or ()
    found = average_crossing(alone, law, reached)
    assert (found["method"], found["law"], found["status"]) == ("combined", alone, Status.beyond)
    assert None not in (alone["ln_lo"], alone["ln_hi"], found["ln_lo"])
    assert found["ln_hi"] is None


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Imported windows of 1 and 5 tokens, as if tokens were independent."""
    lines = [
        f"theirs,text,{size:.0f},{size:.0f},1,{n},{p**n:.12f}" for size, p in zip(S, P, strict=True) for n in (1, 5)
    ]
    table = "\n".join(["family,dataset,size,S,k,n,rbp", *lines])
    return imported(tmp_path_factory.mktemp("windows") / "store", table, ties="pessimistic")


@pytest.fixture(scope="module")
def rows(store: Path) -> Rows:
    return [row for row in ask(store, "emergence").rows if row["kind"].endswith("law")]


def test_one_half_of_several_tokens_is_where_the_law_of_rbp_says(rows: Rows) -> None:
    """By the law of RBP_k at its root of one half within the sizes, and over forms outside them."""
    of_1, of_5 = (row["params"]["half"] for row in rows if row["kind"] == "law")
    assert (of_1["method"], of_1["law"]) == ("law", None)
    slope, level = np.polyfit(np.log(np.round(S)), np.log(-np.log(P)), 1)
    assert of_1["ln_S"] == pytest.approx((math.log(math.log(2)) - level) / slope, rel=1e-6)
    assert of_5["method"] == "combined"
    assert of_5["law"]["ln_S"] == pytest.approx((math.log(math.log(2) / 5) - level) / slope, rel=1e-6)
    middle, lower, upper = (None if of_5[end] is None else float(of_5[end]) for end in ("S", "lo", "hi"))
    assert middle is not None
    assert lower is not None
    y_N = -np.log([float(f"{p:.12f}") for p in P])
    for size, column in ((middle, 0), (lower, 1)):
        assert predict_batch(np.round(S), y_N[None], size)[0, column] == pytest.approx(math.log(2) / 5, rel=1e-6)
    reaches = None if upper is None else predict_batch(np.round(S), y_N[None], upper)[0, 2]
    assert reaches is None or reaches == pytest.approx(math.log(2) / 5, rel=1e-6)


def test_the_law_of_rbp_is_known_where_windows_of_one_token_are_not_asked_for(store: Path, rows: Rows) -> None:
    (of_5,) = [row for row in ask(store, "emergence", n=5).rows if row["kind"] == "law"]
    assert of_5["params"]["half"] == next(row for row in rows if row["n"] == 5)["params"]["half"]
