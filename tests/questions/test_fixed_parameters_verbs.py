"""Constants that are given: what fit, predict, surface and multiplier make of them, and which are refused."""

import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.asking import Asked, ask, imported

E, ALPHA = 1.7, 0.34


def table() -> str:
    """Losses of two families from one E, the second twice as good: on c4 by size and tokens, on pile by size alone."""
    random, lines = Random(1), ["family,S,D,dataset,loss_nats"]
    for family, C in (("plain", 400.0), ("better", 400.0 * 2**-ALPHA)):
        for S in [1e7 * 4**at for at in range(6)]:
            for D in (1e9, 4e9, 16e9):
                loss = (E + C * S**-ALPHA + 300 * D**-0.29) * math.exp(random.gauss(0, 0.002))
                lines.append(f"{family},{S:.0f},{D:.0f},c4,{loss!r}")
            lines.append(f"{family},{S:.0f},,pile,{(E + C * S**-ALPHA) * math.exp(random.gauss(0, 0.002))!r}")
    return "\n".join(lines)


PILE = {"family": "plain", "dataset": "pile"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two families of losses from one E."""
    store = imported(tmp_path_factory.mktemp("given") / "store", table(), family=None)
    return store


def asked(store: Path, verb: str, **keys: Any) -> Asked:
    return ask(store, verb, resamples=25, **keys)


def test_fit_pins_the_offset_of_cross_entropy_and_says_whether_the_points_object(store: Path) -> None:
    at_truth = asked(store, "fit", **PILE, E="1.7")
    (law,), (prior,) = at_truth.rows, asked(store, "fit", **PILE, E="1.7 +- .05").rows
    (plain,) = asked(store, "fit", **PILE, method="offset", laws=["cross_entropy"]).rows
    assert (law["law"], law["method"]) == ("cross_entropy", "offset")
    assert law["params"]["E"] == 1.7
    assert law["alpha"] == pytest.approx(ALPHA, abs=0.01)
    assert len({law["fit_id"], prior["fit_id"], plain["fit_id"]}) == 3
    assert prior["params"]["pins"]["E"]["sd"] == 0.05
    assert "Constants that were given" in at_truth.words
    assert "does not speak against 1.7" in at_truth.words
    assert "given_refused" not in law["params"]["reasons"]
    off = asked(store, "fit", **PILE, E="1")
    assert "speak against 1 (p = " in off.words
    assert "given_refused" in off.rows[0]["params"]["reasons"]


def test_predict_stands_beside_what_it_would_be_without_and_at_the_ends(store: Path) -> None:
    found = asked(store, "predict", **PILE, E="1.7 +- .03", S=[1e11])
    (answer,) = [row for row in found.of_kind("prediction") if row["method"] == "combined"]
    beside = {row["given"]: row for row in found.of_kind("constant")}
    assert list(beside) == ["given", "free", "lower end", "upper end"]
    assert beside["given"]["y"] == answer["y"]
    assert answer["lo"] < E + 400 * 1e11**-ALPHA < answer["hi"]
    (free, *_) = asked(store, "predict", **PILE, laws=["cross_entropy"], S=[1e11], method="offset").rows
    assert (beside["free"]["y"], beside["free"]["lo"]) == (free["y"], free["lo"])
    assert beside["lower end"]["at"] < beside["free"]["at"] < beside["upper end"]["at"]
    assert beside["lower end"]["y"] < beside["upper end"]["y"]
    off = asked(store, "predict", **PILE, S=[1e11], E="1").of_kind("prediction")
    given_refused = [
        "given_refused" in next(row for row in rows if row["method"] == "combined")["reasons"]
        for rows in ([answer], off)
    ]
    assert given_refused == [False, True]


def test_a_multiplier_with_a_given_offset_stands_first(store: Path) -> None:
    found = asked(store, "multiplier", base="plain", variant=["better"], dataset="pile", E="1.7 +- .02")
    overall = found.of_kind("overall")
    assert [row["offset"] for row in overall] == ["given", "shared", "free", "none"]
    assert overall[0]["multiplier_lo"] < 2 < overall[0]["multiplier_hi"]
    assert 0 < overall[0]["p"] <= 1
    widths = [math.log(row["multiplier_hi"] / row["multiplier_lo"]) for row in overall[:2]]
    assert widths[0] < widths[1] * 1.2
