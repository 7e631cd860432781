"""Tasks in two steps: the published ladder, imported tables, and items."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.config.folders import folder
from tests.support.asking import Asked, ask, imported
from tests.support.quizzes import quiz
from tests.support.stores import runs_by_size

PUBLISHED = folder("experiments") / "published"


def downstream(store: Path, **keys: Any) -> Asked:
    return ask(store, "downstream", **keys)


def success(x: float) -> float:
    return 0.25 + 0.7 / (1 + math.exp(4 * (x - 1.1)))


def table(sizes: int = 6, task: str = "arc_easy", variants: tuple[tuple[str, float], ...] = (("", 0.0),)) -> str:
    """Models of one family: bits per byte by a power law, success by a sigmoid of it, both with a little scatter."""
    lines = ["family,dataset,size,S,bits_per_byte,accuracy,variant"]
    for variant, shift in variants:
        for at in range(sizes):
            S = 10 ** (6 + at / 2)
            x = 2.2 * (S / 1e6) ** -0.17 * math.exp(0.004 * math.sin(9 * at + shift)) - shift
            y = success(x) + 0.003 * math.cos(7 * at)
            lines.append(f"theirs,{task},m{at},{S},{x},{y},{variant}")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("theirs") / "s", table())


def test_the_published_ladder_comes_out_as_published(tmp_path: Path) -> None:
    """One of its seven tasks."""
    texts = {"hellaswag": {"bits_per_byte": "hellaswag_bpb", "accuracy": "hellaswag_accuracy"}}
    columns = {"S": "params", "D": "tokens", "size": "run"}
    ladder = PUBLISHED / "olmo_ladder.csv.gz"
    imported(tmp_path / "s", ladder, "olmo", family="olmo", columns=columns, texts=texts)
    held_out = ["peteish7_eval_anneal", "peteish13_eval_final"]
    asked = downstream(tmp_path / "s", held_out=held_out, features=["bits_per_byte"], form="chinchilla")
    (row,) = (row for row in asked.of_kind("prediction") if row["size"] == "peteish13_eval_final")
    with (PUBLISHED / "olmo_ladder_published.csv").open() as file:
        (theirs,) = (row for row in csv.DictReader(file) if row["task"] == "hellaswag")
    assert (row["S"], row["D"]) == (13202396160, 5000088518656)
    assert row["step1_predicted"] == pytest.approx(float(theirs["step1_bpb_predicted"]), abs=1e-6)
    assert row["step1_actual"] == pytest.approx(float(theirs["step1_bpb_actual"]), abs=1e-9)
    assert row["step2_predicted"] == pytest.approx(float(theirs["step2_accuracy_predicted"]), abs=1e-5)
    assert row["chained_predicted"] == pytest.approx(float(theirs["chained_accuracy_predicted"]), abs=1e-5)
    assert row["actual"] == pytest.approx(float(theirs["accuracy_actual"]), abs=1e-9)
    assert row["chained_predicted_lo"] < row["chained_predicted"] < row["chained_predicted_hi"]
    assert row["status"] != "ok"  # ten times as large as any model that was fitted


def test_the_largest_size_of_each_variant_is_held_out_and_predicted_within_its_interval(tmp_path: Path) -> None:
    asked = downstream(imported(tmp_path / "s", table(variants=(("", 0.0), ("good", 0.1)))))
    assert [row["variant"] for row in asked.of_kind("prediction")] == [None, "good"]
    row = asked.of_kind("prediction")[0]
    measured = success(2.2 * 10**-0.425 * math.exp(0.004 * math.sin(45))) + 0.003 * math.cos(35)
    assert (row["task"], row["feature"], row["size"], row["form"]) == ("arc_easy", "bits_per_byte", "m5", "combined")
    assert (row["n_trainings"], row["n_points"], row["chance"]) == (5, 6, 0.25)
    assert row["actual"] == pytest.approx(measured)
    assert row["chained_predicted"] == pytest.approx(measured, abs=0.03)
    assert row["held"]
    assert row["error"] == pytest.approx(row["chained_predicted"] - row["actual"])
    of_loss = row["b"] + row["a"] / (1 + math.exp(-row["h"] * (row["step1_actual"] - row["x0"])))
    assert of_loss == pytest.approx(row["step2_predicted"])


def test_models_still_to_be_trained_are_predicted_from_all(store: Path) -> None:
    rows = downstream(store, S=[1e9, 1e15]).of_kind("prediction")
    assert [(row["S"], row["size"], row["actual"], row["n_trainings"]) for row in rows] == [
        (1e9, None, None, 6),
        (1e15, None, None, 6),
    ]
    assert rows[0]["chained_predicted"] == pytest.approx(success(2.2 * 1e3**-0.17), abs=0.03)
    assert "beyond" not in rows[0]["reasons"]
    assert "beyond" in rows[1]["reasons"]
    assert rows[1]["chained_predicted"] is not None  # a status takes no number away


def test_constants_are_held_and_the_anchor_is_dropped_as_asked(store: Path) -> None:
    (row,) = downstream(store, bounds={"b": [0.95, 0.95], "a": [-0.7, -0.7]}, anchor=None).of_kind("prediction")
    assert (row["a"], row["b"], row["n_points"]) == (-0.7, 0.95, 5)
    assert (row["x0"], row["h"]) == (pytest.approx(1.1, abs=0.03), pytest.approx(4, abs=0.3))


def test_checkpoints_are_dropped_averaged_and_smoothed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines, points = ["family,dataset,size,S,D,bits_per_byte,accuracy"], []
    for at in range(5):
        xs = 2.2 * 1.5**-at * np.linspace(1.5, 1, 20) * np.exp(0.01 * rng.standard_normal(20))
        ys = np.array([success(x) for x in xs]) + 0.01 * rng.standard_normal(20)
        lines += [f"t,arc_easy,m{at},{10 ** (6 + at)},{(n + 1) * 10**8},{xs[n]},{ys[n]}" for n in range(20)]
        if at < 4:
            points += [(xs[max(2, n - 4) : n + 1].mean(), ys[max(2, n - 4) : n + 1].mean()) for n in range(2, 20)]
    (row,) = downstream(imported(tmp_path / "s", "\n".join(lines))).of_kind("prediction")
    assert (row["n_points"], row["n_trainings"]) == (len(points) + 1, 4)
    assert (row["step1_actual"], row["actual"]) == pytest.approx((xs[-5:].mean(), ys[-5:].mean()))
    x_N, y_N = np.array([*points, (0, 1)]).T
    theta_P = np.array([row[name] for name in ("a", "x0", "h", "b")])

    def squares(of: np.ndarray) -> float:
        return float(np.sum((of[0] / (1 + np.exp(-of[2] * (x_N - of[1]))) + of[3] - y_N) ** 2))

    for step in (*1e-4 * np.eye(4), *-1e-4 * np.eye(4)):  # none within the bounds is better
        other = theta_P + step
        assert squares(other) > squares(theta_P) or not (-1 <= other[0] <= 0 and other[3] <= 1)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models on items with choices."""
    return quiz(tmp_path_factory.mktemp("tasks") / "s").root


