"""The lognormal rank model, against published numbers, plain loops and a second maximisation by another method."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr

from rbpx.laws.ranks.family import RankFit
from rbpx.laws.ranks.lognormal import derived_approximation, fit_paper
from rbpx.status import Status
from tests.support.singly import derived, replicates_of_paper

# RBP paper (arXiv 2510.20387): pythia 14m, 160m, 1.4b, 12b on Wikipedia.
PUBLISHED_MU = [1.19, -3.49, -9.32, -14.29]
PUBLISHED_SIGMA = [3.69, 4.43, 5.18, 5.76]


def plain_ln_p(x: np.ndarray, mu: float, sigma: float) -> np.ndarray:
    """Ln P(R = x | R >= 2) from log_ndtr, on the side of the normal where both values are small."""
    lo, hi = (np.log(x - 0.5) - mu) / sigma, (np.log(x + 0.5) - mu) / sigma
    lo, hi = np.where(lo > 0, -hi, lo), np.where(lo > 0, -lo, hi)
    return log_ndtr(hi) + np.log(-np.expm1(log_ndtr(lo) - log_ndtr(hi))) - log_ndtr((mu - math.log(1.5)) / sigma)


def draw(mu: float, sigma: float, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ranks and counts of n tokens of rank >= 2, by rejection from the normal."""
    kept: list[np.ndarray] = []
    while sum(len(part) for part in kept) < n:
        t = mu + sigma * rng.standard_normal(20 * n)
        kept.append(t[t > math.log(1.5)])
    return np.unique(np.rint(np.exp(np.concatenate(kept)[:n])), return_counts=True)


def number(fit: RankFit, name: str) -> float:
    value = fit.params[name]
    return float(value)


def test_the_paper_s_approximation_gives_its_numbers() -> None:
    approximate = derived_approximation(PUBLISHED_MU, PUBLISHED_SIGMA)
    assert np.round(approximate[0], 4).tolist() == [1.8876, 1.3250, 1.0502, 0.9374]
    assert np.round(approximate[1], 4).tolist() == [5.3734, 4.1434, 3.4561, 3.1660]


def test_the_exact_sums_give_the_recomputed_numbers() -> None:
    exact = derived(PUBLISHED_MU, PUBLISHED_SIGMA, 50304)
    assert np.round(exact.neg_ln_rbp_1, 4).tolist() == [1.8917, 1.3463, 1.0842, 0.9779]
    assert np.round(exact.cross_entropy_nats, 4).tolist() == [5.2453, 4.0401, 3.3570, 3.0661]


def test_the_paper_fit_is_the_maximum_that_another_method_finds() -> None:
    rank, n_tokens = draw(-3.49, 4.43, 500, np.random.default_rng(2))
    fit = fit_paper(rank, n_tokens)

    def loss(q: np.ndarray) -> float:
        return -float(n_tokens @ plain_ln_p(rank, q[0], math.exp(q[1])))

    found = minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-9, "maxiter": 4000})
    assert fit.loglik == pytest.approx(-found.fun, abs=1e-6)
    assert (number(fit, "mu"), number(fit, "sigma")) == pytest.approx((found.x[0], math.exp(found.x[1])), rel=1e-4)
    assert fit.aic == pytest.approx(4 + 2 * found.fun, abs=1e-5)
    assert fit.bic == pytest.approx(2 * math.log(500) + 2 * found.fun, abs=1e-5)


def test_rank_one_the_order_and_repeated_rows_do_not_change_the_paper_fit() -> None:
    rank, n_tokens = draw(1.19, 3.69, 3000, np.random.default_rng(3))
    plain = fit_paper(rank, n_tokens)
    mixed = fit_paper(np.r_[rank[::-1], 1, rank[:5], 77777], np.r_[n_tokens[::-1], 9999, n_tokens[:5] * 0, 0])
    assert mixed.params == pytest.approx(plain.params, rel=1e-9)


