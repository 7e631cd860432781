"""Where a rank distribution has no maximum inside its bounds, or no counts to fit: what its status says."""

import math

import numpy as np
import pytest

from rbpx.laws.ranks.distribution import DISTRIBUTIONS, ln_shares
from rbpx.status import Status
from tests.support.rank_models import SAMPLES, TRUE, number, numbers
from tests.support.singly import fit_distribution


@pytest.mark.parametrize("name", ["lognormal_full", "lognormal_inflated"])
def test_weights_that_bend_upwards_are_a_power_law(name: str) -> None:
    x = np.arange(1, 801, dtype=np.float64)
    weight = x**-1.9 * np.exp(0.07 * np.log(x) ** 2)
    first = 0 if name == "lognormal_full" else 1
    if first:
        weight[0] = 0.5 * weight.sum()
    fit = fit_distribution(name, x, 1e5 * weight, 800)
    assert fit.status is Status.at_bound
    assert (fit.params["mu"], fit.params["sigma"], fit.params["gamma"]) == (None, None, 0.0)
    assert number(fit.params["gamma_unconstrained"]) == pytest.approx(-0.07, abs=1e-7)
    # The beta of a power law gives the mean of ln x that was seen: bisection on a plain sum.
    t, w = np.log(x[first:]), weight[first:]
    lo, hi = 0.0, 4.0
    for _ in range(60):
        middle = (lo + hi) / 2
        power = np.exp(-middle * t)
        lo, hi = (middle, hi) if float(power @ t / power.sum()) > float(w @ t / w.sum()) else (lo, middle)
    assert number(fit.params["beta"]) == pytest.approx(lo, abs=1e-7)


def test_a_tail_heavier_than_a_power_law_wants_no_cutoff() -> None:
    cut, plain = (fit_distribution(name, *SAMPLES["heavy"], 400) for name in ("power_law_cutoff", "power_law"))
    assert (cut.status, cut.params["rate"]) == (Status.at_bound, 0.0)
    assert number(cut.params["beta"]) == pytest.approx(number(plain.params["beta"]), abs=1e-5)
    assert number(cut.loglik) == pytest.approx(number(plain.loglik), abs=1e-6)
    assert number(cut.aic) == pytest.approx(number(plain.aic) + 2, abs=1e-5)


@pytest.mark.parametrize("name", [*TRUE, "lognormal_paper"])
def test_half_ranks_and_too_few_ranks_are_a_status(name: str) -> None:
    for rank, n_tokens, status in (
        ([1.0, 2.5, 4.0, 9.0], [1, 1, 1, 1], Status.not_known),
        ([1.0, 3.0, 3.0], [1, 1, 1], Status.too_few_tokens),
        ([], [], Status.too_few_tokens),
        ([1, 2, 3, 4], [5, 5, 0, 0], Status.too_few_tokens),
    ):
        fit = fit_distribution(name, rank, n_tokens, 100)
        assert fit.status is status
        assert numbers(fit) == [None] * 4
        assert {value for key, value in fit.params.items() if key not in ("V", "n_tokens")} == {None}


@pytest.mark.parametrize("name", [*TRUE, "lognormal_paper"])
def test_impossible_counts_are_a_mistake_of_the_caller(name: str) -> None:
    wrong = [([1, 2, 3], [1, -1, 1]), ([1, 2, 3], [1, 1]), ([0, 1, 2], [1, 1, 1]), ([1, 2, 101], [1, 1, 1])]
    for rank, n_tokens in wrong[: 3 if name == "lognormal_paper" else 4]:  # which knows no V
        with pytest.raises(ValueError, match=r"rank|count"):
            fit_distribution(name, rank, n_tokens, 100)


def test_odd_small_samples_end_in_finite_numbers_or_none() -> None:
    rng = np.random.default_rng(7)
    for _ in range(6):
        rank = np.r_[1, rng.choice(np.arange(2, 60), size=rng.integers(2, 9), replace=False)]
        n_tokens = rng.choice([1, 2, 5, 100], size=len(rank))
        most = sum(count * math.log(count / n_tokens.sum()) for count in n_tokens.tolist())
        for name in DISTRIBUTIONS:
            fit = fit_distribution(name, rank, n_tokens, 60)
            if fit.loglik is None:
                assert numbers(fit) == [None] * 4
                assert fit.status in (Status.not_converged, Status.at_bound, Status.too_few_tokens)
                continue
            known = [*fit.params.values(), *numbers(fit)]
            assert all(value is None or math.isfinite(value) for value in known)
            # No distribution is more likely than the observed shares themselves.
            assert fit.loglik <= most + 1e-9
            assert 0 <= number(fit.distance) <= 1
            assert float(n_tokens @ ln_shares(fit, 60)[rank - 1]) == pytest.approx(fit.loglik, rel=1e-9)
