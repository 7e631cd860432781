"""decide on drawn runs: its sentences, its rows, and what it does not conclude."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rbpx.spelling import typed
from tests.support.asking import Asked, ask, imported
from tests.support.drawn_laws import BUDGET, least_to_reach
from tests.support.surfaces import grid, law, straight, true_optimum

SERVED = 1e13


def drawn(store: Path, S: np.ndarray, D: np.ndarray, noise: float, seed: int) -> Path:
    """Runs that scatter about the law."""
    y = law(S, D) * np.exp(noise * np.random.default_rng(seed).standard_normal(len(S)))
    return imported(store, {"S": S.round(), "D": D.round(), "loss_nats": y}, dataset="c4", family="ours")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Two budgets, one of them far beyond the runs, tokens to serve, and a run far from all others."""
    store = drawn(tmp_path_factory.mktemp("decide") / "store", *grid(4, 3), 1e-4, 3)
    keys = {"flops": [BUDGET, 1e25], "inference_tokens": SERVED, "S": 1e6, "D": 1e11}
    return ask(store, "decide", resamples=40, **keys)


def test_it_answers_in_sentences_what_to_train(asked: Asked) -> None:
    (best, _), (served,), told = asked.of_kind("best"), asked.of_kind("served"), asked.results[0].sentences
    assert [row["held"] for row in asked.of_kind("largest")] == [True]
    assert told[0].startswith(f"Train {served['S'] / 1e9:.3g}B parameters on {served['D'] / 1e12:.3g}T tokens to serve")
    assert f"at the loss of the best run of 1e+22 FLOPs, which saves {100 * served['saved']:.1f}% of all" in told[0]
    assert f"Train {best['S'] / 1e9:.3g}B parameters on {best['D'] / 1e9:.3g}B tokens: loss {best['y']:.3f}" in told[1]
    assert "No size near those of the runs is the best of 1e+25 FLOPs" in told[2]
    assert "Runs that make the prediction for the best run of 1e+22, 1e+25 FLOPs more certain" in asked.words
    assert "No model gets below" in asked.words
    table = asked.table(100, details=False)
    assert re.search(rf" half the size  +{best['S'] / 2e9:.3g}B .* {best['y'] * (1 + best['half']):.3f} ", table)
    assert re.search(rf" a fifth of the size .* \+{100 * best['fivefold']:.1f}% ", table)


def test_its_rows_hold_the_law(asked: Asked) -> None:
    """Of runs that hardly scatter, whose draws all had the size of one place of a grid once."""
    assert {"runs", "best", "largest"} <= {row["kind"] for row in asked.rows}
    (runs,), (best, far), (served,) = asked.of_kind("runs"), asked.of_kind("best"), asked.of_kind("served")
    assert (runs["n_points"], best["C"], far["C"]) == (12, BUDGET, 1e25)
    assert best["S_lo"] < true_optimum(BUDGET) < best["S_hi"]
    assert best["y_lo"] < law(best["S"], best["D"]) < best["y_hi"]
    assert best["S"] * best["D"] * 6 == pytest.approx(BUDGET)
    assert best["half"] < best["fivefold"]
    S, D, saved = least_to_reach(SERVED)
    assert (served["S"], served["D"]) == (pytest.approx(S, rel=0.01), pytest.approx(D, rel=0.03))
    assert served["saved"] == pytest.approx(saved, abs=0.005)
    assert served["S_lo"] < served["S"] < served["S_hi"]
    assert [row["kind"] for row in asked.rows if "beyond" in (row["reasons"] or ())] == ["best", "asked"]


def test_where_size_and_tokens_vary_together_no_size_is_named_and_no_more_runs_than_help(tmp_path: Path) -> None:
    store = drawn(tmp_path / "store", *straight(9), 0.003, 1)
    told, asked = ask(store, "decide", resamples=40).words, ask(store, "decide", resamples=40, next=30)
    assert "No size is best yet: size and tokens vary together" in told
    assert not re.search("parameters on|To narrow|No model gets below", told)
    assert {row["plan"] for row in asked.of_kind("next")} == {"per_flop"}
    assert len(asked.of_kind("next")) < 30
    assert asked.results[0].sentences[0].endswith(", one more by less than 2%.")


def test_best_run_and_forecast_are_doubted_alike_where_widened_intervals_miss_too(tmp_path: Path) -> None:
    """Losses wave along compute as no form does, and the largest do not all lie off alike."""
    C = np.repeat(1e18 * 4.0 ** np.arange(6), 3)
    S, ln_C = np.sqrt(C / 120) * np.tile(np.geomspace(0.25, 4, 3), 6), np.log(C / 1e18)
    off = 0.003 * np.random.default_rng(0).standard_normal(18) - 0.02 * ln_C * np.sin(1.2 * ln_C)
    y = law(S, C / 6 / S) * np.exp(off)
    store = imported(tmp_path / "store", {"S": S, "D": C / 6 / S, "loss_nats": y}, dataset="c4")
    of = ask(store, "decide", resamples=20, S=3e9, D=3e10)
    (best,), (wanted,) = of.of_kind("best"), of.of_kind("asked")
    row = ask(store, "predict", resamples=20, S=3e9, D=3e10).rows[0]
    assert best["status"] == wanted["status"] == row["status"] == "intervals_missed"
    assert (wanted["y"], wanted["widened"]) == (row["y"], row["widened"])
    assert f"), widened {best['widened']:.1f} times by its backtests, the best of" in of.results[0].sentences[0]


def test_of_two_variants_it_says_what_to_type_for_the_worth_of_the_change(tmp_path: Path) -> None:
    """Once, beside the variant."""
    S, D = straight(6)
    base, muon = (
        {"S": S, "D": D, "loss_nats": y, "variant": of} for of, y in (("", law(S, D)), ("muon", law(S, D) * 0.99))
    )
    rows = pd.concat([pd.DataFrame(base), pd.DataFrame(muon)])
    store = imported(tmp_path / "store", rows, dataset="c4", family="ours")
    notes = [note for result in ask(store, "decide", resamples=2).results for note in result.notes]
    keys = {"base": "ours", "variant": "ours:muon", "source": "them", "axis": "C"}
    line = "Fits of variants are separate and do not say what muon is worth: " + typed("multiplier", keys)
    assert [note for note in notes if "worth" in note] == [line]
