"""From outcomes to tokens: laws recovered from passes alone are held against closed forms, scipy, and known truths."""

import csv
import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import betabinom, norm

from rbpx.laws.counts.fit import Correction, OutcomeFit, Outcomes, fit_outcomes
from rbpx.laws.intervals.estimate import document_weights
from rbpx.status import Status
from tests.support.drawn_answers import ALPHA_OUTCOMES as ALPHA
from tests.support.drawn_answers import C_OUTCOMES as C
from tests.support.drawn_answers import cells, drawn_outcomes, shares
from tests.support.places import PUBLISHED

# ----------------------------------------------------------------------------------------------------- the estimate


@pytest.mark.parametrize("N", [1, 20, 10**6])
def test_two_sizes_and_one_length_have_a_closed_form(N: int) -> None:
    passed, trials, sizes = np.array([30.0, 90.0]), np.array([400.0, 500.0]), np.array([1e5, 3e7])
    fit = fit_outcomes(Outcomes(sizes, np.full(2, float(N)), passed, trials))
    p = passed / trials
    ln_y = np.log(-np.log(p) / N)
    alpha = (ln_y[0] - ln_y[1]) / math.log(3e7 / 1e5)
    assert fit.alpha.value == pytest.approx(alpha, rel=1e-9)
    assert fit.C.value == pytest.approx(math.exp(ln_y[0] + alpha * math.log(1e5)), rel=1e-7)
    # delta method: var ln(-ln p) = (1 - p) / (n p ln^2 p)
    stderr = math.sqrt(float(np.sum((1 - p) / (trials * p * np.log(p) ** 2)))) / math.log(300)
    assert fit.alpha.stderr == pytest.approx(stderr, rel=1e-6)
    assert fit.alpha.hi == pytest.approx(alpha + norm.ppf(0.975) * stderr, rel=1e-6)
    assert fit.interval == "sequences"
    assert fit.rbp(1e5).value == pytest.approx(p[0] ** (1 / N), rel=1e-9)


@pytest.mark.parametrize("correction", list(Correction))
def test_the_maximum_is_that_of_scipy_on_its_own_beta_binomial(correction: Correction) -> None:
    one = drawn_outcomes(np.random.default_rng(3), (1, 2, 5, 10), 3000, r=0.08)
    r_C = np.linspace(0.02, 0.15, len(one.S_C))
    fit = fit_outcomes(Outcomes(one.S_C, one.N_C, one.passed_C, one.trials_C, r_C=r_C), correction)

    def ln_p(theta: Any) -> Any:
        q_C = np.exp(-np.exp(theta[0] - theta[1] * np.log(one.S_C / 1e6)))
        if correction is Correction.none:
            return one.N_C * np.log(q_C)
        r = r_C if correction is Correction.measured else np.full(len(q_C), theta[2])
        a, b, N = q_C * (1 / r - 1), (1 - q_C) * (1 / r - 1), one.N_C
        return betabinom.logpmf(N, N, a, b)

    def loss(theta: Any) -> float:
        p = ln_p(theta)
        return -float(np.sum(one.passed_C * p + (one.trials_C - one.passed_C) * np.log(-np.expm1(p))))

    start = [0.0, 0.1, *([0.05] if correction is Correction.free else [])]
    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000})
    assert fit.alpha.value == pytest.approx(best.x[1], rel=2e-5)
    assert fit.C.value == pytest.approx(math.exp(best.x[0] + best.x[1] * math.log(1e6)), rel=2e-4)
    assert fit.aic == pytest.approx(2 * len(start) + 2 * best.fun, abs=1e-6)
    if correction is Correction.free:
        assert fit.r.value == pytest.approx(best.x[2], rel=1e-4)


def test_gathered_hits_bias_the_exponent_and_a_correlation_takes_it_away() -> None:
    biases = []
    for lengths in ((2,), (5,), (20,), (2, 5, 20)):
        S_C, N_C = cells(lengths)
        exact = Outcomes(S_C, N_C, 1e6 * shares(S_C, N_C, 0.1), np.full(len(S_C), 1e6), r_C=np.full(len(S_C), 0.1))
        biased, fit = fit_outcomes(exact), fit_outcomes(exact, Correction.measured)
        assert (fit.alpha.value, fit.C.value) == pytest.approx((ALPHA, C), rel=1e-6)
        biases.append((biased.alpha.value or 0.0) - ALPHA)
    assert 0 > biases[0] > biases[1] > biases[2]  # the longer, the further off
    fit = fit_outcomes(exact, Correction.free)
    assert (fit.alpha.value, fit.C.value, fit.r.value) == pytest.approx((ALPHA, C, 0.1), rel=1e-6)


def test_the_published_windows_of_gpt2_tell_what_the_science_says() -> None:
    """Wikipedia, k = 1: .056 measured at the tokens; .048, .031, .001 told by windows of 5, 10, 50."""
    told = {}
    for name, lengths in (("gpt2_wikipedia_rbp.csv", (1,)), ("gpt2_wikipedia_emergence.csv", (5, 10, 50))):
        with (PUBLISHED / name).open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["k"] == "1"]
        for N in lengths:
            these = [row for row in rows if int(row.get("n", 1)) == N]
            trials = np.array([float(row["n_tokens"]) for row in these])
            share = np.array([float(row.get("rbp") or row["p_all_n_in_topk"]) for row in these])
            sizes = np.array([float(row["non_embedding_params"]) for row in these])
            told[N] = fit_outcomes(Outcomes(sizes, np.full(4, float(N)), np.round(share * trials), trials)).alpha.value
    assert {N: round(alpha or math.nan, 3) for N, alpha in told.items()} == {1: 0.056, 5: 0.048, 10: 0.031, 50: 0.001}


