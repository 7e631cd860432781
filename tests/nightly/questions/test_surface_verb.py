"""The question surface on imported and drawn trainings: checkpoints, stated FLOPs, given constants, forms that fail."""

import math
from pathlib import Path

import numpy as np
import pytest

from tests.support import given
from tests.support.asking import ask, imported
from tests.support.synthetic import TrueSurface, write_surface

TRUTH = TrueSurface()
CE = {"laws": ["cross_entropy"], "resamples": 1}
BUDGETS = [1e18 * 10 ** (each / 2) for each in range(7)]
BEST = {C: 1e8 * (C / 1e19) ** 0.3 for C in BUDGETS}


def test_states_of_a_training_beside_finished_models_are_said_and_can_be_left_out(tmp_path: Path) -> None:
    D = (10**6, 3 * 10**6, 9 * 10**6)
    write_surface(tmp_path, TRUTH, 1, pairs=[(640_000, each) for each in D], states=True, n_documents=5, n_tokens=40)
    finished = [(S, each) for S in (10_000, 40_000, 160_000) for each in D]
    write_surface(tmp_path, TRUTH, 2, pairs=finished, n_documents=5, n_tokens=40)
    (row,), (last,) = (ask(tmp_path, "surface", **CE, **keys).rows for keys in ({}, {"checkpoints": "last"}))
    assert ("mixed" in row["reasons"], row["n_points"], row["n_runs"]) == (True, 12, 10)
    assert ("mixed" in last["reasons"], last["n_points"], last["n_runs"]) == (False, 10, 10)
    assert last["fit_id"] != row["fit_id"]


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


def test_a_quantity_that_is_not_known_has_a_row_without_numbers(tmp_path: Path) -> None:
    lines = [f"{S},{100 * S + D},{9 / S}" for S in (10**5, 2 * 10**5, 4 * 10**5) for D in (1, 7)]
    store = imported(tmp_path / "store", "\n".join(["S,D,loss_nats", *lines]), dataset="c4")
    rows = ask(store, "surface", laws=["cross_entropy", "bits_per_byte"], resamples=1).rows
    (unknown,) = [row for row in rows if row["law"] == "bits_per_byte"]
    assert (unknown["objective"], unknown["alpha"]) == (None, None)
    assert "not_known" in unknown["reasons"]


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven budgets of FLOPs as a source states them: C / (6 S D) is .926 for the smallest size, more for others."""
    lines = [
        f"{S},{round(C / (6 * S) / (0.926 + 0.03 * n))},{C},{math.exp(1 - 0.05 * math.log(C) + 0.02 * off**2)!r}"
        for C in BUDGETS
        for n, S in enumerate(np.geomspace(1e7, 1e9, 6).tolist())
        for off in [math.log(S / BEST[C])]
    ]
    table = "\n".join(["S,D,training_flops,loss_nats", *lines])
    return imported(tmp_path_factory.mktemp("stated") / "store", table, dataset="t")


def test_no_best_of_a_budget_comes_from_a_form_that_is_not_identified(stated: Path) -> None:
    asked = ask(stated, "surface", form="all", resamples=20, flops=[1e19, 1e22])
    found = {row["form"]: row for row in asked.rows}
    assert "barely_determined" in found["data_constrained"]["reasons"]
    for name, row in found.items():
        for by in ("optima", "optima_as_stated"):
            assert all((best["S"] is None) == (name == "data_constrained") for best in row["params"][by]), (name, by)
    assert "The best of a budget, C as stated" in asked.words
    assert "the best size grows as C^a, a by chinchilla" in asked.words.partition("The best of a budget")[2]


def test_a_surface_and_points_on_it_take_constants_of_its_form(tmp_path: Path) -> None:
    keys = {"family": ["plain"], "dataset": "c4", "resamples": 40}
    store = imported(tmp_path / "store", given.table(), family=None)
    (surface,) = ask(store, "surface", **keys, pin={"E": "1.7", "alpha": "0.34"}).rows
    assert (surface["E"], surface["alpha"]) == pytest.approx((1.7, 0.34), rel=1e-9)
    assert surface["beta"] == pytest.approx(0.29, abs=0.02)
    for E, is_refused in (
        ("1", True),
        ("1.7", False),
    ):  # a constant that the trainings refuse, and one that they do not
        asked = ask(store, "predict", **keys, S=[1e11], D=[1e11], E=E)
        (answer,) = [row for row in asked.of_kind("prediction") if row["method"] == "combined"]
        assert ("given_refused" in answer["reasons"]) is is_refused
        assert [row["given"] for row in asked.of_kind("constant")] == ["given", "free", "lower end", "upper end"]


def test_near_the_line_of_collinear_runs_a_law_in_one_axis_answers_and_far_from_it_none(tmp_path: Path) -> None:
    sizes = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
    lines = [f"{S},{20 * S},{TRUTH.level(S, 20 * S)}" for S in sizes]
    store = imported(tmp_path / "store", "\n".join(["S,D,loss_nats", *lines]), dataset="t")
    found = ask(store, "predict", S=[3e6], D=[6e7, 6e9], resamples=30).of_kind("prediction")
    near, far = (row for row in found if row["method"] == "combined")
    assert near["axis"] in ("S", "D")  # along a line of slope 1 they are the same
    assert near["status"] == "collinear_design"
    assert near["y"] == pytest.approx(TRUTH.level(3e6, 6e7), rel=0.03)
    assert near["lo"] <= near["y"] <= near["hi"]
    assert far["y"] is far["lo"] is None
