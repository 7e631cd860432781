"""Tasks in two steps by real commands: the published ladder, imported tables, measured items, and what is refused."""

import csv
import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.config.places import folder
from tests.support.commands import here
from tests.support.stores import Measured

PUBLISHED = folder("experiments") / "published"


def ask(store: Path, cwd: Path, *words: str) -> list[dict[str, Any]]:
    answer = here("downstream", *words, "--store", store, "--format", "json", cwd=cwd, check=0)
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows


def of_kind(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def success(x: float) -> float:
    return 0.25 + 0.7 / (1 + math.exp(4 * (x - 1.1)))


def write_table(path: Path, sizes: int = 6, **names: Any) -> Path:
    """Models of one family: bits per byte by a power law, success by a sigmoid of it, both with a little scatter."""
    lines = ["family,dataset,size,S,bits_per_byte,accuracy,variant"]
    for variant, shift in names.get("variants", {"": 0.0}).items():
        for at in range(sizes):
            S = 10 ** (6 + at / 2)
            x = 2.2 * (S / 1e6) ** -0.17 * math.exp(0.004 * math.sin(9 * at + shift)) - shift
            y = success(x) + 0.003 * math.cos(7 * at)
            lines.append(f"theirs,{names.get('task', 'arc_easy')},m{at},{S},{x},{y},{variant}")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def store(tmp_path: Path, cwd: Path) -> Path:
    here("import", write_table(tmp_path / "t.csv"), "source=them", "--store", tmp_path / "s", cwd=cwd, check=0)
    return tmp_path / "s"


def test_the_published_ladder_comes_out_as_published(tmp_path: Path, cwd: Path) -> None:
    here_rows = here(
        "experiment=published_olmo_ladder",
        "resamples=50",
        "--store",
        tmp_path / "s",
        "--format",
        "json",
        cwd=cwd,
        check=0,
    )
    rows = [row for row in json.loads(here_rows.stdout) if row.get("size") == "peteish13_eval_final"]
    found = {(row["task"], row["feature"]): row for row in of_kind(rows, "prediction")}
    with (PUBLISHED / "olmo_ladder_published.csv").open() as file:
        published = list(csv.DictReader(file))
    assert len(published) == len(found) == 8
    for theirs in published:
        task = theirs["task"].removesuffix("_loss_nats")
        row = found[task, "cross_entropy" if task == "c4" else "bits_per_byte"]
        assert (row["S"], row["D"]) == (13202396160, 5000088518656)
        assert row["step1_predicted"] == pytest.approx(float(theirs["step1_bpb_predicted"]), abs=1e-6)
        assert row["step1_actual"] == pytest.approx(float(theirs["step1_bpb_actual"]), abs=1e-9)
        if task == "c4":
            assert row["step2_predicted"] is row["chained_predicted"] is row["actual"] is None
            continue
        assert row["step2_predicted"] == pytest.approx(float(theirs["step2_accuracy_predicted"]), abs=1e-5)
        assert row["chained_predicted"] == pytest.approx(float(theirs["chained_accuracy_predicted"]), abs=1e-5)
        assert row["actual"] == pytest.approx(float(theirs["accuracy_actual"]), abs=1e-9)
        assert row["chained_predicted_lo"] < row["chained_predicted"] < row["chained_predicted_hi"]
        assert row["status"] != "ok"  # ten times as large as any model that was fitted
    assert sum(row["chained_predicted_lo"] is not None for row in found.values()) == 7


def test_the_shipped_checkpoints_are_those_of_the_source() -> None:
    with gzip.open(PUBLISHED / "olmo_ladder.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1579
    assert {row["role"] for row in rows} == {"fit", "target"}


def test_the_largest_size_is_held_out_and_predicted_within_its_interval(store: Path, cwd: Path) -> None:
    (row,) = of_kind(ask(store, cwd), "prediction")
    assert (row["task"], row["feature"], row["size"], row["form"]) == ("arc_easy", "bits_per_byte", "m5", "combined")
    assert (row["n_trainings"], row["n_points"], row["chance"]) == (5, 6, 0.25)
    assert row["chained_predicted"] == pytest.approx(row["actual"], abs=0.03)
    assert row["held"]
    assert row["error"] == pytest.approx(row["chained_predicted"] - row["actual"])
    assert row["b"] + row["a"] / (1 + math.exp(-row["h"] * (row["step1_actual"] - row["x0"]))) == pytest.approx(
        row["step2_predicted"]
    )


def test_models_still_to_be_trained_are_predicted_from_all(store: Path, cwd: Path) -> None:
    rows = of_kind(ask(store, cwd, "S=[1e9,1e15]"), "prediction")
    assert [(row["S"], row["size"], row["actual"], row["n_trainings"]) for row in rows] == [
        (1e9, None, None, 6),
        (1e15, None, None, 6),
    ]
    assert rows[0]["chained_predicted"] == pytest.approx(success(2.2 * 1e3**-0.17), abs=0.03)
    assert "beyond" not in rows[0]["reasons"]
    assert "beyond" in rows[1]["reasons"]
    assert rows[1]["chained_predicted"] is not None  # a status takes no number away


def test_constants_are_held_and_the_anchor_is_dropped_as_asked(store: Path, cwd: Path) -> None:
    (row,) = of_kind(ask(store, cwd, "bounds={b: [0.95, 0.95], a: [-0.7, -0.7]}", "anchor=null"), "prediction")
    assert (row["a"], row["b"], row["n_points"]) == (-0.7, 0.95, 5)
    assert (row["x0"], row["h"]) == (pytest.approx(1.1, abs=0.03), pytest.approx(4, abs=0.3))


def test_checkpoints_are_dropped_averaged_and_smoothed(tmp_path: Path, cwd: Path) -> None:
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
    (tmp_path / "t.csv").write_text("\n".join(lines))
    here("import", tmp_path / "t.csv", "source=them", "--store", tmp_path / "s", cwd=cwd, check=0)
    (row,) = of_kind(ask(tmp_path / "s", cwd), "prediction")
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


def test_the_order_of_variants_is_predicted(tmp_path: Path, cwd: Path) -> None:
    table = write_table(tmp_path / "v.csv", variants={"good": 0.1, "plain": 0.0, "bad": -0.1})
    here("import", table, "source=them", "--store", tmp_path / "s", cwd=cwd, check=0)
    rows = ask(tmp_path / "s", cwd)
    assert {row["variant"] for row in of_kind(rows, "prediction")} == {"good", "plain", "bad"}
    assert {row["decisions"] for row in of_kind(rows, "feature") if row["task"]} == {1.0}


@pytest.fixture(scope="module")
def tasks(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models on items with choices."""
    place = tmp_path_factory.mktemp("tasks")
    (place / "cwd").mkdir()
    words = ("salt", "rope", "boat", "a light", "the sea")
    rows = [
        {"q": f"The keeper of light {n} has a", "c": [words[(n + m) % 5] for m in range(3)], "r": n % 3}
        for n in range(24)
    ]
    (place / "quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words_of = measured.family.words(text=place / "quiz.jsonl")
    keys = ("dataset.context=[q]", "dataset.choices=c", "dataset.right=r", 'dataset.delimiter=" "')
    here("measure", *words_of, *keys, "--store", place / "s", cwd=place / "cwd", check=0)
    return place / "s"


def test_features_of_items_are_those_of_the_tokens(tasks: Path, cwd: Path) -> None:
    rows = of_kind(ask(tasks, cwd, "dataset=quiz", "k=[1,100]", "resamples=30"), "prediction")
    own = {(row["feature"], row["k"]): row["step1_actual"] for row in rows}
    query = """
        SELECT item, choice, correct, count(*) AS n, sum(logprob::DOUBLE) AS ll, max(greater + ties) + 1 AS worst,
          count(*) FILTER (greater + ties < 100) AS hits
        FROM tokens JOIN runs USING (run_id) WHERE dataset = 'quiz' AND size = (
          SELECT arg_max(size, non_embedding_params) FROM runs) GROUP BY ALL ORDER BY item, choice"""
    answer = here("sql", query, "--store", tasks, "--format", "json", cwd=cwd, check=0)
    tokens = json.loads(answer.stdout)
    right = [row for row in tokens if row["correct"]]
    soft = []
    for row in right:
        of_item = [math.exp(each["ll"]) for each in tokens if each["item"] == row["item"]]
        soft.append(math.exp(row["ll"]) / sum(of_item))
    assert own["cross_entropy", None] == pytest.approx(-sum(r["ll"] for r in right) / sum(r["n"] for r in right))
    assert own["rbp", 100] == pytest.approx(-math.log(sum(r["hits"] for r in right) / sum(r["n"] for r in right)))
    assert own["exact_match", 100] == pytest.approx(-math.log(np.mean([r["worst"] <= 100 for r in right])))
    assert own["soft_accuracy", None] == pytest.approx(-math.log(np.mean(soft)))
    (chance,) = {row["chance"] for row in rows}
    assert chance == pytest.approx(1 / 3)


def test_features_are_compared_on_the_same_items(tasks: Path, cwd: Path) -> None:
    rows = of_kind(ask(tasks, cwd, "k=[1,100]", "resamples=30", "bounds={b: [1, 1]}"), "feature")
    quiz = [row for row in rows if row["task"] == "quiz"]
    assert {"cross_entropy", "bits_per_byte", "soft_accuracy"} <= {row["feature"] for row in quiz}
    assert [row["mean_error"] for row in quiz] == sorted(row["mean_error"] for row in quiz)
    (reference,) = (row for row in quiz if row["feature"] == "cross_entropy")
    assert reference["difference"] is None
    for row in quiz:
        assert row["mean_error_lo"] <= row["mean_error"] <= row["mean_error_hi"]
        if row is not reference:
            assert row["difference"] == pytest.approx(row["mean_error"] - reference["mean_error"])


def test_a_multiplier_on_a_task_compares_its_features(tasks: Path, cwd: Path) -> None:
    (family,) = {row["family"] for row in ask(tasks, cwd, "k=10", "resamples=30")}
    words = ("multiplier", family, family, "dataset=quiz", "k=[10,100]", "resamples=30")
    rows = json.loads(here(*words, "--store", tasks, "--format", "json", cwd=cwd, check=0).stdout)
    overall = {(row["law"], row["k"]): row for row in rows if row["kind"] == "overall" and row["offset"] == "none"}
    named = ("cross_entropy", "bits_per_byte", "error_entropy", "soft_accuracy")
    assert set(overall) == {
        *((name, None) for name in named),
        *((name, k) for name in ("rbp", "exact_match") for k in (10, 100)),
    }
    query = """
        SELECT S, -ln(avg((worst <= 100)::INT)) AS y FROM (
          SELECT non_embedding_params AS S, item, max(greater + ties) + 1 AS worst
          FROM tokens JOIN runs USING (run_id) WHERE dataset = 'quiz' AND correct GROUP BY ALL) GROUP BY S"""
    points = json.loads(here("sql", query, "--store", tasks, "--format", "json", cwd=cwd, check=0).stdout)
    slope, _ = np.polyfit([math.log(row["S"]) for row in points], [math.log(row["y"]) for row in points], 1)
    matched = overall["exact_match", 100]
    assert matched["alpha_base"] == pytest.approx(-slope, rel=1e-6)
    assert matched["multiplier"] == pytest.approx(1.0)


def test_what_cannot_be_asked_is_said_in_one_line(store: Path, tmp_path: Path, cwd: Path) -> None:
    def said(*words: str, at: Path = store) -> str:
        lines = here("downstream", *words, "--store", at, cwd=cwd, check=2).stderr.strip().splitlines()
        assert len(lines) == 1
        return lines[0]

    assert "features=bits_per_bite is unknown; did you mean bits_per_byte" in said("features=[bits_per_bite]")
    assert "held_out=m9 is not a size of" in said("held_out=[m9]")
    assert "drop=1.5 is not a share" in said("drop=1.5")
    assert "bounds: c is unknown" in said("bounds={c: [0, 1]}")
    assert "ends before it begins" in said("bounds={b: [1, 0]}")
    assert "starts: h: steep is not a number" in said("starts={h: steep}")
    assert "anchor=1 is not a point" in said("anchor=1")
    assert "chance=25 is not a share" in said("chance=25")
    assert "form=all names several forms" in said("form=all")
    assert "has a feature exact_match" in said("features=[exact_match]")
    unknown = write_table(tmp_path / "u.csv", task="riddles")
    here("import", unknown, "source=them", "--store", tmp_path / "u", cwd=cwd, check=0)
    assert "task riddles has no known chance, the success of guessing; give chance=0.25" in said(at=tmp_path / "u")
    assert of_kind(ask(tmp_path / "u", cwd, "chance={riddles: 0.25}"), "prediction")[0]["chance"] == 0.25
    few = write_table(tmp_path / "f.csv", sizes=3)
    here("import", few, "source=them", "--store", tmp_path / "f", cwd=cwd, check=0)
    assert "downstream fits 3 sizes or more and predicts a larger one" in said(at=tmp_path / "f")


def test_fewer_models_than_constants_have_no_second_step(tmp_path: Path, cwd: Path) -> None:
    table = write_table(tmp_path / "f.csv", sizes=4)
    here("import", table, "source=them", "--store", tmp_path / "f", cwd=cwd, check=0)
    (row,) = of_kind(ask(tmp_path / "f", cwd), "prediction")
    assert (row["status"], row["step2_predicted"], row["chained_predicted"]) == ("too_few_sizes", None, None)
    assert row["step1_predicted"] is not None
    (held,) = of_kind(ask(tmp_path / "f", cwd, "bounds={b: [1, 1]}"), "prediction")
    assert held["chained_predicted"] is not None


def test_models_that_are_not_above_chance_say_nothing(tmp_path: Path, cwd: Path) -> None:
    lines = ["family,dataset,size,S,bits_per_byte,accuracy"]
    lines += [f"t,arc_easy,m{n},{10 ** (6 + n)},{3 - 0.2 * n},{0.25 + 0.01 * (-1) ** n}" for n in range(6)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    here("import", tmp_path / "t.csv", "source=them", "--store", tmp_path / "s", cwd=cwd, check=0)
    (row,) = of_kind(ask(tmp_path / "s", cwd), "prediction")
    assert "at_chance" in row["reasons"]


def test_both_steps_are_drawn_and_stand_in_the_notebook(store: Path, cwd: Path) -> None:
    import rbpx

    drawn = here("downstream", "--plot", "--store", store, cwd=cwd, check=0).stdout
    forecast, second = drawn.split("Forecast of success")[1].split("Step 2")
    assert {"● fitted", "■ predicted", "▲ actual", "◆ chance"} <= {line.strip() for line in forecast.splitlines()}
    assert "● fitted, sigmoid" in second
    rows = rbpx.open(store).downstream(source="them", features=["bits_per_byte"]).records
    assert [row["size"] for row in rows if row["kind"] == "prediction"] == ["m5"]
