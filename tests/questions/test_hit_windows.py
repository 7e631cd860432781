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


def markov_hits(n: int, p: float, rho: float, seed: int) -> np.ndarray:
    """A two-state chain with share of hits p and autocorrelation rho^lag: a token copies the one before, or is new."""
    rng = np.random.default_rng(seed)
    fresh = rng.uniform(size=n) < p
    renewed = np.flatnonzero(np.r_[True, rng.uniform(size=n - 1) >= rho])
    return fresh[renewed[np.searchsorted(renewed, np.arange(n), side="right") - 1]]


@pytest.mark.parametrize("p", [0.0, 0.3, 0.7, 1.0])
def test_windows_are_those_that_a_loop_over_all_of_them_counts(p: float) -> None:
    documents = random_documents(0, p=p)
    hit_DN, total_DN = windows_of(documents, LENGTHS)
    for d, hits in enumerate(documents):
        for n, N in enumerate(LENGTHS):
            seen = [all(hits[i : i + N]) for i in range(len(hits) - N + 1)]
            assert (hit_DN[d, n], total_DN[d, n]) == (sum(seen), len(seen))


def test_a_document_of_exactly_n_tokens_gives_one_window() -> None:
    windows = windows_of([[True] * 5, [True] * 4 + [False], [True] * 4], [5])
    assert windows[1].tolist() == [[1], [1], [0]]
    assert windows[0].tolist() == [[1], [0], [0]]
    assert window_share(windows).tolist() == [0.5]


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


def test_a_share_of_all_documents_is_that_of_weights_of_one() -> None:
    windows = windows_of(random_documents(3), LENGTHS)
    np.testing.assert_array_equal(window_share(windows), window_share(windows, np.ones((1, 12)))[0])


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


def test_documents_that_differ_correlate_at_every_lag() -> None:
    """Half the documents all hits, half none: whatever the lag, one token tells the other."""
    assert autocorrelation([[True] * 20, [False] * 20], 19) == pytest.approx(np.ones(19), abs=1e-12)


def test_independent_hits_are_predicted_by_rbp_to_the_power_n() -> None:
    p, rng = 0.8, np.random.default_rng(5)
    documents = [(rng.uniform(size=500) < p).tolist() for _ in range(1000)]
    lengths = [1, 2, 5, 10, 20]
    measured, rho_L = window_share(windows_of(documents, lengths)), autocorrelation(documents, 19)
    # 500,000 tokens: rho has standard error 0.0014, and p_20 = 0.0115 one of about 0.0003.
    assert measured == pytest.approx(np.power(p, lengths), rel=0.1)
    assert np.abs(rho_L).max() < 5 * 0.0014
    assert effective_tokens(rho_L, lengths) == pytest.approx(lengths, rel=0.03)
    for predicted in (p ** effective_tokens(rho_L, lengths), beta_binomial_share(p, rho_L, lengths)):
        assert predicted == pytest.approx(np.power(p, lengths), rel=0.1)


def test_a_markov_chain_has_its_known_correlation_and_windows() -> None:
    p, rho, n_documents = 0.6, 0.5, 400
    documents = [markov_hits(500, p, rho, seed).tolist() for seed in range(n_documents)]
    rho_L = autocorrelation(documents, 9)
    assert rho_L == pytest.approx(rho ** np.arange(1, 10), abs=0.015)
    lengths = [1, 2, 5, 10]
    exact = [p * (p + (1 - p) * rho) ** (N - 1) for N in lengths]
    assert window_share(windows_of(documents, lengths)) == pytest.approx(exact, rel=0.05)
    # The variance of a sum of N tokens of this chain, summed up in closed form.
    N_eff = [N / (1 + 2 * rho / (1 - rho) * (1 - (1 - rho**N) / (N * (1 - rho)))) for N in lengths]
    assert effective_tokens(rho ** np.arange(1, 10), lengths) == pytest.approx(N_eff, rel=1e-12)
    assert effective_tokens(rho_L, lengths) == pytest.approx(N_eff, rel=0.03)


def test_beta_binomial_is_the_moment_of_a_beta_distribution() -> None:
    """With one rho at all lags, a and b do not depend on N, and p_N is the N-th moment of Beta(a, b)."""
    a, b, lengths = 3.0, 1.5, [1, 2, 7, 40]
    rbp, rho = a / (a + b), 1 / (a + b + 1)
    moments = [
        math.exp(math.lgamma(a + N) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(a + b + N)) for N in lengths
    ]
    assert beta_binomial_share(rbp, np.full(39, rho), lengths) == pytest.approx(moments, rel=1e-12)


def test_beta_binomial_predicts_documents_of_different_ease_exactly_and_effective_tokens_do_not() -> None:
    rng, lengths = np.random.default_rng(6), [5, 10, 50]
    documents = [(rng.uniform(size=500) < ease).tolist() for ease in rng.beta(6, 2, size=2000)]
    measured, rho_L = window_share(windows_of(documents, lengths)), autocorrelation(documents, 49)
    rbp = float(np.mean(np.concatenate(documents)))
    assert beta_binomial_share(rbp, rho_L, lengths) == pytest.approx(measured, rel=0.1)
    assert rbp ** effective_tokens(rho_L, lengths)[-1] > 3 * measured[-1]


def test_beta_binomial_at_the_edges_of_correlation() -> None:
    assert beta_binomial_share(0.5, np.zeros(9), [10])[0] == pytest.approx(0.5**10, rel=1e-12)
    assert beta_binomial_share(0.5, np.ones(9), [10]) == pytest.approx([0.5])
    # Two hits among four tokens drawn without replacement: rho = -1/3, and no window of three hits.
    assert beta_binomial_share(0.5, np.full(9, -1 / 3), [2, 3]) == pytest.approx([1 / 6, 0], abs=1e-15)
    assert np.isnan(beta_binomial_share(0.5, np.full(9, -1 / 3), [5])).all()
    assert np.isnan(effective_tokens(np.full(9, -1 / 3), [5])).all()
