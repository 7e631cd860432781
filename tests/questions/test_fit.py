"""The laws of a family, as `run` and `fit` give them, against least squares on counts taken by hand."""

import json
import math
import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbpx.store.sql import connect
from rbpx.store.store import Store
from tests.support.asking import Asked, Rows, ask, imported
from tests.support.composed import here
from tests.support.filled import filled
from tests.support.stores import Measured, manifests, rank_by_hand, runs_by_size

LAWS = {
    "rbp", "cross_entropy", "lognormal_rbp1", "lognormal_cross_entropy", "error_entropy", "self_alignment", "confidence"
}  # fmt: skip
Fit = dict[str, Any]
KS = [1, 5, 10, 20]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A family of four sizes, to which no test adds runs."""
    return filled(tmp_path_factory.mktemp("family") / "store").root


@pytest.fixture(scope="module")
def asked(store: Path) -> dict[str, Asked]:
    """Its laws under each tie rule."""
    return {
        ties: ask(store, "fit", ties=ties, k=KS, laws="all", resamples=50)
        for ties in ("pessimistic", "optimistic", "mid")
    }


@pytest.fixture
def own(store: Path, tmp_path: Path) -> Path:
    """A copy that a test may add to."""
    return Path(shutil.copytree(store, tmp_path / "store"))


def fit(store: Path, **keys: Any) -> Rows:
    return ask(store, "fit", resamples=50, **keys).rows


def one(rows: list[Fit], law: str, k: int | None = None) -> Fit:
    (found,) = [row for row in rows if row["law"] == law and row["k"] == k]
    return found


def shares(store: Path, k: int, ties: str = "pessimistic", dtype: str = "float32") -> tuple[Any, Any]:
    """(S, RBP_k) of each size, counted from the tokens."""
    runs = runs_by_size(store, dtype).values()
    S = [run["non_embedding_params"] for run in runs]
    return np.array(S), np.array([np.mean(rank_by_hand(run, ties) <= k) for run in runs])


def cross_entropies(store: Path, dtype: str = "float32") -> tuple[Any, Any]:
    runs = runs_by_size(store, dtype).values()
    S = [run["non_embedding_params"] for run in runs]
    return np.array(S), np.array([-np.mean(run["logprob"].astype(np.float64)) for run in runs])


def assert_line(row: Fit, S: Any, y: Any) -> None:
    """The numbers of a fit are those of numpy's straight line through (ln S, ln y)."""
    slope, intercept = np.polyfit(np.log(S), np.log(y), 1)
    spans_0 = row["alpha_lo"] <= 0 <= row["alpha_hi"]
    assert ("no_trend" in row["params"]["reasons"]) == spans_0
    assert row["status"] == (row["params"]["reasons"] or ["ok"])[0]
    assert row["n_points"] == len(S)
    assert row["alpha"] == pytest.approx(-slope, rel=1e-9, abs=1e-12)
    assert row["C"] == pytest.approx(math.exp(intercept), rel=1e-9)
    assert row["params"]["y"] == pytest.approx(y.tolist(), rel=1e-9)


# ----------------------------------------------------------------------------------------------------------- the table


def test_the_answer_comes_first_and_the_usual_laws_fill_no_screen(measured: Measured) -> None:
    printed = measured.answer.stdout
    first, *_, table = printed.split("Scaling laws")
    assert len(printed.splitlines()) <= 25
    names = ("-ln RBP_1 ", "-ln RBP_10 ", "-ln RBP_100 ", "cross-entropy", "lognormal RBP_1", "lognormal CE")
    (lines,) = zip(
        *([row for row in table.splitlines() if row.strip().startswith(name)] for name in names), strict=True
    )
    passing = sum(line.rstrip().endswith(" passes") for line in lines)
    counted = {0: "none of 6 laws passes", 1: "1 of 6 laws passes", 6: "all 6 laws pass"}
    assert counted.get(passing, f"{passing} of 6 laws pass") in first
    S, y = cross_entropies(measured.store)
    assert re.search(rf"cross-entropy +{-np.polyfit(np.log(S), np.log(y), 1)[0]:.4f} ", table)
    assert f" {np.corrcoef(np.log(S), np.log(y))[0, 1] ** 2:.3f} " in lines[3]
    of_hits = np.polyfit(*map(np.log, (S, -np.log(shares(measured.store, 1)[1]))), 1)[0]
    assert f"-ln RBP_1 is {1 - 10**of_hits:.0%} lower (alpha {-of_hits:.3f}, 95 %: " in first or "-ln RBP_1 (" in first


