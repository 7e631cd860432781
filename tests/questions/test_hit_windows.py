"""Windows of hits and their correlation, against loops over every window and every pair, and against closed forms."""

import math

import numpy as np
import pytest

from rbpx.laws.intervals.estimate import document_weights
from rbpx.questions.emergence import windows as of

LENGTHS = [1, 2, 5, 10, 50, 100]


def windows_of(documents: list[list[bool]], lengths: list[int]) -> tuple[np.ndarray, np.ndarray]:
    hits, n_D = np.array([hit for each in documents for hit in each], dtype=bool), np.array([*map(len, documents)])
    return of.count_windows(hits, np.repeat(np.arange(len(n_D)), n_D), n_D, lengths)


def autocorrelation(documents: list[list[bool]], max_lag: int) -> np.ndarray:
    hits, n_D = np.array([hit for each in documents for hit in each], dtype=bool), np.array([*map(len, documents)])
    return of.autocorrelation(hits, n_D, max_lag)


def window_share(windows: tuple[np.ndarray, np.ndarray], weights_BD: np.ndarray | None = None) -> np.ndarray:
    return of.window_share(*windows, weights_BD)


def beta_binomial_share(rbp: float, rho_L: np.ndarray, lengths: list[int]) -> np.ndarray:
    return np.array([of.dependent_hits(rbp, rho_L, N)[0] for N in lengths])


def effective_tokens(rho_L: np.ndarray, lengths: list[int]) -> np.ndarray:
    return np.array([of.dependent_hits(0.5, rho_L, N)[1] for N in lengths])


def random_documents(seed: int, n: int = 12, p: float = 0.7) -> list[list[bool]]:
    rng = np.random.default_rng(seed)
    return [(rng.uniform(size=rng.integers(0, 70)) < p).tolist() for _ in range(n)]


@pytest.mark.parametrize("p", [0.0, 0.3, 0.7, 1.0])
def test_windows_are_those_that_a_loop_over_all_of_them_counts(p: float) -> None:
    documents = random_documents(0, p=p)
    hit_DN, total_DN = windows_of(documents, LENGTHS)
    for d, hits in enumerate(documents):
        for n, N in enumerate(LENGTHS):
            seen = [all(hits[i : i + N]) for i in range(len(hits) - N + 1)]
            assert (hit_DN[d, n], total_DN[d, n]) == (sum(seen), len(seen))


def test_a_window_longer_than_every_document_has_no_share() -> None:
    windows = windows_of([[True] * 5, [True] * 4, []], [5, 6])
    assert windows[1][:, 1].tolist() == [0, 0, 0]
    assert np.isnan(window_share(windows)).tolist() == [False, True]
    weights_BD = np.array([[1, 1, 1], [0, 1, 2]])  # the second draws no document of five tokens
    assert np.isnan(window_share(windows, weights_BD)).tolist() == [[False, True], [True, True]]


def test_a_resample_is_the_share_of_the_documents_it_draws() -> None:
    documents = random_documents(1)
    weights_BD = document_weights(len(documents), 20, seed=2)
    p_BN = window_share(windows_of(documents, LENGTHS), weights_BD)
    for weights_D, p_N in zip(weights_BD, p_BN, strict=True):
        drawn = [hits for hits, times in zip(documents, weights_D, strict=True) for _ in range(times)]
        np.testing.assert_array_equal(p_N, window_share(windows_of(drawn, LENGTHS)))


# --------------------------------------------------------------------------------------------------- correlation


def test_autocorrelation_is_that_of_a_loop_over_all_pairs() -> None:
    documents = random_documents(4)
    p = sum(map(sum, documents)) / sum(map(len, documents))
    rho_L = autocorrelation(documents, 80)
    for lag in range(1, 81):
        pairs = [(hits[i] - p) * (hits[i + lag] - p) for hits in documents for i in range(len(hits) - lag)]
        expected = sum(pairs) / len(pairs) / (p * (1 - p)) if pairs else math.nan
        assert rho_L[lag - 1] == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert np.isnan(rho_L[-1])


@pytest.mark.parametrize("hit", [True, False])
def test_hits_that_never_vary_have_no_correlation(hit: bool) -> None:
    rho_L = autocorrelation([[hit] * 9], 3)
    assert np.isnan(rho_L).all()
    assert np.isnan(effective_tokens(rho_L, [1, 2])).tolist() == [False, True]
    assert beta_binomial_share(float(hit), rho_L, [1, 2, 4]).tolist() == [float(hit)] * 3


def test_tokens_count_as_many_as_a_markov_chain_has_in_closed_form() -> None:
    """The variance of a sum of N tokens of a chain whose correlation is rho^lag, summed up."""
    rho, lengths = 0.5, [1, 2, 5, 10]
    N_eff = [N / (1 + 2 * rho / (1 - rho) * (1 - (1 - rho**N) / (N * (1 - rho)))) for N in lengths]
    assert effective_tokens(rho ** np.arange(1, 10), lengths) == pytest.approx(N_eff, rel=1e-12)


def test_beta_binomial_is_the_moment_of_a_beta_distribution() -> None:
    """With one rho at all lags, a and b do not depend on N, and p_N is the N-th moment of Beta(a, b)."""
    a, b, lengths = 3.0, 1.5, [1, 2, 7, 40]
    rbp, rho = a / (a + b), 1 / (a + b + 1)
    moments = [
        math.exp(math.lgamma(a + N) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(a + b + N)) for N in lengths
    ]
    assert beta_binomial_share(rbp, np.full(39, rho), lengths) == pytest.approx(moments, rel=1e-12)


def test_beta_binomial_at_the_edges_of_correlation() -> None:
    assert beta_binomial_share(0.5, np.zeros(9), [10])[0] == pytest.approx(0.5**10, rel=1e-12)
    assert beta_binomial_share(0.5, np.ones(9), [10]) == pytest.approx([0.5])
    # Two hits among four tokens drawn without replacement: rho = -1/3, and no window of three hits.
    assert beta_binomial_share(0.5, np.full(9, -1 / 3), [2, 3]) == pytest.approx([1 / 6, 0], abs=1e-15)
    assert np.isnan(beta_binomial_share(0.5, np.full(9, -1 / 3), [5])).all()
    assert np.isnan(effective_tokens(np.full(9, -1 / 3), [5])).all()
