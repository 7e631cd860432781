"""Neighbours that are alike, against permutations and sums written out."""

import numpy as np
import pytest

from rbpx.runs.documents import neighbours_p, variance_factor


def ratio(rank_N: np.ndarray) -> float:
    return float(np.sum(np.diff(rank_N) ** 2))


@pytest.mark.parametrize("seed", range(4))
def test_the_chance_of_neighbours_so_alike_is_that_of_shuffled_ranks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    value_N = np.exp(3 * (rng.normal(size=40) + 0.03 * seed * np.arange(40)))  # no moments that a normal law could use
    rank_N = np.argsort(np.argsort(value_N)).astype(float)
    shuffled = np.array([ratio(rng.permutation(rank_N)) for _ in range(4000)])
    assert neighbours_p(value_N) == pytest.approx(np.mean(shuffled <= ratio(rank_N)), abs=0.02)


def test_equal_values_share_their_rank() -> None:
    assert neighbours_p(np.repeat([5.0, 1.0, 9.0, 2.0], 10)) < 1e-6
    assert neighbours_p(np.tile([5.0, 1.0], 20)) > 0.999


def test_how_much_more_a_sum_varies_is_a_weighted_sum_of_products_of_neighbours() -> None:
    rng = np.random.default_rng(6)
    value_N = np.convolve(rng.normal(size=304), [1, 0.8, 0.6, 0.4, 0.2])[4:304]
    value_N -= value_N.mean()
    n_lags, squares = 5, sum(v * v for v in value_N)  # 4 (300 / 100)^(2 / 9) = 5.1
    more = 0.0
    for lag in range(1, n_lags + 1):
        products = sum(value_N[i] * value_N[i + lag] for i in range(len(value_N) - lag))
        more += 2 * (1 - lag / (n_lags + 1)) * products / squares
    assert more > 1
    assert variance_factor(value_N) == pytest.approx(1 + more)
    assert variance_factor(np.tile([1.0, -1.0], 50)) == 1
