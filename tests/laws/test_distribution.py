"""Rank distributions over 1..V, against explicit probabilities, closed forms and a second search for the maximum.

Shapes: V ranks of the vocabulary, M parameters.
"""

import math

import numpy as np
import pytest

from tests.support.rank_models import SAMPLES, TRUE, drawn, number, numbers, other_maximum, plain_ln_p
from tests.support.singly import fit_distribution


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", TRUE)
def test_another_search_finds_the_same_maximum_and_plain_sums_the_same_numbers(name: str, sample: str) -> None:
    rank, n_tokens = SAMPLES[sample]
    n, m, V = n_tokens.sum(), len(TRUE[name]), 400
    fit = fit_distribution(name, rank, n_tokens, V)
    assert fit.distribution == name
    plain = plain_ln_p(name, fit.params, V)
    loglik = sum(count * plain[x - 1] for x, count in zip(rank.tolist(), n_tokens.tolist(), strict=True))
    assert number(fit.loglik) == pytest.approx(loglik, rel=1e-9)
    assert number(fit.loglik) == pytest.approx(other_maximum(name, rank, n_tokens, V), abs=1e-5)
    assert number(fit.aic) == pytest.approx(2 * m - 2 * loglik, rel=1e-9)
    assert number(fit.bic) == pytest.approx(m * math.log(n) - 2 * loglik, rel=1e-9)
    seen, model, gap = 0.0, 0.0, 0.0
    for x in range(1, V + 1):
        seen += n_tokens[rank == x].sum() / n
        model += math.exp(plain[x - 1])
        gap = max(gap, abs(seen - model))
    assert number(fit.distance) == pytest.approx(gap, abs=1e-9)


def test_mu_and_sigma_are_beta_and_gamma_in_other_words() -> None:
    for name in ("lognormal_full", "lognormal_inflated"):
        params = fit_distribution(name, *SAMPLES["lognormal"], 400).params
        mu, sigma = number(params["mu"]), number(params["sigma"])
        assert 1 - mu / sigma**2 == pytest.approx(number(params["beta"]), rel=1e-10)
        assert 1 / (2 * sigma**2) == pytest.approx(number(params["gamma"]), rel=1e-10)


@pytest.mark.parametrize("name", TRUE)
def test_the_order_of_ranks_and_split_counts_do_not_matter(name: str) -> None:
    rank, n_tokens = drawn(name, 400, 3000, seed=5)
    plain = fit_distribution(name, rank, n_tokens, 400)
    half = n_tokens // 3
    split = fit_distribution(name, np.r_[rank[::-1], 400, rank], np.r_[(n_tokens - half)[::-1], 0, half], 400)
    assert split.status is plain.status
    assert numbers(split) == pytest.approx(numbers(plain), rel=1e-9)
    for key in TRUE[name]:
        assert number(split.params[key]) == pytest.approx(number(plain.params[key]), rel=1e-6)