# ---------------------------------------------------------------------------------------------------- the intervals


# ----------------------------------------------------------------------------------------------------- what cannot be


def outcomes(sizes: list[float], passed: list[float], trials: float = 100.0, N: float = 5.0) -> Outcomes:
    return Outcomes(np.array(sizes), np.full(len(sizes), N), np.array(passed), np.full(len(sizes), trials))


@pytest.mark.parametrize(
    ("given", "correction", "status"),
    [
        (outcomes([1e6], [50]), Correction.none, Status.too_few_sizes),
        (outcomes([1e5, 1e6], [0, 0], trials=0), Correction.none, Status.too_few_tokens),
        (outcomes([1e5, 1e6, 1e7], [0, 0, 0]), Correction.none, Status.not_positive),
        (outcomes([1e5, 1e6, 1e7], [100, 100, 100]), Correction.none, Status.not_positive),
        (outcomes([1e5, 1e6, 1e7], [0, 0, 100]), Correction.none, Status.not_positive),
        (outcomes([1e5, 1e6, 1e7], [0, 50, 100]), Correction.none, Status.not_positive),
        (outcomes([1e5, 1e6, 1e7], [0, 0, 20]), Correction.none, Status.not_positive),
        (outcomes([1e5, 1e6, 1e7], [100, 30, 0]), Correction.none, Status.not_positive),
        (outcomes([1e5, 1e6, 1e7], [10, 20, 30]), Correction.free, Status.barely_determined),
        (outcomes([1e5, 1e6, 1e7], [10, 20, 30]), Correction.measured, Status.not_known),
    ],
    ids=lambda value: value.value if isinstance(value, Status) else None,
)
def test_outcomes_that_tell_no_law_have_a_status_and_no_numbers(
    given: Outcomes, correction: Correction, status: Status
) -> None:
    fit = fit_outcomes(given, correction)
    assert fit.status is status
    assert status.remedy
    assert [fit.C.value, fit.alpha.value, fit.alpha.lo, fit.alpha.stderr, fit.r.value, fit.aic] == [None] * 6


def test_a_law_that_two_of_many_sizes_tell_and_one_without_a_trend_are_marked() -> None:
    fit = fit_outcomes(outcomes([1e5, 1e6, 1e7, 1e8], [0, 0, 3, 20]))
    assert "barely_determined" in fit.reasons
    assert fit.alpha.value is not None
    assert fit_outcomes(outcomes([1e5, 1e6, 1e7, 1e8], [9, 23, 50, 93], trials=1000)).reasons == ()
    assert fit_outcomes(outcomes([1e5, 1e6, 1e7, 1e8], [50, 52, 49, 51])).status is Status.no_trend


def test_documents_that_are_all_alike_leave_the_scatter_of_the_models() -> None:
    passed, trials = np.array([10.0, 25.0, 30.0]), np.full(3, 100.0)
    alike = (np.tile(passed, (50, 1)), np.tile(trials, (50, 1)))
    fit = fit_outcomes(Outcomes(np.array([1e5, 1e6, 1e7]), np.full(3, 2.0), passed, trials, *alike))
    assert fit.alpha.stderr == pytest.approx(0, abs=1e-9)
    assert fit.alpha.lo < fit.alpha.value - 0.05


def test_resamples_that_tell_no_law_take_the_interval_with_them() -> None:
    sizes, weights = np.array([1e5, 1e6, 1e7]), document_weights(5, 100, 1).astype(float)
    passed_MD = np.array([[0, 0, 1, 0, 0], [0, 0, 0, 0, 2], [0, 3, 0, 0, 1]], dtype=float)
    trials = np.full(3, 50.0)
    fit: OutcomeFit = fit_outcomes(
        Outcomes(
            sizes, np.full(3, 5.0), passed_MD.sum(axis=1), trials, weights @ passed_MD.T, np.tile(trials, (100, 1))
        )
    )
    assert fit.alpha.value is not None
    assert fit.n_replicates_left_out > 5
    assert (fit.alpha.stderr, fit.alpha.lo, fit.alpha.hi, fit.interval) == (None,) * 4
    assert fit.rbp(1e6).ends is None
    assert "barely_determined" in fit.reasons


def test_resamples_whose_correlation_makes_the_law_impossible_are_left_out() -> None:
    """Under r = -0.9 a sequence of 5 tokens cannot pass; one replicate of 100 has it, the rest give the interval."""
    rng, sizes = np.random.default_rng(1), np.array([1e4, 1e5, 1e6])
    trials = np.full(3, 2000.0)
    passed_BM = rng.binomial(2000, [0.1, 0.2, 0.3], (100, 3)).astype(float)
    r_BM = np.full((100, 3), 0.01)
    r_BM[3] = -0.9
    one = Outcomes(sizes, np.full(3, 5.0), np.array([200.0, 400.0, 600.0]), trials, passed_BM,
                   np.tile(trials, (100, 1)), np.full(3, 0.01), r_BM)  # fmt: skip
    fit = fit_outcomes(one, Correction.measured)
    assert fit.n_replicates_left_out == 1
    assert fit.alpha.value is not None
    assert fit.alpha.lo < fit.alpha.value < fit.alpha.hi
    json.dumps(fit.record(), allow_nan=False)
