"""predict at (S, D), design and trajectory on drawn trainings, and their place in a report."""

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import curve_fit

import rbpx
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs
from tests.support.commands import Answer, here
from tests.support.synthetic import TrueSurface, write_surface

TRUTH = TrueSurface(S=(10_000, 40_000, 160_000, 640_000))
CHECKPOINTS = TrueSurface(S=(10_000, 640_000), D=(10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7, 3 * 10**7), scatter=0.001)


def ask(store: Path, cwd: Path, verb: str, *words: object, check: int = 0) -> Answer:
    return here(verb, *words, "--store", store, cwd=cwd, check=check)


def rows(store: Path, cwd: Path, verb: str, *words: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ask(store, cwd, verb, *words, "--format", "json").stdout)
    return found


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in found if row["kind"] == kind]


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measured grid of 16 trainings."""
    root = tmp_path_factory.mktemp("trainings") / "store"
    write_surface(root, TRUTH, 3, n_documents=20, n_tokens=150)
    return root


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two measured trainings of six checkpoints."""
    root = tmp_path_factory.mktemp("states") / "store"
    write_surface(root, CHECKPOINTS, 4, states=True, n_documents=20, n_tokens=60)
    return root


def test_predictions_at_points_are_those_of_the_surface_through_the_runs(grid: Path, cwd: Path) -> None:
    words = ("S=[1e6,1e5]", "D=[1e8,2e7]", "laws=[rbp]", "k=10", "resamples=40")
    found = of_kind(rows(grid, cwd, "predict", *words), "prediction")
    assert [(row["S"], row["D"], row["method"]) for row in found] == [
        (S, D, method) for S, D in ((1e6, 1e8), (1e5, 2e7)) for method in ("combined", "chinchilla", "kaplan")
    ]
    (kept,) = rows(grid, cwd, "surface", "laws=[rbp]", "k=10", "resamples=40")
    of = kept["params"]
    plain = fit_surface(Runs.of(of["S"], of["D"], of["y"]), n_resamples=0)
    assert plain.surface is not None
    for row in found:
        assert row["lo"] < row["y"] < row["hi"]
        assert sum(row["weights"].values()) == pytest.approx(1) if row["method"] == "combined" else True
        if row["method"] == "chinchilla":
            assert row["y"] == pytest.approx(plain.surface.predict(row["S"], row["D"]).value, rel=1e-4)
    level = TRUTH.level(1e6, 1e8) * 10**-TRUTH.by_k
    combined = found[0]
    assert combined["lo"] / 1.15 < level < combined["hi"] * 1.15  # the text of 20 documents is one draw
    forms = [row["y"] for row in found[1:3]]
    assert min(forms) / 1.05 < combined["y"] < max(forms) * 1.05


def test_held_out_runs_are_the_largest_of_each_axis(grid: Path, cwd: Path) -> None:
    found = rows(grid, cwd, "predict", "S=1e6", "D=1e8", "laws=[cross_entropy]", "resamples=40")
    tests = [row for row in of_kind(found, "backtest") if row["method"] == "chinchilla"]
    largest = {
        "S": [(max(TRUTH.S), D) for D in TRUTH.D],
        "D": [(S, max(TRUTH.D)) for S in TRUTH.S],
        "C": [(max(TRUTH.S), max(TRUTH.D))],
    }
    for axis, points in largest.items():
        assert sorted((row["S"], row["D"]) for row in tests if row["axis"] == axis) == sorted(points)
    for row in tests:
        assert row["error"] == pytest.approx((row["y"] - row["measured"]) / row["measured"])
        assert row["held"] is (None if row["lo"] is None else row["lo"] <= row["measured"] <= row["hi"])


def test_near_the_line_of_collinear_runs_a_law_in_one_axis_answers_and_far_from_it_none(
    tmp_path: Path, cwd: Path
) -> None:
    sizes = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
    lines = [f"{S},{20 * S},{TRUTH.level(S, 20 * S)}" for S in sizes]
    (tmp_path / "line.csv").write_text("\n".join(["S,D,loss_nats", *lines]))
    store = tmp_path / "store"
    here("import", tmp_path / "line.csv", "source=them", "family=f", "dataset=t", "--store", store, cwd=cwd, check=0)
    found = of_kind(rows(store, cwd, "predict", "S=3e6", "D=[6e7,6e9]", "resamples=30"), "prediction")
    near, far = (row for row in found if row["method"] == "combined")
    assert near["axis"] in ("S", "D")  # along a line of slope 1 they are the same
    assert near["status"] == "collinear_design"
    assert near["y"] == pytest.approx(TRUTH.level(3e6, 6e7), rel=0.03)
    assert near["lo"] <= near["y"] <= near["hi"]
    assert far["y"] is far["lo"] is None