def test_a_law_whose_points_call_for_E_has_a_row_with_E_and_the_sentence_is_that_rows(tmp_path: Path) -> None:
    S = [10 ** (6 + at / 2) for at in range(8)]
    rows = "".join(f"{each:.6g},{1.7 + 400 * each**-0.34:.6f},{math.exp(-5 * each**-0.1):.8f}\n" for each in S)
    store = imported(tmp_path / "store", f"S,loss_nats,rbp_1\n{rows}", dataset="c4", ties="pessimistic")
    answer = ask(store, "fit", resamples=50)
    plain, with_E = (row for row in answer.rows if row["law"] == "cross_entropy")
    assert [(row["method"], row["status"]) for row in (plain, with_E)] == [("ols", "bends"), ("offset", "ok")]
    assert (with_E["alpha"], with_E["params"]["E"], with_E["C"]) == pytest.approx((0.34, 1.7, 400), rel=1e-4)
    asked = one(fit(store, method="offset"), "cross_entropy")
    assert asked | {"created_at": None} == with_E | {"created_at": None}  # which is the fit that compared the forms
    drop = 1 - (1.7 + 400 * (10 * S[-1]) ** -0.34) / (1.7 + 400 * S[-1] ** -0.34)
    first = answer.table().partition("\n")[0]
    assert "-ln RBP_1 is 21% lower (alpha 0.100" in first
    assert f" and cross-entropy is {drop:.1%} lower (alpha 0.340" in first
    assert "; E 1.700" in first
    assert "Exponents with and without E do not compare." in answer.words


def test_points_that_bend_are_told_by_both_ends(tmp_path: Path) -> None:
    at = np.arange(7)  # halves of decades; exponents of .05 and of .1, and half a percent up and down
    y = 5 * 10 ** -np.where(at <= 3, 0.025 * at, 0.05 * at - 0.075) * (1 + 0.001 * np.array([1, -1, 1, 0, 1, -1, 1]))
    asked = ask(imported(tmp_path / "store", {"S": 10 ** (6 + at / 2), "loss_nats": y}, dataset="c4"), "fit")
    said = "Cross-entropy bends: a tenfold size took off 11% at the small end and 21% at the large one"
    assert asked.table().startswith(said)


def test_details_say_what_each_model_scores(measured: Measured) -> None:
    head = ask(measured.store, "fit", resamples=20).table(120).split("What each model scores")[1]
    for (size, run), share in zip(runs_by_size(measured.store).items(), shares(measured.store, 10)[1], strict=True):
        line = next(line for line in head.splitlines() if line.split()[:1] == [size])
        told = f"{run['non_embedding_params']:,}", f"{share:.4f}", f"{-np.mean(run['logprob'].astype(float)):.4f}"
        assert [each for each in told if each not in line] == []


# ----------------------------------------------------------------------------------------------------------- the rows


@pytest.mark.parametrize("ties", ["pessimistic", "optimistic", "mid"])
def test_the_rbp_and_cross_entropy_laws_are_least_squares_on_counts(
    ties: str, store: Path, asked: dict[str, Asked]
) -> None:
    rows = asked[ties].rows
    for k in KS:
        S, share = shares(store, k, ties)
        assert_line(one(rows, "rbp", k), S, -np.log(share))
    assert_line(one(rows, "cross_entropy"), *cross_entropies(store))
    assert {row["ties"] for row in rows} == {ties}
    assert {row["law"] for row in rows} == LAWS
    assert {(row["source"], row["family"], row["dataset"]) for row in rows} == {("measured", "mine", "file")}
    assert {(row["protocol"], row["dtype"], row["method"]) for row in rows} == {("paper", "float32", "ols")}


# ------------------------------------------------------------------------------------------------------- what is asked


def test_k_can_be_one_a_list_or_log(store: Path) -> None:
    rows = fit(store, laws=["rbp"], k=[20, 5, 20, 5000])
    assert [(row["k"], row["alpha"] is not None) for row in rows] == [(5, True), (20, True), (5000, False)]
    assert rows[-1]["status"] == "not_positive"
    assert [row["k"] for row in fit(store, laws=["rbp"])] == [1, 10, 100]  # 500 and more are beyond V = 320
    rows = fit(store, laws=["rbp"], k="log")
    grid = [row["k"] for row in rows]
    assert {1, 10, 100} < set(grid)
    assert grid == sorted(set(grid))
    assert 12 <= len(grid) <= 40
    assert 200 < grid[-1] < 320
    assert max(b / a for a, b in pairwise(grid) if a >= 10) < 1.6
    S, share = shares(store, 10)
    assert_line(one(rows, "rbp", 10), S, -np.log(share))


def test_only_the_laws_asked_for_are_fitted(own: Path) -> None:
    usual = [("rbp", 1), ("rbp", 10), ("rbp", 100), ("cross_entropy", None)]
    usual += [("lognormal_rbp1", None), ("lognormal_cross_entropy", None)]
    assert [(row["law"], row["k"]) for row in fit(own) if row["method"] == "ols"] == usual
    assert [(row["law"], row["k"]) for row in fit(own, k=5)] == [("rbp", 5), ("cross_entropy", None)]
    laws = ["cross_entropy", "confidence"]
    assert {row["law"] for row in fit(own, laws=laws)} == set(laws)


