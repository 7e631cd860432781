"""One law for all k on drawn ranks, where it holds and where it does not: what its tests reject, and how often."""

import numpy as np
import pytest

from rbpx.laws.in_k import KForm, fit_joint_law
from tests.support.drawn_laws import S_OF_K, K, joint_law, simplest_where_neighbours_share
from tests.support.draws import most


def test_residuals_that_neighbouring_k_share_prefer_no_richer_form() -> None:
    """With k as independent points a law for each k would win."""
    assert simplest_where_neighbours_share(30) > 0.8 * 30


def test_a_bend_and_a_drift_are_found_and_prefer_another_form() -> None:
    rng = np.random.default_rng(7)
    for drift, bend, form in ((0.03, 0.0, KForm.drifting), (0.0, -0.05, KForm.levels)):
        joint = joint_law(rng, drift, bend)
        assert not joint.holds
        assert min(joint.forms, key=lambda each: each.bic).form is form


def test_the_numbers_are_those_of_plain_regressions() -> None:
    joint = joint_law(np.random.default_rng(8))
    assert joint.of_range == K
    y_NK = np.exp(-0.1 * np.log(S_OF_K)[:, None] - 0.3 * np.log(K)) * 5
    noisy_NK = y_NK * np.exp(np.random.default_rng(9).normal(0, 0.05, y_NK.shape))
    fit = fit_joint_law(S_OF_K.tolist(), K, noisy_NK, None)
    x_NK, z_NK = np.broadcast_arrays(np.log(K) - np.log(K).mean(), np.log(S_OF_K)[:, None] - np.log(S_OF_K).mean())
    design = np.column_stack([np.ones(x_NK.size), x_NK.ravel(), z_NK.ravel(), (x_NK * z_NK).ravel()])
    plain = -np.linalg.lstsq(design, np.log(noisy_NK).ravel(), rcond=None)[0][1:]
    assert [fit.kappa.value, fit.alpha.alpha.value, fit.drift.value] == pytest.approx(plain.tolist(), rel=1e-9)
    close = fit_joint_law(S_OF_K.tolist(), K, y_NK * np.exp(np.random.default_rng(9).normal(0, 1e-6, y_NK.shape)), None)
    assert (close.alpha.alpha.value, close.kappa.value) == (pytest.approx(0.1, abs=1e-5), pytest.approx(0.3, abs=1e-5))
    assert close.C == pytest.approx(5, rel=1e-4)


def test_too_few_sizes_or_k_and_shares_of_one_have_no_law() -> None:
    y_NK = np.exp(-0.1 * np.log(S_OF_K)[:, None] - 0.3 * np.log(K))
    assert fit_joint_law(S_OF_K[:2].tolist(), K, y_NK[:2], None) is None
    assert fit_joint_law(S_OF_K.tolist(), K[:2], y_NK[:, :2], None) is None
    y_NK[0, -1] = 0.0
    assert fit_joint_law(S_OF_K.tolist(), K, y_NK, None) is None


def test_one_law_is_seldom_rejected_where_it_holds() -> None:
    rng = np.random.default_rng(6)
    assert sum(not joint_law(rng).holds for _ in range(24)) <= most(24)
