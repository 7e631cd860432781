"""Measures what chosen runs are worth: runs of drawn worlds, and as many FLOPs again spent by plan and at random.

Each world has an iso or grid design (`benchmarks/surface_predictions.py`). Asked for is ln y of the best run with ten
times the most compute. What all runs there took is spent again: as the best use of a budget, as what narrows most per
FLOP (of `decide next=8 flops=`), at random among the same candidates while affordable, and as one run of all of it
with the median tokens per parameter. The new runs are drawn from the world with its scatter, and ln y of the best is
predicted again, at the true best size: its |error|, half of its interval, and whether that held, are means over draws
and worlds.

    python benchmarks/design.py [DRAWS, default 4] [WORLD ...]
"""

import math
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.surface_predictions import WORLDS, draw
from rbpx.laws.surface.averaged import predict_averaged
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.next_runs import best_values, candidates, next_runs
from rbpx.laws.surface.runs import Runs

Floats = NDArray[np.float64]
SCATTER = 0.004
SPENT = ("nothing", "budget", "per FLOP", "at random", "one run")
MOST = 8  # runs


def law(world: str, S: Floats, D: Floats, runs: Runs) -> Floats:
    """Ln y of a world at points, one by one: where it bends at the medians of all, these stay those of the runs."""
    s, d = np.log(np.repeat(runs.S_N, 2)), np.log(np.repeat(runs.D_N, 2))
    rng = np.random.default_rng(0)
    at = zip(np.log(S).tolist(), np.log(D).tolist(), strict=True)
    return np.array([WORLDS[world](np.append(s, of_s), np.append(d, of_d), rng)[-1] for of_s, of_d in at])


def chosen(
    way: str, fits: list[Surface], runs: Runs, flops: float, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """S and D of the new runs."""
    if way == "nothing":
        return []
    if way == "one run":
        ratio = float(np.median(runs.D_N / runs.S_N))
        S = math.sqrt(flops / 6 / ratio)
        return [(S, S * ratio)]
    if way == "at random":
        S_M, D_M = candidates(runs, flops)
        left, found = flops, []
        while len(found) < MOST and (can := np.flatnonzero(6 * S_M * D_M <= left)).size:
            at = rng.choice(can)
            found.append((float(S_M[at]), float(D_M[at])))
            left -= 6 * S_M[at] * D_M[at]
        return found
    wanted = best_values(runs, [10 * float((6 * runs.S_N * runs.D_N).max())])
    plans = {plan.name: plan.runs for plan in next_runs(fits, wanted, MOST, flops)}
    return [(run["S"], run["D"]) for run in plans["budget" if way == "budget" else "per_flop"]]


def main(draws: int, worlds: list[str]) -> None:
    """Print the table."""
    found: dict[str, list[tuple[float, float, bool, int]]] = {way: [] for way in SPENT}
    for world in worlds or [name for name in WORLDS if name != "smooth misfit"]:
        for design in ("iso", "grid"):
            for seed in range(draws):
                drawn = draw(world, design, SCATTER, seed)
                rng = np.random.default_rng((seed, 7))
                runs, C_N = drawn.runs, 6 * drawn.S * drawn.D
                C = 10 * float(C_N.max())
                along = np.geomspace(runs.S_N.min() / 3, runs.S_N.max() * 30, 400)
                ln_y = law(world, along, C / 6 / along, runs)
                best, truth = float(along[ln_y.argmin()]), float(ln_y.min())
                fits = [fit_surface(runs, form, n_replicates=0) for form in ("chinchilla", "kaplan")]
                for way in SPENT:
                    new = np.array(chosen(way, fits, runs, float(C_N.sum()), rng)).reshape(-1, 2)
                    ln_new = law(world, new[:, 0], new[:, 1], runs) + SCATTER * rng.standard_normal(len(new))
                    after = Runs.of(
                        np.append(runs.S_N, new[:, 0]),
                        np.append(runs.D_N, new[:, 1]),
                        np.append(runs.y_N, np.exp(ln_new)),
                    )
                    again = [fit_surface(after, form, n_replicates=0) for form in ("chinchilla", "kaplan")]
                    (answer,) = predict_averaged(again, [(best, C / 6 / best)], ())
                    y, lo, hi = (math.log(each) for each in (answer.y.value, answer.y.lo, answer.y.hi))
                    found[way].append((abs(y - truth), (hi - lo) / 2, lo <= truth <= hi, len(new)))
    print(f"{'spent':<10} {'runs':>5} {'|error|':>8} {'half width':>10} {'inside':>7}  of {len(found['nothing'])}")
    for way, of in found.items():
        error, half, inside, n = (np.mean(column) for column in zip(*of, strict=True))
        print(f"{way:<10} {n:>5.1f} {error:>8.2%} {half:>10.2%} {inside:>7.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 4, sys.argv[2:])
