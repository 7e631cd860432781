"""Swept runs on the command line: every format, and predictions and decisions from the best of each cell."""

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


@pytest.mark.parametrize("form", ["csv", "md", "tex", "html"])
def test_every_format_has_the_best_of_each_cell(swept: Path, form: str, tmp_path: Path) -> None:
    output = tmp_path / f"page.{form}"
    words = ("surface", "frontier=true", "resamples=40", "--store", swept / "store", "--format", form)
    here(*words, "--output", output, cwd=swept / "cwd", check=0, writes=True)
    assert ("\ncell," if form == "csv" else "best") in output.read_text()


def test_predict_takes_the_frontier(swept: Path) -> None:
    (answer,) = [
        row for row in rows(swept, "predict", "S=2e9", "D=6e10", "frontier=true") if row["kind"] == "prediction"
    ][:1]
    assert answer["lo"] < law(2e9, 6e10) < answer["hi"]


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "S=2e9", "D=6e10", "laws=[cross_entropy]"),
        ("decide",),
    ],
)
def test_every_question_with_a_frontier_says_which_runs_are_a_sweep(swept: Path, words: tuple[str, ...]) -> None:
    assert "12 (S, D) cells have 108 runs: frontier=true takes the best of each" in ask(swept, *words)


def test_decide_takes_the_best_of_each_cell(swept: Path) -> None:
    told = ask(swept, "decide", "frontier=true")
    assert "Each point is the best of its size and tokens: 12 (S, D) cells, 108 runs; " in told
    (runs, *_), (best,) = (
        [row for row in rows(swept, "decide", "frontier=true") if row["kind"] == kind] for kind in ("runs", "best")
    )
    assert runs["n_points"] == 12
    assert best["y_lo"] < law(best["S"], best["D"]) < best["y_hi"]
