"""Swept runs on the command line: what an import keeps, what fit and surface say of it, and frontier=true."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import here

S, D = (1e7, 4e7, 16e7, 64e7), (1e9, 4e9, 16e9)
LR = tuple(np.geomspace(1e-4, 1e-2, 9))


def law(size: float, tokens: float) -> float:
    return 1.7 + 400 * size**-0.34 + 300 * tokens**-0.29


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each size and number of tokens with nine learning rates, the best of which falls with size."""
    folder, rng = tmp_path_factory.mktemp("swept"), np.random.default_rng(0)
    lines = ["S,D,dataset,loss_nats,lr,note,weight"]
    for size in S:
        for tokens in D:
            for lr in LR:
                cost = 0.03 * math.log(lr / (0.5 * size**-0.35)) ** 2
                loss = (law(size, tokens) + cost) * math.exp(0.001 * rng.standard_normal())
                lines.append(f"{size:.0f},{tokens:.0f},c4,{loss!r},{float(lr)!r},x,{1 + (size > 1e8)}")
    (folder / "runs.csv").write_text("\n".join(lines) + "\n")
    (folder / "cwd").mkdir()
    words = ("import", folder / "runs.csv", "source=them", "family=swept", "columns={vary_lr: lr}")
    here(*words, "--store", folder / "store", cwd=folder / "cwd", check=0)
    return folder


def ask(of: Path, *words: object) -> str:
    return here(*words, "resamples=40", "--store", of / "store", cwd=of / "cwd", check=0).stdout


def rows(of: Path, *words: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ask(of, *words, "--format", "json"))
    return found


def test_surface_and_fit_say_that_there_is_a_sweep_and_name_the_frontier(swept: Path) -> None:
    assert "12 (S, D) cells have 108 runs: frontier=true takes the best of each" in ask(swept, "surface")
    query = "SELECT count(DISTINCT vary_lr) AS n FROM observations"
    told = here("sql", query, "--format", "json", "--store", swept / "store", cwd=swept / "cwd", check=0).stdout
    assert json.loads(told) == [{"n": len(LR)}]


def test_the_frontier_is_the_law_without_the_cost_of_a_wrong_rate(swept: Path) -> None:
    (plain,), (best, *of_cells) = (rows(swept, "surface", *words) for words in ((), ("frontier=true",)))
    assert [row["kind"] for row in of_cells] == ["cell"] * 12
    assert {row["n_runs"] for row in of_cells} == {len(LR)}
    assert best["fit_id"] != plain["fit_id"]
    assert (best["n_points"], plain["n_points"]) == (12, 108)
    cells = best["params"]["frontier"]
    for cell in cells:
        assert cell["how"] == "quadratic"
        assert cell["n_runs"] == len(LR)
        assert cell["y"] == pytest.approx(law(cell["S"], cell["D"]), rel=0.003)
        assert cell["vary_lr_lo"] < 0.5 * cell["S"] ** -0.35 < cell["vary_lr_hi"] or cell["vary_lr"] == pytest.approx(
            0.5 * cell["S"] ** -0.35, rel=0.25
        )
    told = ask(swept, "surface", "frontier=true")
    assert "The best of each size and number of tokens" in told
    assert "12 of 12 best values: the minimum of a quadratic in lr" in told


@pytest.mark.parametrize("form", ["csv", "md", "tex", "html"])
def test_every_format_has_the_best_of_each_cell(swept: Path, form: str, tmp_path: Path) -> None:
    output = tmp_path / f"page.{form}"
    words = ("surface", "frontier=true", "resamples=40", "--store", swept / "store", "--format", form)
    here(*words, "--output", output, cwd=swept / "cwd", check=0, writes=True)
    assert ("frontier" if form == "csv" else "best") in output.read_text()


def test_fit_and_predict_take_the_frontier_and_runs_above_the_law_may_count_less(swept: Path) -> None:
    along, *_ = rows(swept, "fit", "axis=C", "frontier=true", "laws=[cross_entropy]")
    assert along["n_points"] <= 12
    (over,) = rows(swept, "surface", "over=10")
    (plain,) = rows(swept, "surface")
    assert over["E"] < plain["E"] + 0.2
    assert over["fit_id"] != plain["fit_id"]
    (answer,) = [
        row for row in rows(swept, "predict", "S=2e9", "D=6e10", "frontier=true") if row["kind"] == "prediction"
    ][:1]
    assert answer["lo"] < law(2e9, 6e10) < answer["hi"]


def test_what_over_does_not_mean_is_refused(swept: Path) -> None:
    answer = here("surface", "over=0.5", "--store", swept / "store", cwd=swept / "cwd", check=2)
    assert "over=0.5 is not how much less a run above the law weighs" in answer.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "axis=D"),  # four sizes, whose other sentences a terminal leaves out
        ("fit", "axis=C"),
        ("predict", "S=2e9", "D=6e10", "laws=[cross_entropy]"),
        ("decide",),
        ("design",),
    ],
)
def test_every_question_with_a_frontier_says_which_runs_are_a_sweep(swept: Path, words: tuple[str, ...]) -> None:
    several = "12 (S, D) cells have 108 runs" if words[-1] != "axis=D" else "3 (S, D) cells have 27 runs"
    assert f"{several}: frontier=true takes the best of each" in ask(swept, *words)


def test_decide_and_design_take_the_best_of_each_cell(swept: Path) -> None:
    told = ask(swept, "decide", "frontier=true")
    assert "Each point is the best of its size and tokens: 12 (S, D) cells, 108 runs." in told
    (runs, *_), (best,) = (
        [row for row in rows(swept, "decide", "frontier=true") if row["kind"] == kind] for kind in ("runs", "best")
    )
    assert runs["n_points"] == 12
    assert best["y_lo"] < law(best["S"], best["D"]) < best["y_hi"]
    (design,) = rows(swept, "design", "frontier=true")
    assert design["n_points"] == 12


@pytest.mark.parametrize("typed", ["frontier=true", "over=10"])
def test_what_another_loss_does_not_have_is_refused(swept: Path, typed: str) -> None:
    words = ("fit", "axis=cross_entropy@c4", typed, "--store", swept / "store")
    assert f"{typed.partition('=')[0]}= is of laws in size or tokens" in here(*words, cwd=swept / "cwd", check=2).stderr