def test_the_design_of_a_grid_and_of_the_runs_to_train_next(grid: Path, cwd: Path) -> None:
    found = rows(grid, cwd, "design", "next=4", "flops=1e13", "resamples=30")
    (design,), chosen = of_kind(found, "design"), of_kind(found, "next")
    assert (design["n_S"], design["n_D"], design["n_runs"]) == (4, 4, 16)
    assert design["least_D_per_S"] == pytest.approx(min(TRUTH.D) / max(TRUTH.S))
    assert design["greatest_D_per_S"] == pytest.approx(max(TRUTH.D) / min(TRUTH.S))
    # In a grid ln D does not depend on ln S, so what is left of it is its own deviation, 14 degrees of freedom.
    ln_D = np.log(np.tile(TRUTH.D, 4))
    assert design["sd_D"] == pytest.approx(math.sqrt(((ln_D - ln_D.mean()) ** 2).sum() / 14))
    assert {row["plan"] for row in chosen} == {"per_flop", "budget"}
    for plan in ("per_flop", "budget"):
        of_plan = [row for row in chosen if row["plan"] == plan]
        assert 0 < sum(row["C"] for row in of_plan) <= 1e13
        for before, after in pairwise(of_plan):
            assert after["sd_before"] == pytest.approx(before["sd_after"])
    for row in chosen:
        assert row["C"] == pytest.approx(6 * row["S"] * row["D"])
        assert row["narrowed"] == pytest.approx(1 - row["sd_after"] / row["sd_before"])
        assert row["per_flop"] == pytest.approx((row["sd_before"] ** 2 - row["sd_after"] ** 2) / row["C"], rel=1e-6)
    printed = ask(grid, cwd, "design", "next=2", "S=1e7", "D=1e9", "resamples=30").stdout
    (line,) = [line for line in printed.splitlines() if line.startswith(" cross-entropy ")]
    assert line.split()[:4] == ["cross-entropy", "chinchilla", "16", "4"]  # points and sizes
    assert "To narrow ln y at S = 1e+07, D = 1e+09" in printed
    assert re.search(r"run 1: train \S+ parameters on \S+ tokens \(\S+ FLOPs\)", printed)


def test_a_budget_that_pays_for_no_run_is_a_wrong_request(grid: Path, cwd: Path) -> None:
    refused = ask(grid, cwd, "design", "next=2", "flops=1e3", "resamples=30", check=2)
    assert "flops=1000 pays for no run that informs: the least that there is took 6e+10" in refused.stderr


def test_histories_along_training_are_those_of_a_plain_count(states: Path, cwd: Path) -> None:
    found = rows(states, cwd, "trajectory", "k=3", "laws=[rbp]", "resamples=20", "top=2")
    query = (
        "SELECT size, training_tokens AS D, doc_id, position, greater + ties + 1 <= 3 AS hit FROM tokens "
        "JOIN runs USING (run_id) ORDER BY size, doc_id, position, D"
    )
    counted: dict[tuple[str, int, int], list[bool]] = {}
    for row in json.loads(ask(states, cwd, "sql", query, "--format", "json").stdout):
        counted.setdefault((row["size"], row["doc_id"], row["position"]), []).append(row["hit"])
    tokens = {row["size"]: row for row in of_kind(found, "tokens") if row["along"] == "training"}
    assert set(tokens) == {"10000", "640000"}
    for size, row in tokens.items():
        of_size = [hits for (of, _, _), hits in counted.items() if of == size]
        changes = [sum(a != b for a, b in pairwise(hits)) for hits in of_size]
        plain = {
            "never": sum(not any(hits) for hits in of_size),
            "always": sum(all(hits) for hits in of_size),
            "learned": sum(n == 1 and hits[-1] for n, hits in zip(changes, of_size, strict=True)),
            "forgotten": sum(n == 1 and hits[0] for n, hits in zip(changes, of_size, strict=True)),
            "unstable": sum(n > 1 for n in changes),
        }
        assert row["n_tokens"] == len(of_size) == 1200
        assert {name: row[name] for name in plain} == {name: pytest.approx(n / 1200) for name, n in plain.items()}
        settled = [max([at for at in range(1, 6) if hits[at] != hits[at - 1]], default=0) for hits in of_size]
        by = [row["share"] for row in of_kind(found, "settled") if row["size"] == size]
        assert by == [pytest.approx(sum(at <= place for at in settled) / 1200) for place in range(6)]
    named = [row for row in of_kind(found, "token") if row["history"] == "learned" and row["size"] == "640000"]
    assert [row["text"] for row in named] == [{0: "a", 1: "b", 2: "c"}[row["token_id"]] for row in named]
    assert len(named) == 2
    assert named[0]["n"] >= named[1]["n"] > 0


