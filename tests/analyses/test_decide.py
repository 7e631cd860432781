"""decide on drawn runs: its sentences, its rows, and what it does not conclude."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import here
from tests.support.reports import words_of
from tests.support.surfaces import grid, law, straight, true_optimum


def imported(folder: Path, S: np.ndarray, D: np.ndarray, y: np.ndarray) -> Path:
    lines = [
        "S,D,dataset,loss_nats",
        *(f"{s:.0f},{d:.0f},c4,{each!r}" for s, d, each in zip(S, D, y.tolist(), strict=True)),
    ]
    folder.mkdir()
    (folder / "cwd").mkdir()
    (folder / "runs.csv").write_text("\n".join(lines) + "\n")
    words = ("import", folder / "runs.csv", "source=them", "family=ours", "--store", folder / "store")
    here(*words, cwd=folder / "cwd", check=0)
    return folder


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    S, D = grid(6, 5)
    noise = np.random.default_rng(3).standard_normal(len(S))
    return imported(tmp_path_factory.mktemp("decide") / "grid", S, D, law(S, D) * np.exp(0.004 * noise))


def ask(of: Path, *words: object) -> str:
    return here("decide", *words, "resamples=40", "--store", of / "store", cwd=of / "cwd", check=0).stdout


def test_it_answers_in_sentences_what_to_train(ours: Path) -> None:
    told = ask(ours, "flops=1e22", "inference_tokens=1e13", "S=1e10", "D=2e11")
    assert "What to train next, by cross-entropy of 30 runs of 10M to 3.2B parameters on" in told
    assert re.search(r"At 1e\+22 FLOPs train \S+ \(\S+ to \S+\) parameters on", told)
    assert "a model half that size on twice the tokens is" in told
    assert "To serve 10T tokens at the loss of the best run" in told
    assert "10B parameters on 200B tokens would show" in told
    assert "What no model gets below, E, is" in told
    assert "with the most compute" in told
    assert "narrow the loss of the best run most: one of" in told


def test_a_report_of_losses_alone_begins_with_it_and_says_nothing_of_ranks(ours: Path) -> None:
    page = ours / "page.html"
    common = ("resamples=40", "--store", ours / "store")
    here("report", *common, "--output", page, cwd=ours / "cwd", check=0, writes=True)
    text = words_of(page.read_text(encoding="utf-8"))
    assert "30 runs" in text
    assert "scored tokens" not in text
    assert "Tables of the paper" not in text
    begins = "Summary What to train: ours on c4 (them) What to train next, by cross-entropy of 30 runs"
    assert begins in text
    assert text.count("What to train next") == 1
    assert "RBP" not in text[text.index(begins) :].split("How to read the numbers")[0]


def test_its_rows_have_what_its_sentences_say(ours: Path) -> None:
    rows: list[dict[str, Any]] = json.loads(ask(ours, "budgets=[1e21,1e22]", "--format", "json"))
    kinds = {row["kind"] for row in rows}
    assert {"runs", "best", "largest"} <= kinds
    best = [row for row in rows if row["kind"] == "best"]
    assert [row["C"] for row in best] == [1e21, 1e22]
    for row in best:
        assert row["S_lo"] < true_optimum(row["C"]) < row["S_hi"]
        assert row["S"] * row["D"] * 6 == pytest.approx(row["C"])
        assert row["half"] < row["fivefold"]


def test_where_size_and_tokens_vary_together_no_size_is_named(tmp_path: Path) -> None:
    S, D = straight(9)
    of = imported(tmp_path / "line", S, D, law(S, D) * np.exp(0.003 * np.random.default_rng(1).standard_normal(9)))
    told = ask(of)
    assert "What must not be concluded: which size is best" in told
    assert "FLOPs train" not in told
    assert "runs that narrow" not in told.lower()


def test_a_largest_run_that_diverged_is_named(tmp_path: Path) -> None:
    S, D = grid(6, 5)
    y = law(S, D) * np.exp(0.003 * np.random.default_rng(2).standard_normal(len(S)))
    y[np.argmax(S * D)] *= 1.2
    told = ask(imported(tmp_path / "off", S, D, y))
    assert re.search(r"[Tt]he run of \S+ parameters on \S+ tokens is \S+ standard deviations worse", told)
