"""Tasks in two steps: the published ladder, imported tables, items, and what is refused."""

import csv
import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.config.folders import folder
from rbpx.errors import RbpxError
from tests.support.asking import Asked, ask, imported, refused
from tests.support.composed import here
from tests.support.quizzes import N_ITEMS, quiz
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


def test_a_table_of_losses_alone_has_no_task(tmp_path: Path) -> None:
    rows = "\n".join(f"{S},c4,{1.7 + 400 * S**-0.34!r}" for S in (10**7, 10**8, 10**9, 10**10))
    with pytest.raises(RbpxError, match="has items or accuracies"):
        ask(imported(tmp_path / "store", f"S,dataset,loss_nats\n{rows}"), "downstream")


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


def test_the_shipped_checkpoints_are_those_of_the_source() -> None:
    with gzip.open(PUBLISHED / "olmo_ladder.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1579
    assert {row["role"] for row in rows} == {"fit", "target"}


def test_the_largest_size_is_held_out_and_predicted_within_its_interval(store: Path) -> None:
    asked = downstream(store)
    (row,) = asked.of_kind("prediction")
    measured = success(2.2 * 10**-0.425 * math.exp(0.004 * math.sin(45))) + 0.003 * math.cos(35)
    answer, *rest = asked.table(100, details=False).splitlines()
    assert answer.startswith(f"m5 is predicted to solve {row['chained_predicted']:.3f} (95 %: ")
    assert f" of arc_easy, and solves {measured:.3f}; by bits per byte" in answer
    assert max(len(line) for line in rest if line.startswith(" ")) <= 100
    assert (row["task"], row["feature"], row["size"], row["form"]) == ("arc_easy", "bits_per_byte", "m5", "combined")
    assert (row["n_trainings"], row["n_points"], row["chance"]) == (5, 6, 0.25)
    assert row["chained_predicted"] == pytest.approx(row["actual"], abs=0.03)
    assert row["held"]
    assert row["error"] == pytest.approx(row["chained_predicted"] - row["actual"])
    assert row["b"] + row["a"] / (1 + math.exp(-row["h"] * (row["step1_actual"] - row["x0"]))) == pytest.approx(
        row["step2_predicted"]
    )


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
    lines, points, ends = ["family,dataset,size,S,D,bits_per_byte,accuracy"], [], {}
    for at in range(5):
        xs = 2.2 * 1.5**-at * np.linspace(1.5, 1, 20) * np.exp(0.01 * rng.standard_normal(20))
        ys = np.array([success(x) for x in xs]) + 0.01 * rng.standard_normal(20)
        lines += [f"t,arc_easy,m{at},{10 ** (6 + at)},{(n + 1) * 10**8},{xs[n]},{ys[n]}" for n in range(20)]
        points += (
            []
            if at == 4
            else [(xs[max(2, n - 4) : n + 1].mean(), ys[max(2, n - 4) : n + 1].mean()) for n in range(2, 20)]
        )
        ends[at] = (xs[-5:].mean(), ys[-5:].mean())
    (row,) = downstream(imported(tmp_path / "s", "\n".join(lines))).of_kind("prediction")
    assert (row["n_points"], row["n_trainings"]) == (len(points) + 1, 4)
    assert (row["step1_actual"], row["actual"]) == (pytest.approx(ends[4][0]), pytest.approx(ends[4][1]))
    x_N, y_N = np.array([*points, (0, 1)]).T
    theta_P = np.array([row[name] for name in ("a", "x0", "h", "b")])

    def squares(of: np.ndarray) -> float:
        return float(np.sum((of[0] / (1 + np.exp(-of[2] * (x_N - of[1]))) + of[3] - y_N) ** 2))

    for p in range(4):  # no step within the bounds is better
        for step in (-1e-4, 1e-4):
            other = theta_P.copy()
            other[p] += step
            if -1 <= other[0] <= 0 and other[3] <= 1:
                assert squares(other) > squares(theta_P)


def test_each_variant_is_predicted_by_itself(tmp_path: Path) -> None:
    variants = (("good", 0.1), ("plain", 0.0), ("bad", -0.1))
    asked = downstream(imported(tmp_path / "s", table(variants=variants)))
    assert {row["variant"] for row in asked.of_kind("prediction")} == {"good", "plain", "bad"}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models on items with choices."""
    return quiz(tmp_path_factory.mktemp("tasks") / "s").root


@pytest.fixture(scope="module")
def of_tasks(tasks: Path) -> Asked:
    return downstream(tasks, k=[2, 5], resamples=30, bounds={"b": [1, 1]})


def test_features_of_items_are_those_of_the_tokens(tasks: Path, of_tasks: Asked) -> None:
    rows = of_tasks.of_kind("prediction")
    own = {(row["feature"], row["k"]): row["step1_actual"] for row in rows}
    (tokens,) = (run for size, run in runs_by_size(tasks).items() if size == "l")
    ll = {
        (item, choice): tokens["logprob"][(tokens["item"] == item) & (tokens["choice"] == choice)].sum(dtype=float)
        for item, choice in {*zip(tokens["item"].tolist(), tokens["choice"].tolist(), strict=True)}
    }
    right, soft, worst = tokens["correct"].astype(bool), [], []
    for item in np.unique(tokens["item"]):
        of_item = right & (tokens["item"] == item)
        (choice,) = np.unique(tokens["choice"][of_item])
        soft.append(math.exp(ll[item, choice]) / sum(math.exp(ll[item, each]) for each in range(3)))
        worst.append((tokens["greater"] + tokens["ties"] + 1)[of_item].max())
    hits = (tokens["greater"] + tokens["ties"] < 5)[right]
    assert own["cross_entropy", None] == pytest.approx(-tokens["logprob"][right].mean(dtype=float))
    assert own["rbp", 5] == pytest.approx(-math.log(hits.mean()))
    assert own["exact_match", 5] == pytest.approx(-math.log(np.mean(np.array(worst) <= 5)))
    assert own["soft_accuracy", None] == pytest.approx(-math.log(np.mean(soft)))
    (chance,) = {row["chance"] for row in rows}
    assert chance == pytest.approx(1 / 3)


def test_the_error_of_a_feature_is_the_mean_over_the_models_held_out(tmp_path: Path) -> None:
    store = imported(tmp_path / "s", table(sizes=7))
    asked = downstream(store, held_out=["m5", "m6"], features=["bits_per_byte"])
    errors = [row["chained_predicted"] - row["actual"] for row in asked.of_kind("prediction")]
    assert len(errors) == 2
    (row,) = asked.of_kind("feature")
    assert (row["feature"], row["n_models"]) == ("bits_per_byte", 2)
    assert row["mean_error"] == pytest.approx((abs(errors[0]) + abs(errors[1])) / 2)
    assert row["mean_error"] > 0


def test_features_stand_in_the_order_of_their_errors(of_tasks: Asked) -> None:
    quiz = [row for row in of_tasks.of_kind("feature") if row["task"] == "quiz"]
    assert {"cross_entropy", "bits_per_byte", "soft_accuracy"} <= {row["feature"] for row in quiz}
    assert [row["mean_error"] for row in quiz] == sorted(row["mean_error"] for row in quiz)
    apart = [row for row in of_tasks.of_kind("prediction") if row["task"] == "quiz"]
    for row in quiz:
        errors = [abs(each["error"]) for each in apart if (each["feature"], each["k"]) == (row["feature"], row["k"])]
        assert row["mean_error"] == pytest.approx(np.mean(errors))


def test_a_multiplier_on_a_task_compares_its_features(tasks: Path) -> None:
    asked = ask(tasks, "multiplier", base="mine", variant=["mine"], k=[2, 5], resamples=30)
    overall = {(row["law"], row["k"]): row for row in asked.of_kind("overall") if row["offset"] == "none"}
    named = ("cross_entropy", "bits_per_byte", "error_entropy", "soft_accuracy")
    assert set(overall) == {
        *((name, None) for name in named),
        *((name, k) for name in ("rbp", "exact_match") for k in (2, 5)),
    }
    runs = runs_by_size(tasks).values()
    y = []
    for tokens in runs:
        of_right = [(tokens["item"] == item) & tokens["correct"].astype(bool) for item in range(N_ITEMS)]
        worst = [(tokens["greater"] + tokens["ties"] + 1)[mask].max() for mask in of_right]
        y.append(-math.log(np.mean(np.array(worst) <= 5)))
    slope, _ = np.polyfit(np.log([run["non_embedding_params"] for run in runs]), np.log(y), 1)
    matched = overall["exact_match", 5]
    assert matched["alpha_base"] == pytest.approx(-slope, rel=1e-6)
    assert matched["multiplier"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"features": ["bits_per_bite"]}, "features=bits_per_bite is unknown; did you mean bits_per_byte"),
        ({"held_out": ["m9"]}, "held_out=m9 is not a size of"),
        ({"drop": 1.5}, "drop=1.5 is not a share"),
        ({"bounds": {"c": [0, 1]}}, "bounds: c: [0, 1] is not known of the sigmoid"),
        ({"bounds": {"b": [1, 0]}}, "bounds: b: [1, 0] is not known"),
        ({"starts": {"h": "steep"}}, "starts: h: steep is not known"),
        ({"anchor": 1}, "anchor=1 is not a point"),
        ({"chance": 25}, "chance=25 is not a share"),
        ({"features": ["exact_match"]}, "has a feature exact_match"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_said_in_one_line(keys: dict[str, Any], says: str, store: Path) -> None:
    with refused(says):
        downstream(store, **keys)


def test_a_task_without_a_known_chance_and_too_few_sizes_are_refused(tmp_path: Path) -> None:
    unknown = imported(tmp_path / "u", table(task="riddles"))
    with refused("task riddles has no known chance, the success of guessing; give chance=0.25"):
        downstream(unknown)
    (row,) = downstream(unknown, chance={"riddles": 0.25}).of_kind("prediction")
    assert row["chance"] == 0.25
    with refused("downstream fits 3 sizes or more and predicts a larger one"):
        downstream(imported(tmp_path / "f", table(sizes=3)))


def test_fewer_models_than_constants_have_no_second_step(tmp_path: Path) -> None:
    few = imported(tmp_path / "f", table(sizes=4))
    (row,) = downstream(few).of_kind("prediction")
    assert (row["status"], row["step2_predicted"], row["chained_predicted"]) == ("too_few_sizes", None, None)
    assert row["step1_predicted"] is not None
    (held,) = downstream(few, bounds={"b": [1, 1]}).of_kind("prediction")
    assert held["chained_predicted"] is not None


def test_models_that_are_not_above_chance_say_nothing(tmp_path: Path) -> None:
    lines = ["family,dataset,size,S,bits_per_byte,accuracy"]
    lines += [f"t,arc_easy,m{n},{10 ** (6 + n)},{3 - 0.2 * n},{0.25 + 0.01 * (-1) ** n}" for n in range(5)]
    (row,) = downstream(imported(tmp_path / "s", "\n".join(lines)), resamples=10).of_kind("prediction")
    assert "no_trend" in row["reasons"]


def test_both_steps_are_drawn(store: Path, cwd: Path, tmp_path: Path) -> None:
    here("downstream", "--format", "svg", "--output", tmp_path / "drawn", "--store", store, cwd=cwd, check=0)
    drawn = {path.stem.rsplit("--")[-1]: path.read_text() for path in (tmp_path / "drawn").glob("*.svg")}
    assert set(drawn) == {"forecast-arc_easy", "step2-arc_easy"}
    for kind in ("fitted", "predicted", "actual"):
        assert kind in drawn["forecast-arc_easy"], kind


@pytest.mark.parametrize("keys", [{}, {"bounds": {"b": [1.0, 1.0]}}], ids=["free", "held"])
def test_a_feature_of_0_at_every_model_is_a_status(tmp_path: Path, keys: dict[str, Any]) -> None:
    rows = "\n".join(f"m{at},{10 ** (6 + at / 2)},1,1,{0.3 + at / 10}" for at in range(6))
    imported(tmp_path / "s", f"size,S,k,rbp,accuracy\n{rows}", dataset="arc_easy", ties="pessimistic")
    (row,) = downstream(tmp_path / "s", features=["rbp"], k=1, **keys).of_kind("prediction")
    assert (row["chained_predicted"], "no_trend" in row["reasons"]) == (None, True)
