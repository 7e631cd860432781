"""Swept runs: what an import keeps, what fit and surface say of it, and frontier=true."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.store.sql import connect
from rbpx.store.store import Store
from tests.support.asking import Asked, ask, imported, refused

S, D = (1e7, 4e7, 16e7), (1e9, 4e9, 16e9)
LR = tuple(np.geomspace(1e-4, 1e-2, 7))
SWEEP = "9 (S, D) cells have 63 runs: frontier=true takes the best of each"


def law(size: float, tokens: float) -> float:
    return 1.7 + 400 * size**-0.34 + 300 * tokens**-0.29


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each size and number of tokens with seven learning rates, the best of which falls with size."""
    rng = np.random.default_rng(0)
    lines = ["S,D,dataset,loss_nats,lr,note,weight"]
    for size in S:
        for tokens in D:
            for lr in LR:
                cost = 0.03 * math.log(lr / (0.5 * size**-0.35)) ** 2
                loss = (law(size, tokens) + cost) * math.exp(0.001 * rng.standard_normal())
                lines.append(f"{size:.0f},{tokens:.0f},c4,{loss!r},{float(lr)!r},x,{1 + (size > 1e8)}")
    store = tmp_path_factory.mktemp("swept") / "store"
    return imported(store, "\n".join(lines), family="swept", columns={"vary_lr": "lr"})


def asked_of(swept: Path, verb: str, **keys: Any) -> Asked:
    return ask(swept, verb, resamples=40, **keys)


@pytest.fixture(scope="module")
def plain(swept: Path) -> Asked:
    return asked_of(swept, "surface")


def test_an_import_keeps_what_was_swept_and_every_question_says_that_there_is_a_sweep(
    swept: Path, plain: Asked
) -> None:
    with connect(Store(swept)) as connection:
        assert connection.sql("SELECT count(DISTINCT vary_lr) FROM observations").fetchall() == [(len(LR),)]
    assert SWEEP in plain.words
    for verb, axis in (("fit", "C"), ("decide", "S")):
        assert SWEEP in asked_of(swept, verb, axis=axis).words
    assert "3 (S, D) cells have 21 runs: frontier=true takes the best of each" in asked_of(swept, "fit", axis="D").words


def test_the_frontier_is_the_law_without_the_cost_of_a_wrong_rate(swept: Path, plain: Asked) -> None:
    asked = asked_of(swept, "surface", frontier=True)
    (of_all,), (best, *of_cells) = plain.rows, asked.rows
    assert [row["kind"] for row in of_cells] == ["cell"] * 9
    assert {row["n_runs"] for row in of_cells} == {len(LR)}
    assert best["fit_id"] != of_all["fit_id"]
    assert (best["n_points"], of_all["n_points"]) == (9, 63)
    cells = best["params"]["frontier"]
    for cell in cells:
        assert cell["how"] == "quadratic"
        assert cell["n_runs"] == len(LR)
        assert cell["y"] == pytest.approx(law(cell["S"], cell["D"]), rel=0.003)
        assert cell["vary_lr_lo"] < 0.5 * cell["S"] ** -0.35 < cell["vary_lr_hi"] or cell["vary_lr"] == pytest.approx(
            0.5 * cell["S"] ** -0.35, rel=0.25
        )
    assert "The best of each size and number of tokens" in asked.words
    assert "best values: 9 by quadratic" in asked.words


def test_fit_and_decide_take_the_frontier(swept: Path) -> None:
    along, *_ = asked_of(swept, "fit", axis="C", frontier=True, laws=["cross_entropy"]).rows
    assert along["n_points"] <= 9
    (runs,) = asked_of(swept, "decide", frontier=True).of_kind("runs")
    assert runs["n_points"] == 9


def test_what_another_loss_does_not_have_is_refused(swept: Path) -> None:
    with refused("frontier= is of laws in size or tokens"):
        asked_of(swept, "predict", axis="cross_entropy@c4", frontier=True)
