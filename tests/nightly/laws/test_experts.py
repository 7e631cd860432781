"""How often intervals of laws in active and in all parameters hold them."""

import numpy as np

from rbpx.laws.experts import compare_sizes
from rbpx.laws.numeric import Floats

N, E = (each.ravel() for each in np.meshgrid([1e7, 3e7, 1e8, 3e8, 1e9], [1, 4, 16, 64]))


def drawn(noise: float, seed: int = 0) -> Floats:
    """Losses of a bilinear law."""
    ln_y = 2.6 - 0.085 * np.log(N) - 0.08 * np.log(E) + 0.003 * np.log(N) * np.log(E)
    return np.asarray(np.exp(ln_y + noise * np.random.default_rng(seed).standard_normal(len(N))))


def test_intervals_of_a_drawn_law_hold_it_at_their_rate() -> None:
    truth, held = {"b": -0.085, "c": -0.08, "d": 0.003}, {"b": 0, "c": 0, "d": 0}
    n_draws = 100
    for seed in range(n_draws):
        found = compare_sizes(N, N * (1 + E) / 2, E, drawn(0.005, seed), n_replicates=200, seed=seed)
        assert found is not None
        for name, value in truth.items():
            lo, hi = found["laws"][-1]["constants"][name].ends or (np.nan, np.nan)
            held[name] += lo <= value <= hi
    # of four numbers of experts the bootstrap's intervals are somewhat narrow
    assert {name: 0.8 <= n / n_draws <= 0.99 for name, n in held.items()} == dict.fromkeys(truth, True)
