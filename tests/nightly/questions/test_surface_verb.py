"""The question surface on imported trainings: their last checkpoints, stated FLOPs, a form that is not identified."""

import math
from pathlib import Path

import numpy as np
import pytest

from tests.support.asking import ask, imported

CE = {"laws": ["cross_entropy"], "resamples": 1}
BUDGETS = [1e18 * 10 ** (each / 2) for each in range(7)]
BEST = {C: 1e8 * (C / 1e19) ** 0.3 for C in BUDGETS}


def test_the_mean_of_the_last_checkpoints_stands_for_a_training(tmp_path: Path) -> None:
    trainings = [(S, longest) for S in (1e6, 1e7, 1e8) for longest in (1e9, 1e10)]
    lines = [
        f"{S},{D},m{S:g}-{longest:g},{math.log(S) / math.log(D * longest)!r},c4"
        for S, longest in trainings
        for D in (longest / 4, longest / 2, longest)
    ]
    store = imported(tmp_path / "store", "\n".join(["S,D,model,loss_nats,dataset", *lines]))
    (every,), asked = ask(store, "surface", **CE).rows, ask(store, "surface", **CE, last=2)
    (last,) = asked.rows
    assert (every["n_points"], last["n_points"], last["n_runs"]) == (18, 6, 6)
    expected = {
        (S, longest): (math.log(S) / math.log(longest**2) + math.log(S) / math.log(longest**2 / 2)) / 2
        for S, longest in trainings
    }
    points = zip(*(last["params"][name] for name in ("S", "D", "y")), strict=True)
    assert {(S, D): y for S, D, y in points} == pytest.approx(expected, rel=1e-12)
    assert "A point is the mean of the last 2 checkpoints of a training, or fewer." in asked.words


def test_no_best_of_a_budget_comes_from_a_form_that_is_not_identified(tmp_path: Path) -> None:
    """Seven budgets of FLOPs as a source states them: C / (6 S D) is .926 for the smallest size, more for others."""
    lines = [
        f"{S},{round(C / (6 * S) / (0.926 + 0.03 * n))},{C},{math.exp(1 - 0.05 * math.log(C) + 0.02 * off**2)!r}"
        for C in BUDGETS
        for n, S in enumerate(np.geomspace(1e7, 1e9, 6).tolist())
        for off in [math.log(S / BEST[C])]
    ]
    store = imported(tmp_path / "store", "\n".join(["S,D,training_flops,loss_nats", *lines]), dataset="t")
    asked = ask(store, "surface", form="all", resamples=20, flops=[1e19, 1e22])
    found = {row["form"]: row for row in asked.rows}
    assert "barely_determined" in found["data_constrained"]["reasons"]
    for name, row in found.items():
        for by in ("optima", "optima_as_stated"):
            assert all((best["S"] is None) == (name == "data_constrained") for best in row["params"][by]), (name, by)
    assert "The best of a budget, C as stated" in asked.words
    assert "the best size grows as C^a, a by chinchilla" in asked.words.partition("The best of a budget")[2]
