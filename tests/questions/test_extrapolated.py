"""Crossings of `emergence` outside the sizes: over forms, with the law alone beside them, as a command prints them."""

import math

import numpy as np
import pytest

from rbpx.laws.prediction.prediction import find_crossings, predict_batch
from rbpx.questions.emergence.laws import average_crossing, crossing, fit_windows, windows_law
from rbpx.status import Status
from tests.support.asking import Asked, Rows, ask, imported

S = np.geomspace(1e6, 1e9, 7)
P = np.exp(-40 * S**-0.2 * np.exp(0.02 * np.array([1.0, -1, 1, 0, -1, 0.5, -0.5])))


def test_outside_the_sizes_all_forms_answer_and_the_law_stands_beside_it() -> None:
    """An offset that the points allow keeps the level from being reached, which the law alone cannot know."""
    law, level = windows_law(fit_windows(S, P), 1), 0.9
    alone = crossing(law, 1, level)
    (reached,) = find_crossings(S, -np.log(P), [-math.log(level)]) or ()
    found = average_crossing(alone, law, reached)
    assert (found["method"], found["law"], found["status"]) == ("combined", alone, Status.beyond)
    assert None not in (alone["ln_lo"], alone["ln_hi"], found["ln_lo"])
    assert found["ln_hi"] is None


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


def test_within_the_sizes_the_law_answers(rows: Rows) -> None:
    of_1 = next(row for row in rows if row["n"] == 1 and row["kind"] == "law")["params"]["crossings"]
    assert [each["method"] for each in of_1] == ["law", "law", "combined"]
    assert [each["law"] for each in of_1[:2]] == [None, None]


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
