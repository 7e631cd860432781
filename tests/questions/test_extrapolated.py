"""Crossings of `emergence` outside the sizes: over forms, with the law alone beside them, as a command prints them."""

import math
from pathlib import Path

import numpy as np
import pytest

from rbpx.laws.prediction.prediction import find_crossings
from tests.support.asking import Rows, ask, imported

S = np.geomspace(1e6, 1e9, 7)
P = np.exp(-40 * S**-0.2 * np.exp(0.02 * np.array([1.0, -1, 1, 0, -1, 0.5, -0.5])))


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
    slope, level = np.polyfit(np.log(np.round(S)), np.log(-np.log(P)), 1)
    assert (of_1["method"], of_1["law"], of_5["method"]) == ("law", None, "combined")
    assert of_1["ln_S"] == pytest.approx((math.log(math.log(2)) - level) / slope, rel=1e-6)
    assert of_5["law"]["ln_S"] == pytest.approx((math.log(math.log(2) / 5) - level) / slope, rel=1e-6)
    (found,) = find_crossings(np.round(S), -np.log([float(f"{p:.12f}") for p in P]), [math.log(2) / 5]) or []
    assert [of_5[end] for end in ("ln_S", "ln_lo", "ln_hi")] == pytest.approx([found.value, found.lo, found.hi])


def test_the_law_of_rbp_is_known_where_windows_of_one_token_are_not_asked_for(store: Path, rows: Rows) -> None:
    (of_5,) = [row for row in ask(store, "emergence", n=5).rows if row["kind"] == "law"]
    assert of_5["params"]["half"] == next(row for row in rows if row["n"] == 5)["params"]["half"]