def test_the_law_of_each_size_along_training_is_near_the_truth_and_kept(states: Path, cwd: Path) -> None:
    found = rows(states, cwd, "trajectory", "k=1", "laws=[rbp]", "resamples=20", "warm_up=2e5")
    laws = of_kind(found, "law")
    assert [(row["size"], row["n_points"], row["D_first"], row["is_found"]) for row in laws] == [
        ("10000", 5, 3e5, False), ("640000", 5, 3e5, False)
    ]  # fmt: skip
    for row in laws:
        points = [each for each in of_kind(found, "point") if each["size"] == row["size"]]
        assert [each["D"] for each in points] == list(CHECKPOINTS.D)
        D, y = (np.array([each[name] for each in points[1:]]) for name in "Dy")

        def ln_law(ln_D: Any, E: float, at_million: float, beta: float) -> Any:
            return np.log(E + at_million * np.exp(-beta * (ln_D - np.log(1e6))))

        plain, _ = curve_fit(ln_law, np.log(D), np.log(y), p0=[1.0, 2.0, 0.3], bounds=(0, np.inf), xtol=1e-12)
        ours = [row["E"], row["B"] * 1e6 ** -row["beta"], row["beta"]]
        assert ours == pytest.approx(plain.tolist(), rel=1e-3, abs=1e-3)
    query = "SELECT count(*) AS n FROM fits WHERE method = 'offset' AND size IN ('10000', '640000') AND k = 1"
    assert json.loads(ask(states, cwd, "sql", query, "--format", "json").stdout)[0]["n"] == 2


def test_a_report_of_imported_trainings_has_their_surface_and_what_happens_along_training(
    tmp_path: Path, cwd: Path
) -> None:
    lines = [f"{S},{D},{TRUTH.level(S, D)},s{S}" for S in TRUTH.S for D in CHECKPOINTS.D]
    (tmp_path / "grid.csv").write_text("\n".join(["S,D,loss_nats,model", *lines]))
    store = tmp_path / "store"
    here("import", tmp_path / "grid.csv", "source=them", "family=f", "dataset=t", "--store", store, cwd=cwd, check=0)
    chart = rbpx.open(store).surface(resamples=1).plot()
    assert len(chart.to_dict()["layer"]) == 3  # contours, the best of each budget, the runs
    refused = ask(store, cwd, "fit", check=2)
    assert "fit size and tokens together: python -m rbpx surface family=f" in refused.stderr
    ask(store, cwd, "report", "resamples=20", "--output", tmp_path / "figures", "--format", "svg")
    drawn = sorted(path.stem for path in (tmp_path / "figures").glob("*.svg"))
    assert drawn == [
        *(f"surface-Size-and-tokens-f-on-t-them--{what}-cross_entropy" for what in ("contours", "isoflop", "optimum")),
        "trajectory-Along-training-f-on-t-them--cross_entropy",
    ]
    (listed,) = (tmp_path / "figures").glob("*.md")
    for said in ("the runs; dots: the best for each budget", "with a parabola in ln S; rings: minima", "95 % band"):
        assert said in listed.read_text()


TAKE_THE_LAST = [
    "fit",
    "fit axis=C",
    "predict S=1e7",
    "predict S=1e7 D=1e9 resamples=20",
    "surface resamples=20",
    "design next=2 resamples=20",
    "multiplier base=base variant=other",
    "multiplier base=base variant=other axis=C",
]