# ------------------------------------------------------------------------------------------------- what enters a fit


def test_families_texts_windows_and_dtypes_are_never_pooled(own: Path) -> None:
    """And each narrows a fit where it is a key."""
    for seed, way in enumerate(({"dtype": "bfloat16"}, {"window": 32}, {"dataset": "other"}, {"family": "theirs"}), 1):
        filled(own, seed, ["xs", "s", "m"], **way)
    rows, facts = fit(own, laws=["cross_entropy"]), manifests(own)
    seen = set()
    for row in rows:
        runs = [facts[run_id] for run_id in row["run_ids"]]
        same = {(run["text_hash"], run["dtype"], run["window"]) for run in runs}
        assert same == {(row["text_hash"], row["dtype"], row["window"])}
        assert row["params"]["y"] == pytest.approx([run["cross_entropy_nats"] for run in runs], rel=1e-9)
        seen.add((row["family"], row["dataset"], row["dtype"], row["window"], row["n_points"]))
    assert seen == {
        ("mine", "file", "float32", 512, 4),
        ("mine", "file", "bfloat16", 512, 3),
        ("mine", "file", "float32", 32, 3),
        ("mine", "other", "float32", 512, 3),
        ("theirs", "file", "float32", 512, 3),
    }
    assert {row["family"] for row in fit(own, laws=["cross_entropy"], family=["theirs"])} == {"theirs"}


def test_a_group_with_two_sizes_beside_one_with_four_is_told_with_its_status(own: Path) -> None:
    filled(own, 1, ["xs", "m"], dataset="other")
    rows = fit(own, laws=["cross_entropy"])
    assert sorted((row["n_points"], row["status"] == "too_few_sizes") for row in rows) == [(2, True), (4, False)]
    assert {row["alpha"] for row in rows if row["n_points"] == 2} == {None}


# ------------------------------------------------------------------------------------------------------ what is kept


@pytest.mark.parametrize(
    ("axis", "words"),
    [
        ("S", "From the largest size, at ten times the size cross-entropy is 4.7% lower"),
        ("D", "From the largest D, on ten times as many tokens cross-entropy is 4.7% lower"),
    ],
)
def test_the_change_at_ten_times_the_size_keeps_the_irreducible_loss(tmp_path: Path, axis: str, words: str) -> None:
    """1.7 + 400 S^-.34 falls from the largest of the sizes to ten times it by 4.7 %, and 400 S^-.34 by 54 %."""
    x = [1e8, 4e8, 1.6e9, 6.4e9, 1e10]
    largest, tenfold = (1.7 + 400 * each**-0.34 for each in (x[-1], 10 * x[-1]))
    assert f"{1 - tenfold / largest:.1%}" == "4.7%"
    rows = [f"{at},{1e9 if axis == 'D' else each},{each},{1.7 + 400 * each**-0.34}" for at, each in enumerate(x)]
    store = imported(tmp_path / "store", "\n".join(["step,S,D,loss_nats", *rows]), dataset="t")
    for how in ({"method": "offset"}, {"E": 1.7}):
        assert words in ask(store, "fit", axis=axis, **how).table()


def kept(store: Path, relation: str) -> Rows:
    with connect(Store(store)) as connection:
        return list(connection.sql(f"FROM {relation}").to_arrow_table().to_pylist())


def test_what_is_kept_is_what_was_printed_and_a_refit_replaces_it(own: Path) -> None:
    keys = {"k": KS, "laws": ["rbp", "cross_entropy"]}
    first, again = fit(own, **keys), {row["fit_id"]: row for row in fit(own, **keys)}
    assert list(again) == [row["fit_id"] for row in first]
    rows = {row["fit_id"]: row for row in kept(own, "fits")}
    for fit_id, row in again.items():
        for name in ("law", "k", "alpha", "C", "r2", "status", "run_ids", "n_points"):
            assert rows[fit_id][name] == row[name]
        assert json.loads(rows[fit_id]["params"])["y"] == row["params"]["y"]


def test_rank_fits_hold_each_distribution_of_each_run_once_and_gc_drops_fits_whose_runs_are_gone(
    own: Path, cwd: Path
) -> None:
    fit(own, laws="all")
    runs = runs_by_size(own)
    rows = [(row["run_id"], row["distribution"]) for row in kept(own, "rank_fits") if row["ties"] == "pessimistic"]
    assert sorted(run_id for run_id, _ in rows) == sorted(run["run_id"] for run in runs.values())
    shutil.rmtree(own / "runs" / runs["s"]["run_id"])
    here("store", "gc", "--store", own, cwd=cwd, check=0)
    assert kept(own, "fits") == []
    assert len(kept(own, "runs")) == 3
