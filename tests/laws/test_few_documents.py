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


def test_documents_and_models_each_take_their_own_t() -> None:
    """All 27 replicates of three documents that differ by their slope, so that nothing is left to chance."""
    slopes, scatter_N = [0.02, -0.05, 0.11], np.array([0.02, -0.03, 0.01, 0.03, -0.03])
    weights_BD = np.array([np.bincount(drawn, minlength=3) for drawn in itertools.product(range(3), repeat=3)])
    fit = law_of_documents(-np.outer(slopes, X_OF_DOCUMENTS), weights_BD, scatter_N)
    left_N = scatter_N - np.polyval(np.polyfit(X_OF_DOCUMENTS, scatter_N, 1), X_OF_DOCUMENTS)
    models = float(left_N @ left_N) / 3 / float(X_OF_DOCUMENTS @ X_OF_DOCUMENTS)
    documents = sum((slope - sum(slopes) / 3) ** 2 for slope in slopes) / 2 / 3 * 27 / 26
    half = math.sqrt(student_t.ppf(0.975, 3) ** 2 * models + student_t.ppf(0.975, 2) ** 2 * documents)
    alpha = 0.1 + sum(slopes) / 3 - float(scatter_N @ X_OF_DOCUMENTS) / float(X_OF_DOCUMENTS @ X_OF_DOCUMENTS)
    assert (fit.alpha.lo, fit.alpha.value, fit.alpha.hi) == pytest.approx((alpha - half, alpha, alpha + half))
    assert fit.alpha_sds[0] == pytest.approx(math.sqrt(documents))
    text = student_t.ppf(0.975, 2) * math.sqrt(documents)
    assert (fit.alpha_text.lo, fit.alpha_text.hi) == pytest.approx((alpha - text, alpha + text))


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