def test_features_of_items_are_those_of_the_tokens(tasks: Path) -> None:
    asked = downstream(tasks, k=[2, 5], resamples=30, bounds={"b": [1, 1]})
    rows = asked.of_kind("prediction")
    errors = [row["mean_error"] for row in asked.of_kind("feature") if row["task"] == "quiz"]
    assert errors == sorted(errors)  # the best stands first
    assert len(set(errors)) > 2
    own = {(row["feature"], row["k"]): row["step1_actual"] for row in rows}
    tokens = runs_by_size(tasks)["l"]
    item_T, choice_T, right_T = tokens["item"], tokens["choice"], tokens["correct"].astype(bool)
    rank_T = tokens["greater"] + tokens["ties"] + 1
    soft, worst = [], []
    for item in np.unique(item_T):
        of_right = right_T & (item_T == item)
        p = [math.exp(tokens["logprob"][(item_T == item) & (choice_T == each)].sum(dtype=float)) for each in range(3)]
        soft.append(p[choice_T[of_right][0]] / sum(p))
        worst.append(rank_T[of_right].max())
    assert own["cross_entropy", None] == pytest.approx(-tokens["logprob"][right_T].mean(dtype=float))
    assert own["rbp", 5] == pytest.approx(-math.log((rank_T[right_T] <= 5).mean()))
    assert own["exact_match", 5] == pytest.approx(-math.log(np.mean(np.array(worst) <= 5)))
    assert own["soft_accuracy", None] == pytest.approx(-math.log(np.mean(soft)))
    assert [row["chance"] for row in rows] == pytest.approx([1 / 3] * len(rows))


