"""Attempts: pass@k, tails and forecasts, each by a second, plainer way, and the verb by real commands."""

import csv
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln
from scipy.stats import beta as beta_of

from rbpx.questions.attempts.forecasts import BETA, LINE, forecast, hide
from rbpx.questions.attempts.mixing import condensed
from rbpx.questions.attempts.passing import KnownChances, grid_to, slope_in_k, slopes_at
from rbpx.questions.attempts.tails import Likelihood, fit_tail
from tests.support.asking import ask, imported
from tests.support.attempts import counted
from tests.support.quizzes import N_ITEMS, quiz
from tests.support.stores import runs_by_size

HEADER = "family,size,S,dataset,item,n_samples,n_correct"


# ------------------------------------------------------------------------------------------------------------- pass@k


def test_pass_at_k_is_the_share_of_choices_of_k_samples_that_hold_a_right_one() -> None:
    for n, c in [(5, 0), (5, 2), (6, 6), (7, 1)]:
        samples = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            chosen = list(itertools.combinations(samples, k))
            share = sum(map(any, chosen)) / len(chosen)
            assert counted([c], n).passes([k])[0, 0] == pytest.approx(share, abs=1e-12)


def test_pass_at_k_of_known_chances_keeps_its_digits_where_they_are_tiny() -> None:
    items = KnownChances(("a", "b", "c"), np.log([1e-30, 0.25, 1.0]))
    assert items.passes([1, 8]).tolist() == [
        pytest.approx([1e-30, 8e-30], rel=1e-12),
        pytest.approx([0.25, 1 - 0.75**8], rel=1e-12),
        [1.0, 1.0],
    ]


def test_noise_of_samples_is_that_of_samples_drawn_again() -> None:
    rng, p_I, n, k = np.random.default_rng(3), np.array([0.02, 0.1, 0.4]), 60, 10
    values, told = [], []
    for _ in range(1500):
        items = counted(rng.binomial(n, p_I).tolist(), n)
        values.append(items.passes([k]).mean())
        told.append(items.stderr_of_samples([k])[0] ** 2)
    assert math.sqrt(np.mean(told)) == pytest.approx(np.std(values), rel=0.06)


def test_local_slopes_are_those_of_the_curve() -> None:
    items = KnownChances(("a", "b"), np.log([0.3, 1e-4]))

    def q(k: int) -> float:
        return (0.7**k + (1 - 1e-4) ** k) / 2

    at = slopes_at(items, 100)
    step = math.log(316 / 32)
    assert at["slope_failures"] == pytest.approx(math.log(q(32) / q(316)) / step, rel=1e-9)
    assert at["slope_neg_ln"] == pytest.approx(math.log(math.log(1 - q(32)) / math.log(1 - q(316))) / step, rel=1e-9)


# ------------------------------------------------------------------------------------------------- published counts


def test_published_counts_give_the_exponents_found_by_plain_scipy(shared_data: Path) -> None:
    reference = shared_data / "reference"
    right: dict[str, list[int]] = {}
    with (reference / "monkeys_math_counts.csv").open() as file:
        for row in csv.DictReader(file):
            assert row["n_samples"] == "10000"
            right.setdefault(row["model"], []).append(int(row["n_correct"]))
    with (reference / "monkeys_math_fits.csv").open() as file:
        published = [row for row in csv.DictReader(file) if row["model"].startswith("Pythia")]
    assert len(published) == 7
    ks = grid_to(10_000)
    assert len(ks) == 45
    for expected in published:
        items = counted(right[expected["model"]], 10_000)
        passes_K, tail = items.passes(ks).mean(axis=0), fit_tail(items)
        assert len(items.names) == 128
        assert passes_K[0] == pytest.approx(float(expected["pass_at_1"]), abs=5.1e-7)
        assert slope_in_k(ks, passes_K) == pytest.approx(float(expected["least_squares_exponent"]), abs=5.1e-6)
        assert tail.a.value == pytest.approx(float(expected["beta_a"]), abs=1e-5)
        assert tail.b.value == pytest.approx(float(expected["beta_b"]), rel=1e-5)
        neg_ln = float(expected["beta_binomial_negative_loglik_without_binomial_coefficient"])
        assert -tail.likelihood.total(tail.theta)[0] == pytest.approx(neg_ln, abs=1e-6)


