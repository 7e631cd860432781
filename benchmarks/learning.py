"""Measures what times of drawn tokens say of the law of RBP_k.

Worlds of hits at the eight points of a raw training of the ladder: times that fall as a power of exponent c = .3, some
of them never, hits that flicker with a constant chance, times that are lognormal instead.

    python benchmarks/learning.py [DRAWS, default 20]
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.questions.learning.hits import hit_times
from rbpx.runs.tokens import Tokens

POINTS = np.log([106e3, 205e3, 401e3, 778e3, 1.5e6, 2.9e6, 5.6e6, 10.8e6])
C = 0.3


def tail(time_M: np.ndarray, flicker: float, rng: np.random.Generator) -> dict[str, Any]:
    """What the question finds of tokens that are hits from their times on, but for some chance at each point."""
    hit_MT = (POINTS >= time_M[:, None]) ^ (rng.random((len(time_M), len(POINTS))) < flicker)
    M = np.arange(len(time_M))
    rank_MT = np.where(hit_MT, 1, 99).astype(np.float32)
    tokens = Tokens(POINTS, M // 100 << 41 | M << 21, rank_MT, rank_MT, np.ones((1, len(M) // 100)), 1)
    return next(row for row in hit_times(tokens, 1, 0, {}) if row["kind"] == "tail")


def worlds(draws: int) -> None:
    """What is found in each world, means over draws."""

    def power(rng: np.random.Generator, never: float, early: float) -> np.ndarray:
        time_M = POINTS[0] + rng.exponential(1 / C, 20_000)
        time_M[rng.random(20_000) < early] = -np.inf
        return np.where(rng.random(20_000) < never, np.inf, time_M)

    cases = {
        "power": lambda rng: tail(power(rng, 0, 0), 0, rng),
        "power, half known before": lambda rng: tail(power(rng, 0, 0.5), 0, rng),
        "power, a third never": lambda rng: tail(power(rng, 1 / 3, 0), 0, rng),
        "power, 3 % flicker": lambda rng: tail(power(rng, 0, 0), 0.03, rng),
        "power, 10 % flicker": lambda rng: tail(power(rng, 0, 0), 0.1, rng),
        "lognormal": lambda rng: tail(rng.normal(POINTS.mean(), 2.0, 20_000), 0, rng),
    }
    names = ("c", "c_with_never", "never", "alpha", "alpha_of_tail")
    rest = ("misses_rms", "law_rms", "misses_error", "law_error", "tail_error")
    print(f"{'world':26}" + "".join(f"{name:>14}" for name in (*names, *rest)))
    for name, of in cases.items():
        found = [of(np.random.default_rng(seed)) for seed in range(draws)]
        means = [np.mean([each[key] for each in found]) for key in (*names, *rest)]
        print(f"{name:26}" + "".join(f"{mean:14.3f}" for mean in means))


if __name__ == "__main__":
    worlds(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
