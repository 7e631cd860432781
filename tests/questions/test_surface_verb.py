"""The question surface on drawn, imported and published trainings: rows, optima and statuses by plainer ways."""

from pathlib import Path
from typing import Any

import pytest

from rbpx.store.store import Store
from tests.support.asking import Asked, Rows, ask, imported
from tests.support.synthetic import TrueSurface, write_surface

TRUTH = TrueSurface()


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measured grid of 20 trainings."""
    root = tmp_path_factory.mktemp("surface") / "store"
    write_surface(root, TRUTH, 1, n_tokens=120)
    return root


@pytest.fixture(scope="module")
def asked(drawn: Path) -> Asked:
    """Its surfaces by two forms."""
    return ask(drawn, "surface", form=["chinchilla", "kaplan"], laws=["rbp"], k=1, flops=[1e14, 1e16], resamples=40)


@pytest.fixture(scope="module")
def found(asked: Asked) -> Rows:
    return asked.rows


def test_a_row_for_each_form_has_its_own_constants(found: Rows, drawn: Path) -> None:
    assert [(row["law"], row["k"], row["form"]) for row in found] == [("rbp", 1, "chinchilla"), ("rbp", 1, "kaplan")]
    for row in found:
        assert (row["objective_name"], row["delta"], row["n_points"]) == ("log_huber", 0.001, 20)
    for name in ("alpha", "beta", "A", "B", "E"):
        assert found[0][f"{name}_lo"] <= getattr(TRUTH, name) <= found[0][f"{name}_hi"]
    kaplan = found[1]
    assert kaplan["A"] is kaplan["alpha"] is kaplan["E_lo"] is None
    assert set(kaplan["params"]["constants"]) == {"N_c", "D_c", "alpha_N", "alpha_D"}
    assert {record["fit_id"] for record in Store(drawn).records("fits")} >= {row["fit_id"] for row in found}


def test_the_best_of_a_budget_is_what_decide_says_unless_a_form_is_asked_for(drawn: Path, found: Rows) -> None:
    keys: dict[str, Any] = {"laws": ["rbp"], "k": 1, "flops": [1e14, 1e16], "resamples": 40}
    (row,), decided = ask(drawn, "surface", **keys).rows, ask(drawn, "decide", **keys).of_kind("best")
    names = ["C", *(f"{name}{end}" for name in "SDy" for end in ("", "_lo", "_hi"))]
    of_surface, of_decide = ([[each[name] for name in names] for each in best] for best in (row["optima"], decided))
    assert of_surface == of_decide
    assert [each["S"] for each in row["optima"]] != pytest.approx([each["S"] for each in found[0]["optima"]], rel=1e-3)
    (row,) = ask(drawn, "surface", laws=["rbp"], k=1, resamples=1).rows
    assert row["optima"] == row["optima_as_stated"] == row["optima_with_head"] == []


def test_details_name_the_best_form_and_the_best_size(asked: Asked) -> None:
    for said in ("y = E + A S^-alpha + B D^-beta", "least AIC: chinchilla (kaplan +", "The best of a budget", "D/S"):
        assert said in asked.words


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([(S, 20 * S) for S in (1e4, 3e4, 1e5, 3e5, 1e6, 3e6)], "larger models had more tokens, by one power of S"),
        (
            [(S, 1e10 / S**0.5) for S in (1e4, 3.125e4, 1e5, 3.125e5, 1e6, 2.5e6)],
            "larger models had fewer tokens, by one power of S (ln D lies off it by",
        ),
        ([(S, D) for S in (1e4, 1e5) for D in (1e6, 1e7, 1e8)], "the runs have 2 sizes, "),
        ([(S, D) for S in (1e4, 3e4, 1e5) for D in (1e6, 1e7)], "the runs have 2 numbers of training tokens, "),
    ],
)
def test_a_design_that_cannot_tell_size_from_tokens_says_why(
    tmp_path: Path, pairs: list[tuple[float, float]], said: str
) -> None:
    printed = ask(about_the_law(tmp_path / "store", pairs), "surface", resamples=1).table(columns=400)
    assert said in printed
    assert "collinear: Size and tokens vary together" in printed
    assert "The best of a budget" not in printed


def about_the_law(store: Path, pairs: list[tuple[float, float]]) -> Path:
    """Losses of runs that lie now above and now below the law."""
    points = [f"{S:.0f},{D:.0f},{TRUTH.level(S, D) * (1 + 0.001 * (-1) ** n)}" for n, (S, D) in enumerate(pairs)]
    return imported(store, "\n".join(["S,D,loss_nats", *points]), dataset="t")


def test_runs_of_one_budget_have_its_best_size_and_no_other(tmp_path: Path) -> None:
    store = about_the_law(tmp_path / "store", [(S, 1e12 / S) for S in (1e4, 3.125e4, 1e5, 3.125e5, 1e6, 2.5e6)])
    (row,) = ask(store, "surface", resamples=1, flops=[6e12, 6e13]).rows
    here, tenfold = row["optima"]
    assert (row["status"], tenfold["S"]) == ("collinear_design", None)
    assert 1e4 < here["S_lo"] < here["S"] < here["S_hi"] < 2.5e6
    assert "Train 3" in ask(store, "decide").words
    there, beyond = ask(store, "predict", S=[1e5, 1e5], D=[2e7, 1e8], joint=True).rows[:2]
    assert there["lo"] < TRUTH.level(10**5, 2 * 10**7) < there["hi"]
    assert beyond["y"] is None