# --------------------------------------------------------------------------------------------------------------- tails


def test_derivatives_are_those_of_differences() -> None:
    for items in (counted([0, 2, 9, 40], 40), KnownChances(("a", "b", "c"), np.log([1e-9, 0.3, 1.0]))):
        likelihood, theta, step = Likelihood(items), np.log([0.4, 3.0]), 1e-5
        _, score, hessian = likelihood.total(theta)
        for at, d in enumerate(np.eye(2) * step):
            up, down = likelihood.total(theta + d), likelihood.total(theta - d)
            assert score[at] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-6, abs=1e-6)
            assert hessian[at] == pytest.approx((up[1] - down[1]) / (2 * step), rel=1e-5, abs=1e-5)


def test_known_chances_are_fitted_as_scipy_does() -> None:
    p_I = np.random.default_rng(0).beta(0.3, 4.0, 400)
    a, b, _, _ = beta_of.fit(p_I, floc=0, fscale=1)
    tail = fit_tail(KnownChances(tuple(map(str, range(400))), np.log(p_I)))
    assert np.exp(tail.theta).tolist() == pytest.approx([a, b], rel=2e-4)


def test_items_that_are_all_alike_or_that_all_pass_or_fail_have_no_heavy_tail(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    lines = [f"f,s{S},{S}e6,alike,{item},1000,{rng.binomial(1000, 0.1 * S)}" for S in (1, 2, 4) for item in range(80)]
    lines += [f"f,s{S},{S}e6,same,{item},50,{0 if S == 1 else 50}" for S in (1, 2, 4) for item in range(30)]
    asked = ask(imported(tmp_path / "s", "\n".join([HEADER, *lines])), "attempts", resamples=30)
    exponents = asked.of_kind("exponent")
    statuses = {(row["dataset"], row["status"]) for row in exponents}
    assert {("alike", "bends"), ("same", "not_positive")} <= statuses
    assert {row["alpha"] for row in exponents if row["dataset"] == "same"} == {None}
    assert statuses <= {("alike", "bends"), ("alike", "not_positive"), ("same", "not_positive")}
    assert "takes finitely many attempts on average" in asked.words
    assert {row["k"] for row in asked.of_kind("forecast") if row["dataset"] == "alike"} == {10_000, 100_000}


# ----------------------------------------------------------------------------------------------------------- forecasts


def test_a_forecast_is_what_each_item_fails_given_its_counts() -> None:
    items, k = counted([0, 0, 0, 1, 2, 12], 30), 900
    tail = fit_tail(items)
    a, b = np.exp(tail.theta)
    fails = []
    for c in items.right_I.tolist():

        def of(y: float, c: int = c, more: int = 0) -> float:
            p = y ** (1 / a)
            return float((1 - p) ** (b - 1) * p**c * (1 - p) ** (30 - c + more))

        above, below = (quad(of, 0, 1, args=(c, more), limit=400, epsabs=0, epsrel=1e-10)[0] for more in (k, 0))
        fails.append(above / below)
    predicted = forecast(BETA, items, k, tail)
    assert predicted.value == pytest.approx(1 - np.mean(fails), rel=1e-6)
    assert predicted.ends[0] < 1 - np.mean(fails) < predicted.ends[1]


def test_hidden_samples_are_a_part_of_those_there_are() -> None:
    items = counted([0, 3, 50, 997, 1000], 1000)
    left = items.hidden(10, seed=4)
    assert left.tried_I.tolist() == [10] * 5
    assert left.right_I[0] == 0
    assert left.right_I[4] == 10
    mean = np.mean([items.hidden(10, seed).right_I for seed in range(400)], axis=0)
    assert mean == pytest.approx(items.right_I / 100, abs=0.15)


def test_a_backtest_is_the_mean_over_hidings_of_how_far_predictions_miss() -> None:
    p_I = np.random.default_rng(5).beta(0.4, 2.0, 60)
    items = counted(np.random.default_rng(6).binomial(2000, p_I).tolist(), 2000)
    measured = items.passes([2000]).mean()
    rows = {row["way"]: row for row in hide([items], seed=7)}
    for way in (LINE, BETA):
        told = [forecast(way, items.hidden(20, 7 + at), 2000, is_measured=True) for at in range(5)]
        ratios = [math.log(each.value) / math.log(measured) - 1 for each in told if each.value is not None]
        assert (rows[way]["n_models"], rows[way]["n_samples"]) == (1, 20)
        assert (rows[way]["error"], rows[way]["bias"]) == pytest.approx((np.mean(np.abs(ratios)), np.mean(ratios)))
    held = [each.ends is not None and each.ends[0] <= measured <= each.ends[1] for each in told]
    assert (rows[BETA]["inside"], rows[LINE]["inside"]) == (np.mean(held), None)
    assert hide([counted([1, 2, 3], 900)], seed=7) == []  # a hundredth of these are too few


# ---------------------------------------------------------------------------------------------------------------- verb


def test_the_order_of_the_file_decides_nothing_and_the_samples_which_k_are_predicted(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    ease_I = rng.beta(0.4, 6.0, 30)
    lines = [
        f"f,s{at},{S},t,i{item},200,{rng.binomial(200, min(1.0, 2.0**at * ease))}"
        for at, S in enumerate((1e6, 1e7, 1e8))
        for item, ease in enumerate(ease_I)
    ]
    asked, of_shuffled = (
        ask(imported(tmp_path / name, "\n".join([HEADER, *of])), "attempts", resamples=30, k=[1, 10, 5000])
        for name, of in (("s", lines), ("t", [lines[at] for at in rng.permutation(len(lines))]))
    )
    plain, other = ([{**row, "created_at": None} for row in of.rows] for of in (asked, of_shuffled))
    assert plain == other
    assert {row["k"] for row in asked.of_kind("pass")} == {1, 10}
    assert {row["k"] for row in asked.of_kind("forecast")} == {5000}
    y_N = [-math.log(row["passes"]) for row in asked.of_kind("pass") if row["k"] == 1]
    (law,) = [row for row in asked.of_kind("law") if (row["law"], row["k"]) == ("pass_at", 1)]
    assert law["alpha"] == pytest.approx(-np.polyfit(np.log([1e6, 1e7, 1e8]), np.log(y_N), 1)[0], rel=1e-6)


def test_chances_in_the_store_are_those_of_the_exact_answer(tmp_path: Path) -> None:
    store = quiz(tmp_path / "s")
    asked = ask(store, "attempts", resamples=30, k=50)
    runs, passes = runs_by_size(store.root), asked.of_kind("pass")
    assert [row["size"] for row in passes] == list(runs)
    for row in passes:
        tokens = runs[row["size"]]
        of_right = [(tokens["item"] == item) & tokens["correct"] for item in range(N_ITEMS)]
        chances = [math.exp(tokens["logprob"][mask].sum(dtype=float)) for mask in of_right]
        assert row["passes"] == pytest.approx(np.mean([1 - (1 - p) ** 50 for p in chances]), rel=1e-6)
    assert asked.of_kind("forecast") == asked.of_kind("hidden") == []


# ------------------------------------------------------------------------------------------------ none right, and many


def test_items_that_were_tried_once_have_no_forecast_by_a_line(tmp_path: Path) -> None:
    rows = [f"toy,{size},{S},t,{item},1,{item % 2}" for size, S in (("a", 1e7), ("b", 1e8)) for item in range(8)]
    asked = ask(imported(tmp_path / "once", "\n".join([HEADER, *rows])), "attempts", resamples=20, k=[1, 10])
    assert [row["passes"] for row in asked.of_kind("pass")] == [0.5, 0.5]
    assert {row["passes"] for row in asked.of_kind("forecast") if row["way"] == "line"} <= {None}


@pytest.mark.parametrize(
    ("n", "c", "k"), [(2 * 10**6, 37, 400), (10**12, 1, 1), (10**12, 9, 10**11), (10**9, 500, 10**6)]
)
def test_pass_at_k_of_a_million_and_more_samples_keeps_its_digits(n: int, c: int, k: int) -> None:
    few, many = sorted((c, k))
    ln_fails = math.fsum(math.log1p(-many / (n - i)) for i in range(few))
    assert counted([c], n).passes([k])[0, 0] == pytest.approx(-math.expm1(ln_fails), rel=1e-4)


def test_a_condensed_count_is_as_likely_under_a_distribution_as_it_was() -> None:
    """But for what condensing takes from every distribution alike, which is exact for a uniform p."""
    a, n, c = 0.4, 10**6, np.array([3.0, 300_000.0])
    ln_U, _, _ = Likelihood(counted([3, 300_000], n)).at(np.log([a, 1.0]))
    right_U, tried_U = condensed(c, np.full(2, float(n)))
    assert right_U.tolist() == [3.0, pytest.approx(0.3 * tried_U[1])]
    assert tried_U[1] < 20_000
    lost_U = betaln(c + 1, n - c + 1) - betaln(right_U + 1, tried_U - right_U + 1)
    whole_U = betaln(a + c, 1 + n - c) - betaln(a, 1)
    assert (ln_U + lost_U).tolist() == pytest.approx(whole_U.tolist(), abs=1e-3)


def test_any_number_of_samples_is_answered(tmp_path: Path) -> None:
    p_I = np.random.default_rng(0).beta(0.4, 12, 6)
    rows = "\n".join(f"14m,14e6,{item},{10**12},{round(p * 10**12)}" for item, p in enumerate(p_I))
    store = imported(tmp_path / "store", f"size,S,item,n_samples,n_correct\n{rows}", dataset="d")
    asked = ask(store, "attempts", k=[1, 10], resamples=10)
    first = asked.of_kind("pass")[0]
    assert first["passes"] == pytest.approx(p_I.mean())
    assert 0 < first["passes_stderr_of_samples"] < 1e-6


# ---------------------------------------------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("keys", [{}, {"axis": "D"}], ids=["S", "D"])
def test_checkpoints_too_few_for_a_law_have_pass_at_k_and_forecasts(tmp_path: Path, keys: dict[str, str]) -> None:
    """Two sizes, one trained on two numbers of tokens and one on one: no law in S, and none in D."""
    rng, states = np.random.default_rng(0), [("14m", 14e6, 1e9), ("14m", 14e6, 3e9), ("31m", 31e6, 3e9)]
    rows = [
        f"f,{size},{S},d,{item},40,{rng.binomial(40, p)},{D}"
        for size, S, D in states
        for item, p in enumerate(rng.beta(0.6, 4, 12))
    ]
    store = imported(tmp_path / "store", "\n".join([f"{HEADER},D", *rows]))
    asked = ask(store, "attempts", k=[1, 10, 1000], resamples=20, **keys)
    at_first = [row for row in asked.of_kind("pass") if row["k"] == 1]
    assert sorted((row["size"], row["training_tokens"]) for row in at_first) == [(size, D) for size, _, D in states]
    assert all(0 < row["passes"] < 1 for row in at_first)
    assert {row["k"] for row in asked.of_kind("forecast") if row["passes"] is not None} == {1000}
    assert "14m, D = 3B" in asked.words
    if not keys:
        assert "so there is no law in S: axis=D asks for one along the tokens of each size" in asked.words
        assert asked.of_kind("law") == []
