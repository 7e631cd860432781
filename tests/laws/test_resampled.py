"""Replicates of the documents, and laws that take no more of them than mean and covariance."""

import numpy as np
import pytest

from rbpx.laws.intervals.estimate import Replicates
from rbpx.laws.names import Method
from rbpx.laws.power.law import fit_power_law

S = np.logspace(6, 9, 6)
X = np.log(S) - np.log(S).mean()
RNG = np.random.default_rng(3)
Y = 7 * S**-0.1 * np.exp(0.01 * RNG.normal(size=6))
DRAWN = Y * np.exp(0.02 * RNG.normal(size=(200, 1)) + 0.01 * RNG.normal(size=(200, 6)))


def test_mean_and_covariance_are_those_of_the_logarithms() -> None:
    of = Replicates.of(DRAWN)
    np.testing.assert_allclose(of.mean_N, np.log(DRAWN).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(of.covariance_NN, np.cov(np.log(DRAWN), rowvar=False), rtol=1e-10)
    again = Replicates.of_logarithms(np.log(DRAWN))
    np.testing.assert_allclose(again.covariance_NN, of.covariance_NN, rtol=1e-10)
    L_KN = RNG.normal(size=(3, 6))
    moved_BK = (np.log(DRAWN) - of.mean_N) @ L_KN.T
    np.testing.assert_allclose(of.mean_squares_of(L_KN), (moved_BK**2).mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(of.covariance_of(L_KN), np.cov(moved_BK, rowvar=False), rtol=1e-10)


@pytest.mark.parametrize("broken", [0.0, -1.0, np.nan, np.inf])
def test_a_resample_is_left_out_at_the_sizes_where_it_is_unusable(broken: float) -> None:
    y_BN = DRAWN.copy()
    y_BN[3, 4], y_BN[5, 1] = broken, broken
    of = Replicates.of(y_BN)
    assert (of.n_left_out, of.smallest(4).n_left_out, of.smallest(1).n_left_out) == (2, 1, 0)
    np.testing.assert_allclose(
        of.smallest(4).mean_N, np.log(np.delete(y_BN, 5, axis=0)[:, :4]).mean(axis=0), rtol=1e-12
    )


def test_the_smallest_sizes_of_usable_resamples_are_those_columns() -> None:
    part, whole = Replicates.of(DRAWN).smallest(4), Replicates.of(DRAWN[:, :4])
    for name in ("y_BN", "ln_y_BN", "mean_N", "covariance_NN"):
        np.testing.assert_allclose(getattr(part, name), getattr(whole, name), rtol=1e-10)


@pytest.mark.parametrize("usable", [0, 1, 19])
def test_fewer_than_20_resamples_say_nothing(usable: int) -> None:
    y_BN = np.where(np.arange(200)[:, None] < usable, DRAWN, 0.0)
    assert not Replicates.of(y_BN).suffices
    assert fit_power_law(S, Y, y_BN).alpha.lo is None


def test_the_uncertainty_of_a_weighted_law_is_that_of_its_refits() -> None:
    about = fit_power_law(S, Y, DRAWN, Method.weighted).uncertainty
    ln_y_BN = np.log(DRAWN)
    weight_N = 1 / ln_y_BN.var(axis=0, ddof=1)
    (slope, level), (slope_B, level_B) = (np.polyfit(X, of, 1, w=weight_N**0.5) for of in (np.log(Y), ln_y_BN.T))
    np.testing.assert_allclose(about.bias_P, [level_B.mean() - level, slope - slope_B.mean()], rtol=1e-9)
    np.testing.assert_allclose(about.text_PP, np.cov(level_B, -slope_B), rtol=1e-9)
    left_BN = ln_y_BN - level_B[:, None] - slope_B[:, None] * X
    assert about.text_scatter**2 == pytest.approx(((left_BN - left_BN.mean(axis=0)) ** 2 @ weight_N).mean() / 4)
