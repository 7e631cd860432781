"""The error-entropy decomposition, against plain loops over ranks and numbers worked by hand."""

import math

import numpy as np
import pytest

from rbpx.laws.ranks.error_entropy import decompose


def by_loops(n_tokens: list[float], sum_logprob: list[float]) -> tuple[float, float, float, float]:
    n = sum(n_tokens)
    seen = [(c, s) for c, s in zip(n_tokens, sum_logprob, strict=True) if c > 0]
    scores = [math.exp(s / c) for c, s in seen]
    p = [c / n for c, _ in seen]
    q = [score / sum(scores) for score in scores]
    entropy = -sum(a * math.log(a) for a in p)
    divergence = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    return entropy, divergence, -math.log(sum(scores)), -sum(s for _, s in seen) / n


def test_the_terms_equal_plain_loops_and_add_up_to_the_cross_entropy() -> None:
    rng = np.random.default_rng(0)
    n_BR = rng.poisson(1000 / np.arange(1, 301) ** 1.3, size=(3, 300)).astype(np.float64)
    assert (n_BR == 0).any()
    logprob_BR = -n_BR * rng.uniform(0.2, 6.0, size=(3, 300))
    terms = decompose(n_BR, logprob_BR)
    found = terms.error_entropy, terms.self_alignment, terms.confidence, terms.cross_entropy_nats
    for of, n_R, logprob_R in zip(np.transpose(found), n_BR, logprob_BR, strict=True):
        assert of == pytest.approx(by_loops(n_R.tolist(), logprob_R.tolist()), rel=1e-12)
        assert of[:3].sum() == pytest.approx(of[3], abs=1e-12)


def test_a_single_rank_has_no_entropy_and_no_misalignment() -> None:
    terms = decompose([7], [-3.5])
    assert (float(terms.error_entropy), float(terms.self_alignment)) == (0.0, 0.0)
    assert float(terms.confidence) == float(terms.cross_entropy_nats) == 0.5


def test_very_small_scores_do_not_underflow() -> None:
    terms = decompose([1, 1], [-2000.0, -2001.0])
    assert float(terms.confidence) == pytest.approx(2000.0 - math.log1p(math.exp(-1.0)), rel=1e-15)
