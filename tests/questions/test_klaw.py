"""The law in k of one model: nested counts of drawn ranks, whose exponent is known, and the published regression."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtrit

from rbpx.laws.in_k import fit_k_law, nested_covariance
from rbpx.status import Status
from tests.support.asking import ask
from tests.support.drawn_answers import BETA, LEVEL, K, curved, in_k, power
from tests.support.filled import filled
from tests.support.synthetic import Truth, write_store


def test_nested_counts_have_the_covariance_of_drawn_ones() -> None:
    rng, n = np.random.default_rng(13), 2000
    y_BK = np.array([-np.log((power(rng.uniform(size=n))[:, None] <= np.array(K)).mean(axis=0)) for _ in range(2000)])
    drawn_KK = np.cov(np.log(y_BK), rowvar=False) * n
    np.testing.assert_allclose(drawn_KK, nested_covariance(LEVEL * np.array(K) ** -BETA), rtol=0.15)


def test_a_curve_is_said_and_a_line_is_not() -> None:
    rng = np.random.default_rng(14)
    bent = [fit_k_law(K, *in_k(rng, curved)) for _ in range(10)]
    assert all(fit.status is Status.bends for fit in bent)
    straight = [fit_k_law(K, *in_k(rng, power)) for _ in range(20)]
    assert sum(fit.status is Status.ok for fit in straight) >= 16
    x = np.log(K)
    for fit in (*bent, *straight):
        y = np.log(fit.y)
        assert fit.bend.curvature.value == pytest.approx(np.polyfit(x, y, 2)[0], rel=1e-6, abs=1e-12)
        left = y - np.polyval(np.polyfit(x, y, 1), x)
        r = left[1:] @ left[:-1] / np.sqrt((left[1:] @ left[1:]) * (left[:-1] @ left[:-1]))
        assert fit.bend.residual_autocorrelation == pytest.approx(r, rel=1e-6)


def test_the_interval_of_nested_counts_is_as_variable_as_generalised_least_squares_shows() -> None:
    """Two k of the same share are one observation."""
    k_K, y_K = np.array([1, 2, 3, 5, 10]), np.array([1.2, 0.94, 0.94, 0.7, 0.55])
    R_KK = nested_covariance(y_K)
    inverse_KK, J_K2 = np.linalg.pinv(R_KK, hermitian=True), np.column_stack([np.ones(5), -np.log(k_K)])
    fit_2 = np.linalg.solve(J_K2.T @ inverse_KK @ J_K2, J_K2.T @ inverse_KK @ np.log(y_K))
    left_K = np.log(y_K) - J_K2 @ fit_2
    scale = left_K @ inverse_KK @ left_K / (4 - 2)
    line_2K = np.linalg.pinv(J_K2)
    sd = np.sqrt((line_2K @ R_KK @ line_2K.T)[1, 1] * scale)
    fit = fit_k_law(k_K.tolist(), y_K, None)
    assert fit.alpha.value == pytest.approx(line_2K[1] @ np.log(y_K), rel=1e-12)
    assert fit.alpha.lo == pytest.approx(fit.alpha.value - stdtrit(5 - 2, 0.975) * sd, rel=1e-9)


def test_k_where_every_token_is_a_hit_have_no_law() -> None:
    fit = fit_k_law((1, 2, 5), np.array([1.0, 0.5, 0.0]), None)
    assert (fit.status, fit.alpha.value, fit.reasons) == (Status.not_positive, None, ("not_positive",))


def test_resamples_whose_loss_is_0_are_left_out_without_a_warning(tmp_path: Path) -> None:
    """Of eight short documents some replicates hold hits alone at a large k; NumPy would say so on stderr."""
    asked = ask(filled(tmp_path / "store"), "klaw", resamples=100)
    assert len(asked.rows) == 4


def test_what_a_tenfold_k_is_worth_is_counted_with_the_irreducible_part(tmp_path: Path) -> None:
    """By the laws in k and in S alone: y(1) / y(10) to the power 1 / alpha of S, not 10^(alpha_k / alpha)."""
    store = write_store(tmp_path, Truth(scatter=0.01), seed=3)
    (of_S,) = ask(store, "fit", laws=["rbp"], k=1, method="ols", resamples=50).rows
    asked = ask(store, "klaw", k=[1, 2, 5, 20, 100], method="offset", resamples=50)
    of_size = [row for row in asked.rows if row["law"] == "k_law"]
    (shown,) = [table.rows for table in asked.results[0].tables if "rate" in table.rows[0]]
    assert [row["rate"] for row in shown] == [row["params"]["exchange"]["rate"] for row in of_size]
    for row in of_size:
        E, C, alpha = row["params"]["E"], row["C"], row["alpha"]
        ratio = (E + C) / (E + C * 10**-alpha)
        assert row["params"]["exchange"]["factor"] == pytest.approx(ratio ** (1 / of_S["alpha"]), rel=1e-6)
