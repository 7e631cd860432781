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


def example(seed: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n_tokens = rng.poisson(1000 / np.arange(1, shape[-1] + 1) ** 1.3, size=shape).astype(np.float64)
    n_tokens[..., 0] += 1
    return n_tokens, -n_tokens * rng.uniform(0.2, 6.0, size=shape)


def test_the_terms_equal_plain_loops_and_add_up_to_the_cross_entropy() -> None:
    n_tokens, sum_logprob = example(0, (300,))
    assert (n_tokens == 0).any()
    terms = decompose(n_tokens, sum_logprob)
    entropy, divergence, confidence, ce = by_loops(n_tokens.tolist(), sum_logprob.tolist())
    assert float(terms.error_entropy) == pytest.approx(entropy, rel=1e-13)
    assert float(terms.self_alignment) == pytest.approx(divergence, rel=1e-12)
    assert float(terms.confidence) == pytest.approx(confidence, rel=1e-13)
    assert float(terms.cross_entropy_nats) == pytest.approx(ce, rel=1e-13)


def test_the_identity_is_exact_to_rounding_under_every_resample() -> None:
    terms = decompose(*example(1, (50, 400)))
    total = terms.error_entropy + terms.self_alignment + terms.confidence
    assert total.shape == (50,)
    # Three sums of at most 400 terms below 10 nats: rounding stays below 400 * 10 * 2^-52 ~ 1e-12.
    assert np.abs(total - terms.cross_entropy_nats).max() < 1e-12


def test_two_equal_ranks_give_numbers_worked_by_hand() -> None:
    # P = (1/2, 1/2), scores 1/2 and 1/4: Q = (2/3, 1/3), H = ln 2, confidence = -ln(3/4), CE = 3/2 ln 2.
    terms = decompose([2, 2], [2 * math.log(0.5), 2 * math.log(0.25)])
    assert float(terms.error_entropy) == pytest.approx(math.log(2), rel=1e-15)
    assert float(terms.self_alignment) == pytest.approx(0.5 * math.log(9 / 8), rel=1e-14)
    assert float(terms.confidence) == pytest.approx(math.log(4 / 3), rel=1e-15)
    assert float(terms.cross_entropy_nats) == pytest.approx(1.5 * math.log(2), rel=1e-15)


def test_a_single_rank_has_no_entropy_and_no_misalignment() -> None:
    terms = decompose([7], [-3.5])
    assert (float(terms.error_entropy), float(terms.self_alignment)) == (0.0, 0.0)
    assert float(terms.confidence) == float(terms.cross_entropy_nats) == 0.5


def test_very_small_scores_do_not_underflow() -> None:
    terms = decompose([1, 1], [-2000.0, -2001.0])
    assert float(terms.confidence) == pytest.approx(2000.0 - math.log1p(math.exp(-1.0)), rel=1e-15)
