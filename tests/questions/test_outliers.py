"""A run that diverged among runs in size and tokens: named with how far, and kept out of what they say unless asked."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.asking import Asked, ask, imported
from tests.support.surfaces import grid, law

DIVERGED, ABOVE, SCATTER = 6, 0.65, 0.01
KINDS = {"decide": "runs", "surface": "law"}
VERBS = {"surface": {}, "decide": {"next": 1}, "predict": {"S": 1e10, "D": 2e11}}


def drawn(store: Path, above: float | None, seed: int = 4) -> Path:
    """12 runs that scatter about the law, of which one lies above it by a share, or is not there."""
    S, D = grid(4, 3)
    y = law(S, D) * np.exp(SCATTER * np.random.default_rng(seed).standard_normal(len(S)))
    y[DIVERGED] *= 1 + (above or 0.0)
    runs = pd.DataFrame({"S": S.round(), "D": D.round(), "loss_nats": y})
    return imported(store, runs if above is not None else runs.drop(DIVERGED), dataset="c4", family="ours")


@pytest.fixture(scope="module")
def diverged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drawn(tmp_path_factory.mktemp("outliers") / "store", ABOVE)


@pytest.fixture(scope="module")
def asked(diverged: Path) -> dict[str, Asked]:
    """What each verb says with the run that diverged."""
    return {verb: ask(diverged, verb, resamples=20, **keys) for verb, keys in VERBS.items()}


@pytest.mark.parametrize("verb", VERBS)
def test_the_run_that_diverged_is_named_with_how_far_it_lies(verb: str, asked: dict[str, Asked]) -> None:
    S, D = grid(4, 3)
    (row,) = asked[verb].of_kind("outlier")
    assert (row["S"], row["D"]) == (round(S[DIVERGED]), round(D[DIVERGED]))
    assert row["off"] == pytest.approx(ABOVE, abs=3 * SCATTER * (1 + ABOVE))
    assert row["in_sd"] > 20
    assert (row["n_runs"], row["counts"]) == (12, False)
    assert row["p"] < 1e-3
    assert "1 of 12 runs lies outside what the others allow: 460M parameters on" in asked[verb].words
    assert "Look whether it is underway, diverged" in asked[verb].words


def test_what_is_said_rests_on_the_runs_that_are_left(asked: dict[str, Asked], tmp_path: Path) -> None:
    left = ask(drawn(tmp_path / "left", None), "surface", resamples=20)
    (law_of_all,), (law_of_left,) = asked["surface"].of_kind("law"), left.rows
    for name in ("n_points", "alpha", "beta", "E", "alpha_lo", "alpha_hi", "objective"):
        assert law_of_all[name] == pytest.approx(law_of_left[name], rel=1e-6), name
    assert {row["n_points"] for verb, kind in KINDS.items() for row in asked[verb].of_kind(kind)} == {11}
    assert {row["n_fitted"] for row in asked["predict"].of_kind("prediction")} == {11}


def test_it_counts_where_that_is_asked_for_and_is_named_all_the_same(diverged: Path) -> None:
    keeping = ask(diverged, "decide", resamples=20, outliers="keep")
    (row,), (runs,) = keeping.of_kind("outlier"), keeping.of_kind("runs")
    assert (row["counts"], runs["n_points"]) == (True, 12)
    assert "What follows counts it, by outliers=keep." in keeping.words


def test_along_one_axis_the_size_that_lies_off_is_named(tmp_path: Path) -> None:
    S = 1e6 * np.geomspace(1, 1000, 9)
    y = 30 * S**-0.12 * np.exp(0.0003 * np.random.default_rng(0).standard_normal(9))
    y[4] *= 1.05
    store = imported(tmp_path / "store", {"S": S, "loss_nats": y}, dataset="c4", family="ours")
    for verb in ("fit", "predict"):
        assert re.search(r"31.6M lies off what the others say .*cross-entropy 5\.\d% above \(", ask(store, verb).words)
