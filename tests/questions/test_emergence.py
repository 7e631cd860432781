"""Emergence laws and crossing sizes, against the released GPT-2 windows, closed forms and simulated laws."""

import csv
import math
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import linregress
from scipy.stats import t as student_t

from rbpx.laws.numeric import neg_ln
from rbpx.questions.emergence.laws import crossing, fit_joint, fit_windows
from rbpx.status import Status
from tests.support.asking import ask, imported
from tests.support.crossings import LENGTHS, S, law

NUMBERS = attrgetter("C.value", "C.lo", "C.hi", "alpha.value", "alpha.stderr", "alpha.lo", "alpha.hi", "r2.value")
ENDS = ("ln_S", "ln_lo", "ln_hi")


def gpt2(shared_data: Path, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and released shares of windows of the four GPT-2 models on Wikipedia, [M] and [M, N] for LENGTHS."""
    with (shared_data / "reference" / "gpt2_wikipedia_emergence.csv").open(newline="") as table:
        rows = [row for row in csv.DictReader(table) if int(row["k"]) == k]
    sizes = sorted({int(row["non_embedding_params"]) for row in rows})
    p = {(int(row["non_embedding_params"]), int(row["n"])): float(row["p_all_n_in_topk"]) for row in rows}
    return np.array(sizes), np.array([[p[size, N] for N in LENGTHS] for size in sizes])


@pytest.mark.parametrize(("k", "r2"), [(1, 0.10), (10, 0.85), (100, 0.97), (1000, 0.98)])
def test_the_joint_r2_on_the_released_gpt2_windows(k: int, r2: float, shared_data: Path) -> None:
    """The 0.10 of k = 1 is 1 - SS_res/SS_tot of ln(-ln p) about its mean; of ln(-ln p) - ln N it would be 0.001."""
    fit = fit_joint(*gpt2(shared_data, k)[:1], LENGTHS, gpt2(shared_data, k)[1]).fit
    assert (fit.status, fit.n_points) == (Status.ok, 20)
    assert round(fit.r2.value, 2) == r2


def test_every_number_of_the_joint_law_equals_its_closed_form(shared_data: Path) -> None:
    sizes, p_MN = gpt2(shared_data, 10)
    y, x = [], []
    for m, size in enumerate(sizes):
        for n, N in enumerate(LENGTHS):
            y.append(math.log(-math.log(p_MN[m, n])) - math.log(N))
            x.append(math.log(size))
    plain = linregress(x, y)
    ln_N = np.tile(np.log(LENGTHS), len(sizes))
    ln_y, fitted = np.add(y, ln_N), plain.intercept + plain.slope * np.array(x) + ln_N
    p, p_fitted = np.exp(-np.exp(ln_y)), np.exp(-np.exp(fitted))
    # With as many points at each size the line is that of the means of the sizes.
    means = linregress(np.log(sizes), np.reshape(y, p_MN.shape).mean(axis=1))
    factor = student_t.ppf(0.975, len(sizes) - 2)
    ends = [math.exp(means.intercept + sign * factor * means.intercept_stderr) for sign in (-1, 1)]
    fit = fit_joint(sizes, LENGTHS, p_MN)
    assert [*NUMBERS(fit.fit), fit.params["r2_p"]] == pytest.approx(
        [
            math.exp(plain.intercept),
            *ends,
            -plain.slope,
            means.stderr,
            -plain.slope - factor * means.stderr,
            -plain.slope + factor * means.stderr,
            1 - np.sum((ln_y - fitted) ** 2) / np.sum((ln_y - ln_y.mean()) ** 2),
            1 - np.sum((p - p_fitted) ** 2) / np.sum((p - p.mean()) ** 2),
        ],
        rel=1e-9,
    )
    assert fit.params["interval"] == "models"


def test_an_exact_joint_law_is_recovered_with_points_left_out() -> None:
    p_MN = law(3.0, 0.2)
    p_MN[0, 4], p_MN[5, 0], p_MN[2, 2] = 0.0, 1.0, math.nan
    fit = fit_joint(S, LENGTHS, p_MN)
    found = (fit.fit.C.value, fit.fit.alpha.value, fit.fit.r2.value, fit.params["r2_p"])
    assert found == pytest.approx((3.0, 0.2, 1.0, 1.0), rel=1e-10)
    assert (fit.fit.n_points, fit.params["n_left_out"], fit.params["n_sizes"]) == (27, 3, 6)


@pytest.mark.parametrize(
    ("S", "p_MN", "status"),
    [
        (S[:2], np.full((2, 2), 0.5), Status.too_few_sizes),
        (np.array([1e6, 1e6, 1e7]), np.full((3, 2), 0.5), Status.too_few_sizes),
        (S[:4], np.array([[0.5, 0.2], [0.6, 0.0], [1.0, 0.0], [math.nan, 1.0]]), Status.not_positive),
        (S[:3], np.zeros((3, 2)), Status.not_positive),
    ],
)
def test_a_joint_law_without_enough_points_is_a_status_and_no_numbers(
    S: np.ndarray, p_MN: np.ndarray, status: Status
) -> None:
    fit = fit_joint(S, [1, 5], p_MN)
    assert fit.fit.status is status
    assert set(NUMBERS(fit.fit)) == {None}


@pytest.mark.parametrize("p", [0.0, 1.0, math.nan])
def test_a_law_of_one_length_has_no_numbers_where_no_window_or_every_window_is_of_hits(p: float) -> None:
    fit = fit_windows(S[:3], [0.2, p, 0.4])
    assert fit.status is Status.not_positive
    found = crossing(fit, 0.5)
    assert (found["status"], [found[end] for end in ENDS]) == (Status.not_positive, [None] * 3)


def test_what_is_no_share_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        neg_ln([0.5, 1.1])


# ---------------------------------------------------------------------------------------------------- documents


def test_too_few_usable_replicates_give_no_interval() -> None:
    fit = fit_joint(S, LENGTHS, law(3.0, 0.2), np.zeros((50, 6, 5)))
    assert (fit.fit.status, fit.fit.alpha.lo, fit.fit.C.hi, fit.params["interval"]) == (Status.ok, None, None, None)
    single = fit_windows(S, law(3.0, 0.2)[:, 1], np.zeros((50, 6)))
    plain, found = crossing(fit_windows(S, law(3.0, 0.2)[:, 1]), 0.5), crossing(single, 0.5)
    assert [found[end] for end in ENDS] == [plain["ln_S"], None, None]


# ----------------------------------------------------------------------------------------------------- crossing


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_an_exact_law_crosses_where_its_inverse_says(share: float) -> None:
    found = crossing(fit_windows(S, law(3.0, 0.2)[:, 2]), share)
    assert (found["status"] is Status.beyond) == (found["ln_S"] > math.log(10.5 * S[-1]))
    expected = (3.0 * 10 / -math.log(share)) ** (1 / 0.2)
    assert [found["S"], found["lo"], found["hi"]] == pytest.approx([expected] * 3, rel=1e-6)


def test_the_interval_of_a_crossing_is_where_the_band_of_the_regression_meets_the_level() -> None:
    """Walk along ln S and ask at each step whether the level lies within the confidence band."""
    walk, x, shapes = np.linspace(-200, 400, 600_001), np.log(S), set()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p_M = np.exp(-0.5 * np.exp(-0.2 * (x - x.mean()) + rng.normal(0, rng.uniform(0.1, 1.2), 6)))
        fit, share = fit_windows(S, p_M), rng.uniform(0.3, 0.9)
        found = crossing(fit, share)
        if found["status"] is Status.unreachable:
            continue
        line = linregress(x, np.log(-np.log(p_M)))
        rss = np.sum((np.log(-np.log(p_M)) - line.intercept - line.slope * x) ** 2)
        se = np.sqrt(rss / 4 * (1 / 6 + (walk - x.mean()) ** 2 / np.sum((x - x.mean()) ** 2)))
        gap = np.abs(line.intercept + line.slope * walk - math.log(-math.log(share)))
        inside = gap <= student_t.ppf(0.975, 4) * se
        at = int(np.searchsorted(walk, found["ln_S"]))
        assert inside[at]
        before, after = np.flatnonzero(~inside[:at]), np.flatnonzero(~inside[at:])
        lo, hi = walk[before[-1]] if len(before) else None, walk[at + after[0]] if len(after) else None
        for end, expected in ((found["ln_lo"], lo), (found["ln_hi"], hi)):
            if end is None or walk[0] < end < walk[-1]:
                assert (end is None) == (expected is None)
                assert end is None or end == pytest.approx(expected, abs=2e-3)
        shapes.add((lo is None, hi is None))
    assert shapes == {(False, False), (False, True), (True, False), (True, True)}


def test_a_share_that_does_not_rise_with_size_never_crosses() -> None:
    found = crossing(fit_windows(S, law(3.0, 0.2)[::-1, 1]), 0.5)
    assert [found[name] for name in ("status", "S", "lo", "hi")] == [Status.unreachable, None, None, None]


def test_a_crossing_beyond_all_floats_is_known_by_its_logarithm_only(shared_data: Path) -> None:
    sizes, p_MN = gpt2(shared_data, 1)
    found = crossing(fit_windows(sizes, p_MN[:, 3]), 0.9)
    assert (found["status"], found["S"], found["ln_hi"]) == (Status.beyond, None, None)
    assert found["ln_S"] > 700


def test_imported_shares_without_counts_are_not_said_to_differ_from_independence(tmp_path: Path) -> None:
    rows = [f"{S},10,{n},{p}" for S, p_1 in ((1e6, 0.3), (1e7, 0.4), (1e8, 0.5)) for n, p in ((1, p_1), (5, p_1**4))]
    store = imported(tmp_path / "store", "\n".join(["S,k,n,p_all_n_in_topk", *rows]), dataset="d", ties="pessimistic")
    assert "(no interval)" in ask(store, "emergence").words
