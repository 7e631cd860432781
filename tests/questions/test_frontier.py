"""Swept runs: what an import keeps, what fit and surface say of it, and frontier=true."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.store.sql import connect
from rbpx.store.store import Store
from tests.support.asking import Asked, ask, imported

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
    assert [(row["kind"], row["n_runs"]) for row in of_cells] == [("cell", len(LR))] * 9
    assert best["fit_id"] != of_all["fit_id"]
    assert (best["n_points"], of_all["n_points"]) == (9, 63)
    for cell in best["params"]["frontier"]:
        assert (cell["how"], cell["n_runs"]) == ("quadratic", len(LR))
        assert cell["y"] == pytest.approx(law(cell["S"], cell["D"]), rel=0.003)
        lr = 0.5 * cell["S"] ** -0.35
        assert cell["vary_lr_lo"] < lr < cell["vary_lr_hi"] or cell["vary_lr"] == pytest.approx(lr, rel=0.25)
    assert "best values: 9 by quadratic" in asked.words
    along, *_ = asked_of(swept, "fit", axis="C", frontier=True, laws=["cross_entropy"]).rows
    (runs,) = asked_of(swept, "decide", frontier=True).of_kind("runs")
    assert (along["n_points"] <= 9, runs["n_points"]) == (True, 9)