def test_the_distance_is_the_largest_gap_between_the_two_cdfs() -> None:
    rank, n_tokens = draw(1.19, 3.69, 300, np.random.default_rng(4))
    small = rank < 3000
    rank, n_tokens = rank[small], n_tokens[small]
    fit = fit_paper(rank, n_tokens)
    every = np.arange(2, 3000, dtype=np.float64)
    model = np.cumsum(np.exp(plain_ln_p(every, number(fit, "mu"), number(fit, "sigma"))))
    seen = np.array([n_tokens[rank <= x].sum() for x in every]) / n_tokens.sum()
    assert fit.distance == pytest.approx(np.abs(model - seen).max(), abs=1e-9)


def test_a_power_law_of_ranks_is_reported_as_the_limit() -> None:
    # Heavier than any lognormal: the weights bend upwards in ln-ln, up to a cut at 20,000.
    x = np.arange(2, 20_001, dtype=np.float64)
    weight = x**-2.6 * np.exp(0.06 * np.log(x) ** 2)
    fit = fit_paper(x, 1e5 * weight / weight.sum())
    assert fit.status is Status.at_bound
    assert (fit.params["mu"], fit.params["sigma"], fit.params["gamma"]) == (None, None, 0.0)
    assert "power law" in fit.status.remedy
    # At gamma = 0, P(R <= x | R >= 2) = 1 - ((x + 1/2) / 1.5)^(1 - beta); its maximum by a fine search.
    beta = np.linspace(1.05, 4, 29_501)[:, None]
    seen = np.array([2.0, 3.0, 4.0, 300.0])
    cells = np.log(((seen - 0.5) / 1.5) ** (1 - beta) - ((seen + 0.5) / 1.5) ** (1 - beta))
    limit = fit_paper([2, 3, 4, 300], [1000, 100, 50, 80])
    assert limit.status is Status.at_bound
    loglik = 1000 * cells[:, 0] + 100 * cells[:, 1] + 50 * cells[:, 2] + 80 * cells[:, 3]
    assert limit.loglik == pytest.approx(loglik.max(), abs=1e-4)
    assert number(limit, "beta") == pytest.approx(float(beta[loglik.argmax(), 0]), abs=1e-4)


def test_odd_small_samples_end_in_finite_numbers_or_a_status() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        rank = rng.choice(np.arange(1, 400), size=rng.integers(1, 12), replace=False)
        fit = fit_paper(rank, rng.choice([1, 2, 5, 100, 10_000], size=len(rank)))
        known = [*fit.params.values(), fit.loglik, fit.aic, fit.bic, fit.distance]
        assert all(value is None or math.isfinite(value) for value in known)
        assert fit.status is not Status.not_converged
        assert (fit.params["mu"] is not None) == (fit.status is Status.ok)


def test_one_step_resamples_agree_with_true_refits() -> None:
    rng = np.random.default_rng(6)
    rank, n_tokens = draw(-9.32, 5.18, 20_000, rng)
    fit = fit_paper(rank, n_tokens)
    counts_BR = rng.multinomial(20_000, n_tokens / n_tokens.sum(), size=40)
    fast_B2 = replicates_of_paper(fit, rank, counts_BR)
    slow = [fit_paper(rank, counts_R) for counts_R in counts_BR]
    slow_B2 = np.array([[number(one, "mu"), number(one, "sigma")] for one in slow])
    spread = slow_B2.std(axis=0, ddof=1)
    # Second order in the step: a few hundredths of the spread, far below the resampling error of 1 / sqrt(2 * 40).
    assert np.all(np.sqrt(np.mean((fast_B2 - slow_B2) ** 2, axis=0)) < 0.05 * spread)
    assert np.corrcoef(fast_B2[:, 0], slow_B2[:, 0])[0, 1] > 0.999


def test_resamples_near_the_limit_stay_finite() -> None:
    rng = np.random.default_rng(8)
    rank, n_tokens = draw(-14.29, 5.76, 600, rng)
    fit = fit_paper(rank, n_tokens)
    assert fit.status is Status.ok
    mu_sigma_B2 = replicates_of_paper(fit, rank, rng.multinomial(600, n_tokens / n_tokens.sum(), size=400))
    assert np.isfinite(mu_sigma_B2).all()
    assert (mu_sigma_B2[:, 1] > 0).all()
    assert np.isfinite(derived(mu_sigma_B2[:, 0], mu_sigma_B2[:, 1], 5000).cross_entropy_nats).all()
