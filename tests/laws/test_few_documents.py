"""Intervals of a law over few documents: against Student's t by a plain loop, and by how often they hold the truth.

A drawn document moves ln y at every size alike (its level), along ln S (its slope), and at each size by itself.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student_t

from rbpx.laws.intervals.estimate import Resampled, document_weights
from rbpx.laws.power.law import PowerLawFit, fit_power_law
from rbpx.laws.predict.prediction import predict
from tests.support.draws import plausible

S = np.logspace(4, 7, 5)
X = np.log(S) - np.log(S).mean()
ALPHA = 0.1


def moved(n_documents: int, own: float, rng: np.random.Generator) -> np.ndarray:
    """How far each document moves ln y at each size."""
    level, slope = rng.normal(size=(2, n_documents, 1))
    return np.asarray(0.05 * level + 0.05 * slope * X / X.max() + own * rng.normal(size=(n_documents, len(S))))


def law(moved_DN: np.ndarray, weights_BD: np.ndarray, scatter_N: np.ndarray) -> PowerLawFit:
    """The law of the mean over documents, which models scatter about."""
    ln_y_N = math.log(5) - ALPHA * X + scatter_N
    resampled_BN = np.exp(ln_y_N + weights_BD @ moved_DN / len(moved_DN))
    y_N = np.exp(ln_y_N + moved_DN.mean(axis=0))
    return fit_power_law(S, y_N, Resampled.of(resampled_BN, len(moved_DN)), backtests=False)


def test_the_interval_of_documents_that_differ_by_their_slope_is_that_of_a_t_test() -> None:
    """All 256 resamples of four documents, so that nothing is left to chance."""
    slopes = [0.02, -0.05, 0.11, 0.04]
    moved_DN = -np.outer(slopes, X)
    weights_BD = np.array([np.bincount(drawn, minlength=4) for drawn in itertools.product(range(4), repeat=4)])
    fit = law(moved_DN, weights_BD, np.zeros(len(S)))
    mean = sum(slopes) / 4
    variance = sum((slope - mean) ** 2 for slope in slopes) / 3 / 4 * 256 / 255  # of 256 resamples as of a sample
    half = student_t.ppf(0.975, 3) * math.sqrt(variance)
    assert fit.alpha == pytest.approx(ALPHA + mean)
    assert (fit.alpha_lo, fit.alpha_hi) == pytest.approx((ALPHA + mean - half, ALPHA + mean + half))
    assert fit.alpha_sds[0] == pytest.approx(math.sqrt(variance))
    assert (fit.alpha_text.lo, fit.alpha_text.hi) == pytest.approx((fit.alpha_lo, fit.alpha_hi))


def test_documents_and_models_each_take_their_own_t() -> None:
    slopes, scatter_N = [0.02, -0.05, 0.11], np.array([0.02, -0.03, 0.01, 0.03, -0.03])
    weights_BD = np.array([np.bincount(drawn, minlength=3) for drawn in itertools.product(range(3), repeat=3)])
    fit = law(-np.outer(slopes, X), weights_BD, scatter_N)
    left_N = scatter_N - np.polyval(np.polyfit(X, scatter_N, 1), X)
    models = float(left_N @ left_N) / 3 / float(X @ X)
    documents = sum((slope - sum(slopes) / 3) ** 2 for slope in slopes) / 2 / 3 * 27 / 26
    half = math.sqrt(student_t.ppf(0.975, 3) ** 2 * models + student_t.ppf(0.975, 2) ** 2 * documents)
    assert fit.alpha_lo is not None
    assert fit.alpha_hi is not None
    assert (fit.alpha_hi - fit.alpha_lo) / 2 == pytest.approx(half)


@pytest.mark.parametrize("scatter", [0.0, 0.02])
@pytest.mark.parametrize("n_documents", [3, 5, *(pytest.param(n, marks=pytest.mark.long) for n in (10, 20, 100))])
def test_intervals_over_few_documents_hold_the_truth_95_times_of_100(n_documents: int, scatter: float) -> None:
    rng, n_draws = np.random.default_rng([n_documents, int(100 * scatter)]), 300
    held = {"alpha": 0, "C": 0, "other documents": 0}
    for seed in range(n_draws):
        of_models_N = scatter * rng.normal(size=len(S))
        fit = law(moved(n_documents, 0.01, rng), document_weights(n_documents, 100, seed), of_models_N)
        there = predict(fit, 1e8)
        truth = 5 * math.exp(-ALPHA * (math.log(1e8) - np.log(S).mean()) + scatter * rng.normal())
        at_one = 5 * math.exp(ALPHA * np.log(S).mean())
        for name, lo, value, hi in (
            ("alpha", fit.alpha_lo, ALPHA, fit.alpha_hi),
            ("C", fit.constant.lo, at_one, fit.constant.hi),
            ("other documents", there.lo, truth, there.hi),
        ):
            assert lo is not None
            assert hi is not None
            held[name] += lo <= value <= hi
    assert all(plausible(times, n_draws) or times > 0.95 * n_draws for times in held.values()), held
    assert all(times <= 0.99 * n_draws for times in held.values()), held


def test_many_documents_have_the_normal_interval() -> None:
    rng = np.random.default_rng(3)
    y_N, y_BN = 5 * S**-ALPHA, 5 * S**-ALPHA * np.exp(0.01 * rng.normal(size=(50, 1)) * X)
    many, uncounted = (fit_power_law(S, y_N, Resampled.of(y_BN, n)) for n in (10**7, None))
    assert (many.alpha_lo, many.alpha_hi) == pytest.approx((uncounted.alpha_lo, uncounted.alpha_hi), rel=1e-6)


def test_a_fit_of_an_earlier_version_that_counts_no_documents_has_its_interval_still() -> None:
    fit = law(moved(5, 0.01, np.random.default_rng(4)), document_weights(5, 60, 0), np.zeros(len(S)))
    assert fit.uncertainty is not None
    assert fit.uncertainty.n_documents == 5
    kept, of_alpha = replace(fit.uncertainty, n_documents=None), np.array([0.0, 1.0])
    assert kept.half_width(of_alpha) < (fit.alpha_hi or 0.0) - (fit.alpha or 0.0)
