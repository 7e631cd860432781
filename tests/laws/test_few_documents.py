"""Intervals of a law over few documents: against Student's t by a plain loop, and by how often they hold the truth."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student_t

from rbpx.laws.intervals.estimate import Replicates, document_weights
from rbpx.laws.power.law import fit_power_law
from tests.support.drawn_laws import (
    OF_DOCUMENTS,
    X_OF_DOCUMENTS,
    documents_that_move,
    law_of_documents,
)


def test_the_interval_of_documents_that_differ_by_their_slope_is_that_of_a_t_test() -> None:
    """All 256 replicates of four documents, so that nothing is left to chance."""
    slopes = [0.02, -0.05, 0.11, 0.04]
    moved_DN = -np.outer(slopes, X_OF_DOCUMENTS)
    weights_BD = np.array([np.bincount(drawn, minlength=4) for drawn in itertools.product(range(4), repeat=4)])
    fit = law_of_documents(moved_DN, weights_BD, np.zeros(len(OF_DOCUMENTS)))
    mean = sum(slopes) / 4
    variance = sum((slope - mean) ** 2 for slope in slopes) / 3 / 4 * 256 / 255  # of 256 replicates as of a sample
    half = student_t.ppf(0.975, 3) * math.sqrt(variance)
    assert fit.alpha.value == pytest.approx(0.1 + mean)
    assert (fit.alpha.lo, fit.alpha.hi) == pytest.approx((0.1 + mean - half, 0.1 + mean + half))
    assert fit.alpha_sds[0] == pytest.approx(math.sqrt(variance))
    assert (fit.alpha_text.lo, fit.alpha_text.hi) == pytest.approx((fit.alpha.lo, fit.alpha.hi))


def test_documents_and_models_each_take_their_own_t() -> None:
    slopes, scatter_N = [0.02, -0.05, 0.11], np.array([0.02, -0.03, 0.01, 0.03, -0.03])
    weights_BD = np.array([np.bincount(drawn, minlength=3) for drawn in itertools.product(range(3), repeat=3)])
    fit = law_of_documents(-np.outer(slopes, X_OF_DOCUMENTS), weights_BD, scatter_N)
    left_N = scatter_N - np.polyval(np.polyfit(X_OF_DOCUMENTS, scatter_N, 1), X_OF_DOCUMENTS)
    models = float(left_N @ left_N) / 3 / float(X_OF_DOCUMENTS @ X_OF_DOCUMENTS)
    documents = sum((slope - sum(slopes) / 3) ** 2 for slope in slopes) / 2 / 3 * 27 / 26
    half = math.sqrt(student_t.ppf(0.975, 3) ** 2 * models + student_t.ppf(0.975, 2) ** 2 * documents)
    assert (fit.alpha.hi - fit.alpha.lo) / 2 == pytest.approx(half)


def test_many_documents_have_the_normal_interval() -> None:
    rng = np.random.default_rng(3)
    y_N, y_BN = (
        5 * OF_DOCUMENTS**-0.1,
        5 * OF_DOCUMENTS**-0.1 * np.exp(0.01 * rng.normal(size=(50, 1)) * X_OF_DOCUMENTS),
    )
    many, uncounted = (fit_power_law(OF_DOCUMENTS, y_N, Replicates.of(y_BN, n)) for n in (10**7, None))
    assert (many.alpha.lo, many.alpha.hi) == pytest.approx((uncounted.alpha.lo, uncounted.alpha.hi), rel=1e-6)


def test_a_fit_of_an_earlier_version_that_counts_no_documents_has_its_interval_still() -> None:
    fit = law_of_documents(
        documents_that_move(5, 0.01, np.random.default_rng(4)), document_weights(5, 60, 0), np.zeros(len(OF_DOCUMENTS))
    )
    assert fit.uncertainty.n_effective == 5
    kept, of_alpha = replace(fit.uncertainty, n_effective=None), np.array([0.0, 1.0])
    assert kept.half_width(of_alpha) < (fit.alpha.hi or 0.0) - (fit.alpha.value or 0.0)