@pytest.fixture(scope="module")
def all_and_last(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two families of imported trainings with three checkpoints each, and the same without all but the last of each."""
    root, cwd = tmp_path_factory.mktemp("last"), tmp_path_factory.mktemp("cwd")
    rng = np.random.default_rng(8)
    lines = []
    for family, shift in (("base", 1.0), ("other", 1.3)):
        for S, ratio in ((10_000, 20), (40_000, 90), (160_000, 30), (640_000, 10), (2_560_000, 50)):
            for step in (1, 2, 3):
                D = S * ratio * step // 3
                y = TRUTH.level(S * shift, D) * (1.3 - 0.1 * step) * math.exp(rng.normal(0, 0.003))
                lines.append(f"{family},{family}-{S},{S},{D},{step},{y}")
    for name, kept in (("all", lines), ("last", lines[2::3])):
        (root / f"{name}.csv").write_text("\n".join(["family,model,S,D,step,loss_nats", *kept]))
        here("import", root / f"{name}.csv", "source=them", "dataset=t", "--store", root / name, cwd=cwd, check=0)
    return root / "all", root / "last"


@pytest.mark.parametrize("question", TAKE_THE_LAST)
def test_the_last_checkpoints_say_what_a_store_of_these_alone_says(
    all_and_last: tuple[Path, Path], cwd: Path, question: str
) -> None:
    verb, *words = question.split()
    told, alone = (
        [
            {name: value for name, value in row.items() if isinstance(value, float | str)}
            for row in rows(store, cwd, verb, *words, *more)
        ]
        for store, more in zip(all_and_last, (["checkpoints=last"], []), strict=True)
    )
    for row in (*told, *alone):
        for name in ("fit_id", "created_at", "forecast_id", "points_hash"):
            row.pop(name, None)
    assert told == alone
    assert any(isinstance(value, float) for row in told for value in row.values())


def test_earlier_checkpoints_that_are_left_out_are_counted(all_and_last: tuple[Path, Path], cwd: Path) -> None:
    every, last = all_and_last
    for words in (("fit",), ("predict", "S=1e7")):
        said = "base on t (them): Left out: 10 runs; each is before the last checkpoint of its training."
        assert said in ask(every, cwd, *words, "family=base", "checkpoints=last").stdout
        assert "Left out" not in ask(last, cwd, *words, "family=base", "checkpoints=last").stdout
    (row,) = rows(every, cwd, "fit", "family=base", "checkpoints=last")
    assert row["params"]["notes"] == ["Left out: 10 runs; each is before the last checkpoint of its training."]


def test_a_law_in_size_of_several_checkpoints_names_the_key_that_takes_the_last(
    all_and_last: tuple[Path, Path], cwd: Path
) -> None:
    refused = ask(all_and_last[0], cwd, "predict", "S=1e7", "family=base", check=2).stderr
    assert refused.rstrip().endswith("or take the last checkpoint of each training: checkpoints=last")
    assert "drop checkpoints=last" in ask(all_and_last[0], cwd, "fit", "axis=D", "checkpoints=last", check=2).stderr


def test_what_looks_along_checkpoints_refuses_the_last_alone(all_and_last: tuple[Path, Path], cwd: Path) -> None:
    refused = ask(all_and_last[0], cwd, "trajectory", "checkpoints=last", check=2).stderr
    assert refused.startswith("rbpx: trajectory has no key checkpoints; it is a key of other verbs; ")
    assert refused.count("\n") == 1


def test_where_nothing_says_which_rows_are_of_one_training_the_last_are_not_known(tmp_path: Path, cwd: Path) -> None:
    lines = [f"{S},{D},{TRUTH.level(S, D)}" for S in (10_000, 40_000, 160_000) for D in (10**6, 10**7)]
    (tmp_path / "runs.csv").write_text("\n".join(["S,D,loss_nats", *lines]))
    words = ("source=them", "family=f", "dataset=t", "--store", tmp_path / "store")
    here("import", tmp_path / "runs.csv", *words, cwd=cwd, check=0)
    refused = ask(tmp_path / "store", cwd, "fit", "checkpoints=last", check=2).stderr
    assert "checkpoints=last needs a column model or step" in refused


def test_last_states_of_measured_trainings_stand_for_their_sizes_whatever_their_revisions(
    tmp_path: Path, cwd: Path
) -> None:
    pairs = [(10_000, 10**6), (40_000, 3 * 10**6), (160_000, 9 * 10**6)]
    write_surface(tmp_path / "ends", TRUTH, 1, pairs=pairs, states=True, n_documents=5, n_tokens=40)
    states = [*pairs, (40_000, 10**6), (160_000, 10**6), (160_000, 3 * 10**6)]
    write_surface(tmp_path / "all", TRUTH, 1, pairs=states, states=True, n_documents=5, n_tokens=40)
    (row,) = rows(tmp_path / "all", cwd, "fit", "laws=[cross_entropy]", "checkpoints=last")
    by_size = json.loads(
        ask(
            tmp_path / "ends",
            cwd,
            "sql",
            "SELECT non_embedding_params S, cross_entropy_nats y FROM runs",
            "--format",
            "json",
        ).stdout
    )
    x, y = np.log([[each["S"], each["y"]] for each in sorted(by_size, key=lambda each: each["S"])]).T
    assert row["alpha"] == pytest.approx(-np.polyfit(x, y, 1)[0])
    assert (row["n_points"], row["revision"]) == (3, None)
