"""decide on drawn runs: budgets for serving, a run that diverged, a variant, and a report that begins with it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.commands import here
from tests.support.reports import words_of
from tests.support.surfaces import TRUE, grid, law


def imported(folder: Path, S: np.ndarray, D: np.ndarray, y: np.ndarray, variant: str = "") -> Path:
    lines = [
        "S,D,dataset,loss_nats,variant",
        *(f"{s:.0f},{d:.0f},c4,{each!r},{variant}" for s, d, each in zip(S, D, y.tolist(), strict=True)),
    ]
    (folder / "cwd").mkdir(parents=True, exist_ok=True)
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


def test_a_budget_may_be_for_training_and_serving_together(ours: Path) -> None:
    words = ("flops=1e22", "inference_tokens=1e12", "inference_within=true")
    told = ask(ours, *words)
    assert re.match(
        r"Train \S+ parameters on \S+ tokens: loss \S+ \(\S+ to \S+\), the best of 1e\+22 FLOPs for tr", told
    )
    (row,) = [row for row in json.loads(ask(ours, *words, "--format", "json")) if row["kind"] == "served"]
    assert 6 * row["S"] * row["D"] + 2 * row["S"] * 1e12 == pytest.approx(1e22)
    assert (row["within"], row["saved"]) == (True, None)
    assert row["y_lo"] < row["y"] < row["y_hi"]


def test_a_far_budget_for_both_is_said_to_be_far(ours: Path) -> None:
    words = ("flops=1e23", "inference_tokens=1e12", "inference_within=true")
    (row,) = [row for row in json.loads(ask(ours, *words, "--format", "json")) if row["kind"] == "served"]
    assert row["status"] == "beyond"


def test_a_budget_without_a_best_size_does_not_pass(ours: Path) -> None:
    """At 1e9 FLOPs the best size of the law is far below a hundredth of the smallest run."""
    exponents = TRUE["alpha"] + TRUE["beta"]
    balance = (TRUE["alpha"] * TRUE["A"] / (TRUE["beta"] * TRUE["B"])) ** (1 / exponents)
    assert balance * (1e9 / 6) ** (TRUE["beta"] / exponents) < grid(6, 5)[0].min() / 1000
    words = ("budgets=1e9", "--format", "json")
    (row,) = [row for row in json.loads(ask(ours, *words)) if row["kind"] == "best"]
    assert (row["S"], row["y"], row["status"]) == (None, None, "not_straddled")
    assert "not straddled" in ask(ours, "budgets=1e9")


@pytest.mark.parametrize(("within", "status"), [("true", "not_straddled"), ("false", "unreachable")])
def test_what_cannot_be_served_does_not_pass(ours: Path, within: str, status: str) -> None:
    """To serve 1e18 tokens with a model of 1M parameters costs 200 times the budget."""
    words = ("flops=1e22", "inference_tokens=1e18", f"inference_within={within}")
    rows = json.loads(ask(ours, *words, "--format", "json"))
    (row,) = [row for row in rows if row["kind"] == "served"]
    assert (row["S"], row["D"], row["status"]) == (None, None, status)


def test_a_report_of_losses_alone_begins_with_it_and_says_nothing_of_ranks(ours: Path) -> None:
    page = ours / "page.html"
    common = ("resamples=40", "--store", ours / "store")
    here("report", *common, "--output", page, cwd=ours / "cwd", check=0, writes=True)
    text = words_of(page.read_text(encoding="utf-8"))
    assert "30 runs" in text
    assert "scored tokens" not in text
    assert "Tables of the paper" not in text
    begins = "Runs What to train: ours on c4 (them) Train "
    assert begins in text
    assert text.count("; the best size is ") == 1
    assert "RBP" not in text[text.index(begins) :].split("How to read the numbers")[0]


def test_a_largest_run_that_diverged_is_named(tmp_path: Path) -> None:
    S, D = grid(6, 5)
    y = law(S, D) * np.exp(0.003 * np.random.default_rng(2).standard_normal(len(S)))
    y[np.argmax(S * D)] *= 1.2
    told = ask(imported(tmp_path / "off", S, D, y), "outliers=keep", "--details")
    assert re.search(r"The run of \S+ parameters on \S+ tokens is \S+ standard deviations worse", told)


def test_a_variant_is_told_beside_runs_without_one_and_from_how_much_compute_on_it_pays(tmp_path: Path) -> None:
    """A multiplier of (C / 1e19)^.1: in the shares of both axes, so that 1 is crossed at 1e19 FLOPs."""
    S, D = grid(6, 5)
    noise = np.exp(0.001 * np.random.default_rng(4).standard_normal((2, len(S))))
    moved = (6 * S * D / 1e19) ** 0.05
    of = imported(tmp_path / "store", S, D, law(S, D) * noise[0])
    imported(of, S, D, law(S * moved, D * moved) * noise[1], "muon")
    told = ask(of, "variant=muon", "--details")
    (start,) = re.findall(r"Variant muon is worth so many times [^;]*; it pays from (\S+) FLOPs on", told)
    assert 1e19 < float(start) < 1e20
    rows = [row for row in json.loads(ask(of, "variant=muon", "--format", "json")) if row["kind"] == "worth"]
    assert len(rows) == 4
    for row in rows:
        assert row["multiplier_lo"] < (row["C"] / 1e19) ** 0.1 < row["multiplier_hi"]
    assert [row["status"] for row in rows] == ["ok"] * 3 + ["beyond"]