def test_the_error_of_a_feature_is_the_mean_over_the_models_held_out(tmp_path: Path) -> None:
    asked = downstream(imported(tmp_path / "s", table(sizes=7)), held_out=["m5", "m6"], features=["bits_per_byte"])
    errors = [row["chained_predicted"] - row["actual"] for row in asked.of_kind("prediction")]
    (row,) = asked.of_kind("feature")
    assert (row["feature"], row["n_models"]) == ("bits_per_byte", 2)
    assert row["mean_error"] == pytest.approx((abs(errors[0]) + abs(errors[1])) / 2) != 0


def test_a_multiplier_on_a_task_compares_its_features(tasks: Path) -> None:
    asked = ask(tasks, "multiplier", base="mine", variant=["mine"], k=[2, 5], resamples=30)
    overall = {(row["law"], row["k"]): row for row in asked.of_kind("overall") if row["offset"] == "none"}
    named = ("cross_entropy", "bits_per_byte", "error_entropy", "soft_accuracy")
    assert set(overall) == {
        *((name, None) for name in named),
        *((name, k) for name in ("rbp", "exact_match") for k in (2, 5)),
    }
    assert overall["exact_match", 5]["multiplier"] == pytest.approx(1.0)


def test_fewer_models_than_constants_have_no_second_step(tmp_path: Path) -> None:
    few = imported(tmp_path / "f", table(sizes=4))
    (row,) = downstream(few).of_kind("prediction")
    assert (row["status"], row["step2_predicted"], row["chained_predicted"]) == ("too_few_sizes", None, None)
    assert row["step1_predicted"] is not None
    (held,) = downstream(few, bounds={"b": [1, 1]}).of_kind("prediction")
    assert held["chained_predicted"] is not None


def test_both_steps_are_drawn(store: Path) -> None:
    asked = downstream(store)
    figures = {figure.name: figure for figure in asked.results[0].figures()}
    assert set(figures) == {"forecast-arc_easy", "step2-arc_easy"}
    drawn = {row["series"]: row["success"] for row in figures["forecast-arc_easy"].values.records()}
    (row,) = asked.of_kind("prediction")
    assert drawn == {"fitted": drawn["fitted"], "predicted": row["chained_predicted"], "actual": row["actual"]}


@pytest.mark.parametrize("keys", [{}, {"bounds": {"b": [1.0, 1.0]}}], ids=["free", "held"])
def test_a_feature_of_0_at_every_model_is_a_status(tmp_path: Path, keys: dict[str, Any]) -> None:
    rows = "\n".join(f"m{at},{10 ** (6 + at / 2)},1,1,{0.3 + at / 10}" for at in range(6))
    imported(tmp_path / "s", f"size,S,k,rbp,accuracy\n{rows}", dataset="arc_easy", ties="pessimistic")
    (row,) = downstream(tmp_path / "s", features=["rbp"], k=1, **keys).of_kind("prediction")
    assert (row["chained_predicted"], "no_trend" in row["reasons"]) == (None, True)
