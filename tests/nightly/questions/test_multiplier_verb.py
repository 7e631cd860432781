"""What a change is worth in sizes and tokens: a family against itself, and with a constant that is given."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.laws.names import Axis
from tests.support.asking import Asked, ask, imported
from tests.support.shifts import draw_pair


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    drawn, rows = draw_pair("growing", Axis.C, 1), ["family,model,S,D,dataset,loss_nats"]
    for family, runs in (("plain", drawn.base), ("better", drawn.variant)):
        for n, (S, D, y) in enumerate(zip(runs.S_N, runs.D_N, runs.y_N, strict=True)):
            rows.append(f"{family},{family}{n},{S:.0f},{D:.0f},web,{y:.12f}")
    return imported(tmp_path_factory.mktemp("surfaces") / "store", "\n".join(rows), family=None)


def asked(store: Path, variant: str, **keys: Any) -> Asked:
    return ask(store, "multiplier", base="plain", variant=[variant], resamples=60, **keys)


@pytest.mark.parametrize("axis", ["S", "D", "C"])
def test_a_family_against_itself_shows_no_difference(surfaces: Path, axis: str) -> None:
    (overall, *_) = asked(surfaces, "plain", axis=axis).rows
    assert overall["multiplier"] == pytest.approx(1.0, abs=1e-3)
    assert overall["multiplier_lo"] < 1 < overall["multiplier_hi"]
    assert overall["slope_lo"] < 0 < overall["slope_hi"]


def test_a_given_E_is_for_one_axis(surfaces: Path) -> None:
    rows = asked(surfaces, "better", axis="C", E="1.82").rows
    assert {row["offset"] for row in rows} == {"given", "shared", "free", "none"}


def test_runs_in_size_and_tokens_are_compared_over_the_surface(surfaces: Path) -> None:
    """The drawn multiplier lies in the interval at each compute, and the ranges are those of the table."""
    drawn, found = draw_pair("growing", Axis.C, 1), asked(surfaces, "better", axis="C")
    overall, *at = found.rows
    assert (overall["kind"], overall["offset"], overall["status"]) == ("overall", "surface", "ok")
    assert (overall["S_from"], overall["S_to"]) == (1e7, round(1e7 * 10**2.5))
    assert (overall["n_base"], overall["n_variant"]) == (40, 40)
    for row in at:
        assert row["C"] == pytest.approx(6 * row["S"] * row["D"])
        assert row["multiplier_lo"] <= np.exp(drawn.true_ln_m(row["S"], row["D"])) <= row["multiplier_hi"]
    assert [row["status"] for row in at] == ["ok", "ok", "ok", "beyond"]
    rise = drawn.true_ln_m(at[2]["S"], at[2]["D"]) - drawn.true_ln_m(at[0]["S"], at[0]["D"])
    assert overall["slope_lo"] <= rise / np.log(at[2]["C"] / at[0]["C"]) <= overall["slope_hi"] < 0
    assert "from 10M to 3.2B parameters and 50M to 510B tokens, by 40 runs of plain and 40 of better" in found.words
    assert "the multiplier shrinks with scale" in found.words
