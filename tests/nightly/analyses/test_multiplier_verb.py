"""What a change is worth in sizes and tokens: a family against itself, and with a constant that is given."""

from pathlib import Path
from typing import Any

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
