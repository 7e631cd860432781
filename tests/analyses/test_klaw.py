"""The law in k of one model: nested counts of drawn ranks, whose exponent is known, and the published regression."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import linregress, norm

from rbpx.laws.in_k import curvature_of, fit_k_law, nested_covariance
from rbpx.laws.intervals.estimate import document_weights
from rbpx.status import Status
from tests.support.draws import few_or_all, plausible

K = (1, 2, 3, 5, 7, 10, 18, 30, 50, 78, 100)
BETA, LEVEL = 0.35, 1.2


def power(u: np.ndarray) -> np.ndarray:
    """Ranks with P(R <= k) = exp(-LEVEL k^-BETA): the law in k holds exactly."""
    return np.ceil((LEVEL / -np.log(u)) ** (1 / BETA))


def curved(u: np.ndarray) -> np.ndarray:
    """Ranks of a lognormal, whose -ln P(R <= k) is no power of k."""
    return np.ceil(np.exp(1.0 + 2.2 * norm.ppf(u)))


def draw(rng: np.random.Generator, ranks_of: object, resamples: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """-ln RBP_k of 200 documents of 40 tokens, a part of whose luck is shared, and under resamples of them."""
    luck = 0.5 * rng.normal(size=(200, 1)) + 0.75**0.5 * rng.normal(size=(200, 40))
    ranks = ranks_of(norm.cdf(luck))  # type: ignore[operator]
    hits_DK = (ranks[:, :, None] <= np.array(K)).sum(axis=1)
    p_BK = document_weights(200, resamples, int(rng.integers(2**31))) @ hits_DK / 8000
    return -np.log(hits_DK.sum(axis=0) / 8000), -np.log(p_BK)


def slope(y: Sequence[float] | np.ndarray) -> float:
    """The published number: least squares of ln y on ln k."""
    return -float(linregress(np.log(K), np.log(y)).slope)


@few_or_all(40, 400)
@pytest.mark.parametrize("ranks_of", [power, curved])
def test_the_interval_holds_the_slope_of_all_text(n_draws: int, ranks_of: object) -> None:
    """For ranks without a law in k it holds the slope of the best line, which a text without end would have."""
    if ranks_of is power:
        truth = BETA
    else:
        truth = slope(-norm.logcdf((np.log(K) - 1.0) / 2.2))
    rng, covered, covered_scatter = np.random.default_rng(11), 0, 0
    for _ in range(n_draws):
        y_K, y_BK = draw(rng, ranks_of)
        fit = fit_k_law(K, y_K, y_BK)
        assert fit.alpha == pytest.approx(slope(y_K), rel=1e-9)
        assert fit.alpha_lo is not None
        assert fit.alpha_hi is not None
        assert fit.alpha_lo < fit.alpha < fit.alpha_hi
        assert fit.interval == "documents"
        covered += fit.alpha_lo <= truth <= fit.alpha_hi
        of_line = linregress(np.log(K), np.log(y_K))
        covered_scatter += abs(fit.alpha - truth) <= 2.262 * of_line.stderr
    assert plausible(covered, n_draws)
    assert n_draws < 400 or covered >= 0.93 * n_draws
    assert ranks_of is curved or covered_scatter < 0.8 * n_draws  # k as independent points know far too much


@few_or_all(60, 400)
def test_without_documents_nested_counts_give_the_interval(n_draws: int) -> None:
    """Tokens without documents: the covariance of nested counts, at the scale that the residuals show."""
    rng, covered = np.random.default_rng(12), 0
    for _ in range(n_draws):
        p_K = (power(rng.uniform(size=5000))[:, None] <= np.array(K)).mean(axis=0)
        fit = fit_k_law(K, -np.log(p_K), None)
        assert fit.alpha_lo is not None
        assert fit.alpha_hi is not None
        assert fit.interval == "nested counts"
        covered += fit.alpha_lo <= BETA <= fit.alpha_hi
    assert plausible(covered, n_draws)


def test_nested_counts_have_the_covariance_of_drawn_ones() -> None:
    rng, n = np.random.default_rng(13), 2000
    y_BK = np.array([-np.log((power(rng.uniform(size=n))[:, None] <= np.array(K)).mean(axis=0)) for _ in range(2000)])
    drawn_KK = np.cov(np.log(y_BK), rowvar=False) * n
    np.testing.assert_allclose(drawn_KK, nested_covariance(LEVEL * np.array(K) ** -BETA), rtol=0.15)


def test_a_curve_is_said_and_a_line_is_not() -> None:
    rng = np.random.default_rng(14)
    bent = [fit_k_law(K, *draw(rng, curved)) for _ in range(10)]
    assert all(fit.status is Status.bends for fit in bent)
    straight = [fit_k_law(K, *draw(rng, power)) for _ in range(20)]
    assert sum(fit.status is Status.ok for fit in straight) >= 16
    x = np.log(K)
    for fit in (*bent, *straight):
        y = np.log(fit.y)
        assert fit.bend.curvature.value == pytest.approx(np.polyfit(x, y, 2)[0], rel=1e-6, abs=1e-12)
        left = y - np.polyval(np.polyfit(x, y, 1), x)
        r = left[1:] @ left[:-1] / np.sqrt((left[1:] @ left[1:]) * (left[:-1] @ left[:-1]))
        assert fit.bend.residual_autocorrelation == pytest.approx(r, rel=1e-6)


def test_three_k_have_a_line_and_no_curvature_and_two_the_same_share_are_one_observation() -> None:
    assert curvature_of((1, 2, 5), np.array([1.0, 0.8, 0.5]), None) is None
    y_K = np.array([1.2, 0.94, 0.94, 0.7, 0.55])
    fit = fit_k_law((1, 2, 3, 5, 10), y_K, None)
    assert fit.alpha_lo is not None
    assert fit.alpha_hi is not None
    assert fit.alpha_lo < fit.alpha < fit.alpha_hi  # type: ignore[operator]


def test_k_where_every_token_is_a_hit_have_no_law() -> None:
    fit = fit_k_law((1, 2, 5), np.array([1.0, 0.5, 0.0]), None)
    assert (fit.status, fit.alpha, fit.reasons) == (Status.not_positive, None, ("not_positive",))
