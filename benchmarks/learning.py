"""Measures how long the sigmoids of many tokens take, and what times of drawn tokens say of the law of RBP_k.

First: sigmoids and power laws of single tokens at 8 and 32 points, in blocks, with the memory beyond what the losses
themselves take. Then worlds of hits at the eight points of a raw training of the ladder: times that fall as a power of
exponent c = .3, some of them never, hits that flicker with a constant chance, times that are lognormal instead.

    python benchmarks/learning.py [TOKENS, default 1,000,000] [DRAWS, default 20]
"""

import resource
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.laws.learning.curves import fit_powers, fit_sigmoids
from rbpx.questions.learning.hits import hit_times
from rbpx.runs.tokens import Tokens

POINTS = np.log([106e3, 205e3, 401e3, 778e3, 1.5e6, 2.9e6, 5.6e6, 10.8e6])
C = 0.3


def peak_mib() -> float:
    """The most memory that the process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speed(n: int) -> None:
    """Time and memory of fits to so many tokens."""
    print(f"{'fit':10} {'points':>6} {'tokens':>9} {'wall_s':>7} {'cpu_s':>6} {'more_mib':>8}")
    rng = np.random.default_rng(0)
    for T in (8, 32):
        x_T = np.linspace(POINTS[0], POINTS[-1], T)
        time_M1 = rng.uniform(x_T[0], x_T[-1], (n, 1)).astype(np.float32)
        y_MT = (4 + 3 / (1 + np.exp((x_T.astype(np.float32) - time_M1) / 0.5))).astype(np.float32)
        y_MT += 0.3 * rng.standard_normal(y_MT.shape, np.float32)
        for name, fit in (("sigmoids", fit_sigmoids), ("powers", fit_powers)):
            before, wall, cpu = peak_mib(), perf_counter(), process_time()
            fit(x_T, y_MT)
            took = perf_counter() - wall, process_time() - cpu
            print(f"{name:10} {T:6} {n:9,} {took[0]:7.1f} {took[1]:6.1f} {peak_mib() - before:8.0f}")


def tail(time_M: np.ndarray, flicker: float, rng: np.random.Generator) -> dict[str, Any]:
    """What the question finds of tokens that are hits from their times on, but for some chance at each point."""
    hit_MT = (POINTS >= time_M[:, None]) ^ (rng.random((len(time_M), len(POINTS))) < flicker)
    M = np.arange(len(time_M))
    rank_MT = np.where(hit_MT, 1, 99).astype(np.float32)
    tokens = Tokens(POINTS, M // 100 << 41 | M << 21, rank_MT, rank_MT, np.ones((1, len(M) // 100)), 1)
    return next(row for row in hit_times(tokens, 1, 0) if row["kind"] == "tail")


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
    given = [int(float(word)) for word in sys.argv[1:]]
    speed(given[0] if given else 1_000_000)
    worlds(given[1] if len(given) > 1 else 20)
