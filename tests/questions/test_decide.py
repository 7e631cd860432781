"""decide on drawn runs: its sentences, its rows, and what it does not conclude."""

import re
from pathlib import Path

import numpy as np
import pytest

from rbpx.display.section import Section
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.surface.decision import Best, Served
from rbpx.laws.surface.runs import Runs
from rbpx.questions import render
from rbpx.questions.decide.analysis import doubts_of_best, doubts_of_served
from rbpx.status import Status
from tests.support.asking import Asked, ask, imported, refused
from tests.support.coverage import BUDGET, least_to_reach
from tests.support.surfaces import grid, law, straight, true_optimum

SERVED = 1e13


def drawn(store: Path, S: np.ndarray, D: np.ndarray, noise: float, seed: int) -> Path:
    """Runs that scatter about the law."""
    y = law(S, D) * np.exp(noise * np.random.default_rng(seed).standard_normal(len(S)))
    lines = [f"{s:.0f},{d:.0f},c4,{each!r}" for s, d, each in zip(S, D, y.tolist(), strict=True)]
    return imported(store, "\n".join(["S,D,dataset,loss_nats", *lines]), family="ours")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Two budgets, one of them far beyond the runs, tokens to serve, and a run far from all others."""
    store = drawn(tmp_path_factory.mktemp("decide") / "store", *grid(4, 3), 1e-4, 3)
    keys = {"flops": BUDGET, "budgets": [BUDGET, 1e25], "inference_tokens": SERVED, "S": 1e6, "D": 1e11}
    return ask(store, "decide", resamples=40, **keys)


def test_it_answers_in_sentences_what_to_train(asked: Asked) -> None:
    told, beyond = asked.words.split("must not be concluded")
    assert "What to train next, by cross-entropy of 12 runs of 10M to 3.2B parameters on" in told
    assert re.search(r"At 1e\+22 FLOPs train \S+ \(\S+ to \S+\) parameters on", told)
    assert "a model half that size on twice the tokens is" in told
    assert "To serve 10T tokens at the loss of the best run" in told
    assert re.search(r"; a run of that size would show cross-entropy of \S+ \(\S+ to \S+\)\.", told)
    assert "1M parameters on 100B tokens would show cross-entropy of" in told
    assert "What no model gets below, E, is" in told
    assert "with the most compute" in told
    assert "narrow ln y of the best run at C = 1e+22, 1e+25 most: one of" in told
    assert re.search(r"at 1e\+25 FLOPs, \S+ times .*; for 1M parameters on 100B tokens. No run lies near", beyond)
    assert "serving" not in beyond


def test_on_a_page_about_several_groups_each_is_named_before_its_first_sentence(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "_section", lambda name, of: Section(name, "", ("First.", "Second."), ()))
    said = render.section("decide", [asked.results[0]] * 2).sentences
    assert said == ("ours on c4 (them): First.", "Second.") * 2


def test_its_rows_have_what_its_sentences_say(asked: Asked) -> None:
    assert {"runs", "best", "largest"} <= {row["kind"] for row in asked.rows}
    (runs,), (best, far) = asked.of_kind("runs"), asked.of_kind("best")
    assert (runs["n_points"], best["C"], far["C"]) == (12, BUDGET, 1e25)
    assert best["S_lo"] < true_optimum(BUDGET) < best["S_hi"]
    assert best["y_lo"] < law(best["S"], best["D"]) < best["y_hi"]
    assert best["S"] * best["D"] * 6 == pytest.approx(BUDGET)
    assert best["half"] < best["fivefold"]
    assert [row["kind"] for row in asked.rows if "beyond" in (row["reasons"] or ())] == ["best", "asked"]


def test_what_it_cannot_name_does_not_pass() -> None:
    none = Estimate()
    assert doubts_of_best(Best(BUDGET, none, none, none, none, none, beyond=1.0)) == [Status.not_straddled]
    runs = Runs.of([1e8, 1e9], [1e10, 1e11], [3.0, 2.5])
    for within, status in ((True, Status.not_straddled), (False, Status.unreachable)):
        served = Served(1e20, 1e12, none, none, none, 1.0, none, within=within)
        assert doubts_of_served(served, runs) == [status]


def test_to_serve_tokens_it_names_the_size_of_the_law_and_how_well_that_is_known(asked: Asked) -> None:
    """Of runs that hardly scatter, whose draws all had the size of one place of a grid once."""
    (row,) = asked.of_kind("served")
    S, D, saved = least_to_reach(SERVED)
    assert row["S"] == pytest.approx(S, rel=0.01)
    assert row["D"] == pytest.approx(D, rel=0.03)
    assert row["saved"] == pytest.approx(saved, abs=0.005)
    assert row["S_lo"] < row["S"] < row["S_hi"]


def test_where_size_and_tokens_vary_together_no_size_is_named(tmp_path: Path) -> None:
    told = ask(drawn(tmp_path / "store", *straight(9), 0.003, 1), "decide", resamples=40).words
    assert "What must not be concluded: which size is best" in told
    assert "FLOPs train" not in told
    assert "runs that narrow" not in told.lower()
    assert "What no model gets below" not in told


def test_a_budget_for_both_without_tokens_to_serve_is_refused(tmp_path: Path) -> None:
    with refused("add the tokens to serve: inference_tokens=1e13"):
        ask(tmp_path, "decide", inference_within=True)
