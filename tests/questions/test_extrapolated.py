"""Crossings of `emergence` outside the sizes: over forms, with the law alone beside them, as a command prints them."""

import math

import numpy as np
import pytest

from rbpx.laws.prediction.prediction import predict_batch
from rbpx.questions.emergence.crossing import Extrapolation, windows_crossing
from rbpx.questions.emergence.law import fit_windows
from rbpx.status import Status
from tests.support.asking import Asked, Rows, ask, imported

S = np.geomspace(1e6, 1e9, 7)
LEVELS = (0.1, 0.5, 0.9)
P = np.exp(-40 * S**-0.2 * np.exp(0.02 * np.array([1.0, -1, 1, 0, -1, 0.5, -0.5])))


def test_within_the_sizes_the_law_answers_and_outside_all_forms_do() -> None:
    extrapolated, fit = Extrapolation(S, P, LEVELS), fit_windows(S, P)
    law = [windows_crossing(fit, level) for level in LEVELS]
    found = [extrapolated.of(crossing, fit.status) for crossing in law]
    assert [crossing.method for crossing in found] == ["law", "law", "combined"]
    assert found[:2] == law[:2]
    assert found[2].law == law[2]
    assert law[2].ln_lo is not None
    # An offset that the points allow keeps the level from being reached, which the law alone cannot know.
    assert (law[2].ln_hi is None, found[2].ln_hi) == (False, None)
    assert found[2].ln_lo is not None
    assert found[2].status is Status.beyond


def test_shares_of_0_leave_the_law_alone() -> None:
    fit = fit_windows(S, P)
    law = windows_crossing(fit, 0.9)
    assert Extrapolation(S, [0.0, *P[1:]], LEVELS).of(law, fit.status) == law


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """What `emergence` says of imported windows of 1 and 5 tokens, as if tokens were independent."""
    lines = [
        f"theirs,text,{size:.0f},{size:.0f},1,{n},{p**n:.12f}" for size, p in zip(S, P, strict=True) for n in (1, 5)
    ]
    table = "\n".join(["family,dataset,size,S,k,n,rbp", *lines])
    return ask(imported(tmp_path_factory.mktemp("windows") / "store", table, ties="pessimistic"), "emergence")


@pytest.fixture(scope="module")
def rows(asked: Asked) -> Rows:
    return [row for row in asked.rows if row["kind"].endswith("law")]


def test_a_row_has_the_crossing_over_forms_and_that_of_its_law(rows: Rows) -> None:
    of_5 = next(row for row in rows if row["n"] == 5 and row["kind"] == "law")
    half = next(crossing for crossing in of_5["params"]["crossings"] if crossing["share"] == 0.5)
    middle, lower, upper = (None if half[end] is None else float(half[end]) for end in ("S", "lo", "hi"))
    assert half["method"] == "combined"
    assert half["law"]["S"] > S[-1]
    assert middle is not None
    assert lower is not None
    y_N = -np.log([float(f"{p**5:.12f}") for p in P])
    for size, column in ((middle, 0), (lower, 1)):
        assert predict_batch(np.round(S), y_N[None], size)[0, column] == pytest.approx(math.log(2), rel=1e-6)
    assert upper is None or predict_batch(np.round(S), y_N[None], upper)[0, 2] == pytest.approx(math.log(2), rel=1e-6)


def test_the_pooled_law_is_extrapolated_as_the_law_of_that_length_and_the_joint_law_by_itself(
    rows: Rows,
) -> None:
    own, pooled, joint = (
        next(row for row in rows if row["kind"] == kind and (kind != "law" or row["n"] == 5))["params"]["crossings"]
        for kind in ("law", "pooled law", "joint law")
    )
    at = [crossing["share"] for crossing in own].index(0.9)
    names = ("S", "lo", "hi", "ln_S", "method")
    assert [pooled["5"][at][name] for name in names] == [own[at][name] for name in names]
    assert pooled["5"][at]["law"]["S"] == pytest.approx(own[at]["law"]["S"], rel=0.2)
    assert joint["5"][at]["method"] == "law"


def test_the_table_names_what_is_beyond(asked: Asked) -> None:
    (row,) = [line for line in asked.table().splitlines() if line.startswith(" k = 1, N = 5  0.5 ")]
    assert row.rstrip().endswith("beyond")
    assert "over forms outside them" in asked.words
