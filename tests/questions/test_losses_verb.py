"""One loss from another by `predict`: imported families and drawn runs on two texts, rows and words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.laws.losses.calibration import calibrate, hold_out_best
from tests.support.asking import Asked, ask, imported
from tests.support.loss_pairs import E_X, E_Y, KAPPA, K, losses
from tests.support.losses import S, off, table
from tests.support.stores import cell_records, columns_of
from tests.support.synthetic import Truth, write_store

ON = "cross_entropy@prose"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two families on one curve, on two texts; the largest of one, and one of a third, on the first text alone."""
    lines = [table(), f"a,1e10,{losses(1e10)[0]:.9f},,", f"c,1e8,{losses(1e8)[0]:.9f},,"]
    texts = {"prose": {"loss_nats": "prose"}, "code": {"loss_nats": "code", "accuracy": "right"}}
    store = imported(tmp_path_factory.mktemp("losses") / "store", "\n".join(lines), family=None, texts=texts)
    return store


def asked(store: Path, verb: str, **keys: Any) -> Asked:
    return ask(store, verb, **{"dataset": "code", "axis": ON, "laws": ["cross_entropy"], **keys})


def test_a_figure_has_what_each_model_shows_on_both_texts(store: Path) -> None:
    ((figure,),) = (result.figures() for result in asked(store, "predict").results)
    shown = [(row["series"], row["x"], row["y"]) for row in figure.values.records()]
    for at, size in enumerate(S):
        x, y = losses(size)
        assert ("a", pytest.approx(x), pytest.approx(y * (1 + off(at, "a") / 100))) in shown


def test_models_on_the_other_text_alone_are_predicted_without_S(store: Path) -> None:
    found = asked(store, "predict", x=[2.5])
    told = found.of_kind("prediction")
    by = {(row["model_family"], row["family"]): row for row in told}
    assert len(by) == len(told)
    assert set(by) == {("a", "a"), ("c", "a + b"), (None, "a"), (None, "b")}
    for row in told:
        assert row["lo"] < E_Y + K * (row["x"] - E_X) ** KAPPA < row["hi"]
    x = [losses(size)[0] for size in S]
    y = [losses(size)[1] * (1 + off(at, "a") / 100) for at, size in enumerate(S)]
    calibration = calibrate(x, y, losses(1e10)[0])
    alone = by["a", "a"]
    (again,) = calibration.at([alone["x"]])
    assert alone["y"] == pytest.approx(again.value, rel=1e-6)
    assert (alone["S"], alone["x"]) == (1e10, pytest.approx(losses(1e10)[0]))
    tests = [row for row in found.of_kind("backtest") if row["family"] == "a"]
    assert min(row["x"] for row in tests) == pytest.approx(min(x))
    assert all(row["error"] == pytest.approx((row["y"] - row["measured"]) / row["measured"]) for row in tests)


@pytest.mark.parametrize(("seed", "n_raw", "n_inside", "status"), [(0, 22, 24, "ok"), (2, 20, 21, "intervals_missed")])
def test_backtests_are_as_wide_as_the_prediction_and_too_few_that_hold_even_so_are_said(
    seed: int, n_raw: int, n_inside: int, status: str, tmp_path: Path
) -> None:
    """Ten models, the smaller of which scatter less; four fifths of 28 intervals are 22.4."""
    sizes, rng = np.geomspace(1e7, 1e10, 10), np.random.default_rng(seed)
    x = [round(losses(size)[0], 9) for size in sizes]
    y = [round(losses(size)[1] * np.exp(rng.normal(0, 0.004 if n < 5 else 0.02)), 9) for n, size in enumerate(sizes)]
    lines = ["params,prose,code", *(f"{size:.6g},{a:.9f},{b:.9f}" for size, a, b in zip(sizes, x, y, strict=True))]
    texts = {name: {"loss_nats": name} for name in ("prose", "code")}
    table = "\n".join([*lines, f"5e10,{losses(5e10)[0]:.9f},"])
    found = asked(imported(tmp_path / "store", table, family="a", texts=texts), "predict")
    raw, tests = hold_out_best(x, y), found.of_kind("backtest")
    (answer,) = found.of_kind("prediction")
    assert (len(tests), sum(test.is_inside for test in raw)) == (28, n_raw)
    for row, test in zip(tests, raw, strict=True):
        wider = np.log([row["lo"] / row["y"], row["hi"] / row["y"]])
        narrow = np.log([test.predicted.lo / test.predicted.y, test.predicted.hi / test.predicted.y])
        assert wider == pytest.approx(answer["widened"] * narrow, rel=1e-6)
    assert sum(row["lo"] <= row["measured"] <= row["hi"] for row in tests) == n_inside
    assert answer["status"] == status
    assert f"{n_inside} of 28 intervals held" in found.words


def test_accuracy_is_predicted_as_the_share_of_misses_of_odds(store: Path) -> None:
    """Accuracy on code is 1 / (1 + y) of the loss y there, and its chance is not known: the odds of misses are y."""
    of_loss, of_misses = (
        asked(store, "predict", laws=[law]).of_kind("prediction") for law in ("cross_entropy", "accuracy")
    )
    assert [row["size"] for row in of_misses] == [row["size"] for row in of_loss] != []
    for loss, misses in zip(of_loss, of_misses, strict=True):
        assert misses["y"] == pytest.approx(loss["y"] / (1 + loss["y"]), rel=1e-5)
        assert 0 < misses["lo"] < misses["y"] < misses["hi"] < 1
    told = asked(store, "predict", laws=["accuracy"]).words
    assert "c = 0 the success of guessing, which is not known and taken to be 0." in told


def test_measured_models_are_points_of_what_was_counted_on_each_text(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for dataset, C, seed in (("code", 4.0, 1), ("prose", 3.0, 2)):
        write_store(store, Truth(C=C, scatter=0.02), seed, dataset=dataset)
    ((figure,),) = (result.figures() for result in asked(store, "predict", k=1, laws=["rbp"], axis="rbp@prose").results)
    counted: dict[str, dict[str, float]] = {}
    for record in cell_records(store):
        greater = columns_of(store / "runs" / record["run_id"], "tokens")["greater"]
        counted.setdefault(record["size"], {})[record["dataset"]] = -np.log((greater == 0).mean())
    shown = sorted((row["x"], row["y"]) for row in figure.values.records())
    assert np.array(shown) == pytest.approx(np.array(sorted((of["prose"], of["code"]) for of in counted.values())))


def test_a_score_that_no_model_has_on_the_other_text_predicts_nothing(store: Path) -> None:
    told = asked(store, "predict", axis="accuracy@prose", x=[0.5])
    assert [row["status"] for row in told.rows] == ["too_few_sizes"]
    assert "no model with accuracy on prose is known on code." in told.words
