"""predict at (S, D), what to train next and trajectory on drawn trainings, and their place in a report."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import curve_fit

import rbpx
from tests.support.commands import Answer, here
from tests.support.synthetic import TrueSurface, write_surface

TRUTH = TrueSurface(S=(10_000, 40_000, 160_000, 640_000))
CHECKPOINTS = TrueSurface(S=(10_000, 640_000), D=(10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7, 3 * 10**7), scatter=0.001)


def ask(store: Path, cwd: Path, verb: str, *words: object, check: int = 0) -> Answer:
    return here(verb, *words, "--store", store, cwd=cwd, check=check)


def rows(store: Path, cwd: Path, verb: str, *words: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ask(store, cwd, verb, *words, "--format", "json", "--details").stdout)
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


def test_the_design_of_a_grid_and_the_runs_to_train_next(grid: Path, cwd: Path) -> None:
    (design,) = rows(grid, cwd, "surface", "laws=[cross_entropy]", "resamples=30")
    chosen = of_kind(rows(grid, cwd, "decide", "next=4", "flops=1e13", "resamples=30"), "next")
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
    printed = ask(grid, cwd, "decide", "next=2", "S=1e7", "D=1e9", "resamples=30").stdout
    assert "To narrow ln y at S = 1e+07, D = 1e+09" in printed


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
        "decide-What-to-train-f-on-t-them--frontier-cross_entropy",
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
    "decide next=2 resamples=20",
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


def test_what_looks_along_checkpoints_refuses_the_last_alone(all_and_last: tuple[Path, Path], cwd: Path) -> None:
    refused = ask(all_and_last[0], cwd, "trajectory", "checkpoints=last", check=2).stderr
    assert refused.startswith("rbpx: trajectory has no key checkpoints; it is a key of other verbs; ")
    assert refused.count("\n") == 1
