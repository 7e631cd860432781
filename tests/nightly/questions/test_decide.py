"""decide on drawn runs: budgets for serving, budgets without a best size, and what a variant is worth."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.asking import ask, imported
from tests.support.surfaces import grid, law


def drawn(store: Path, seed: int, scatter: float, shift: float = 0.0, **keys: str) -> Path:
    """Runs that scatter about the law; sizes and tokens may be worth (C / 1e19)^shift as much each."""
    S, D = grid(6, 5)
    moved = (6 * S * D / 1e19) ** shift
    y = law(S * moved, D * moved) * np.exp(scatter * np.random.default_rng(seed).standard_normal(len(S)))
    lines = [f"{s:.0f},{d:.0f},c4,{each!r}" for s, d, each in zip(S, D, y.tolist(), strict=True)]
    return imported(store, "\n".join(["S,D,dataset,loss_nats", *lines]), family="ours", **keys)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drawn(tmp_path_factory.mktemp("decide") / "store", 3, 0.004)


def test_a_budget_may_be_for_training_and_serving_together(ours: Path) -> None:
    keys = {"inference_tokens": 1e12, "inference_within": True, "resamples": 40}
    asked = ask(ours, "decide", flops=1e22, **keys)
    (row,) = asked.of_kind("served")
    assert re.match(r"Train \S+ parameters on \S+ tokens: loss \S+ .*, the best of 1e\+22 FLOPs for tr", asked.words)
    assert 6 * row["S"] * row["D"] + 2 * row["S"] * 1e12 == pytest.approx(1e22)
    assert (row["within"], row["saved"]) == (True, None)
    assert row["y_lo"] < row["y"] < row["y_hi"]
    (far,) = ask(ours, "decide", flops=1e23, **keys).of_kind("served")
    assert far["status"] == "beyond"


@pytest.mark.parametrize(
    ("keys", "kind", "status"),
    [
        ({"flops": [1e9]}, "best", "unreachable"),  # its best size is below a thousandth of the smallest run
        ({"flops": 1e22, "inference_tokens": 1e18, "inference_within": True}, "served", "unreachable"),
        ({"flops": 1e22, "inference_tokens": 1e18}, "served", "unreachable"),  # 200 times the budget for 1M parameters
    ],
)
def test_a_budget_without_a_best_size_does_not_pass(ours: Path, keys: dict, kind: str, status: str) -> None:
    (row,) = ask(ours, "decide", resamples=40, **keys).of_kind(kind)
    assert (row["S"], row["D"], row["y"], row["status"]) == (None, None, None, status)


def test_a_variant_pays_from_some_compute_on(tmp_path: Path) -> None:
    """A multiplier of (C / 1e19)^.1: in the shares of both axes, so that 1 is crossed at 1e19 FLOPs."""
    drawn(tmp_path / "store", 4, 0.001)
    store = drawn(tmp_path / "store", 5, 0.001, 0.05, variant="muon")
    asked = ask(store, "multiplier", base="ours", variant=["ours:muon"], axis="C", resamples=40)
    (start,) = re.findall(r"so it costs, but from (\S+) FLOPs on it pays", asked.words)
    assert 1e19 < float(start) < 1e20
    rows = asked.of_kind("at")
    assert [row["status"] for row in rows] == ["ok"] * 3 + ["beyond"]
    for row in rows:
        assert row["multiplier_lo"] < (row["C"] / 1e19) ** 0.1 < row["multiplier_hi"]
