"""Runs that are planned, against as many FLOPs at random."""

import math

import numpy as np

from rbpx.laws.surface.averaged import predict_averaged
from rbpx.laws.surface.fit import Surface, fit_surface
from rbpx.laws.surface.next_runs import best_values, candidates, next_runs
from rbpx.laws.surface.runs import Runs
from tests.support.surfaces import draw, law, ratios, true_optimum


def fits_of(runs: Runs) -> list[Surface]:
    return [fit_surface(runs, form, n_replicates=0) for form in ("chinchilla", "kaplan")]


def test_chosen_runs_narrow_more_than_as_many_flops_at_random() -> None:
    widths: dict[str, list[float]] = {"plan": [], "random": []}
    for seed in range(6):
        runs = draw((seed,), ratios(6, 3), 0.004).runs
        flops, rng = float((6 * runs.S_N * runs.D_N).sum()), np.random.default_rng(seed)
        plan = next_runs(fits_of(runs), best_values(runs, [1e22]), 6, flops)[-1]
        at = [(run["S"], run["D"]) for run in plan.runs]
        S_M, D_M = candidates(runs, flops)
        random, left = list[tuple[float, float]](), flops
        while len(random) < 6 and (can := np.flatnonzero(6 * S_M * D_M <= left)).size:
            pick = rng.choice(can)
            random.append((S_M[pick], D_M[pick]))
            left -= 6 * S_M[pick] * D_M[pick]
        for name, new in (("plan", at), ("random", random)):
            S, D = np.array(new).T
            y = np.append(runs.y_N, law(S, D) * np.exp(0.004 * rng.standard_normal(len(S))))
            after = Runs.of(np.append(runs.S_N, S), np.append(runs.D_N, D), y)
            size = true_optimum(1e22)
            (answer,) = predict_averaged(fits_of(after), [(size, 1e22 / 6 / size)], ())
            widths[name].append(math.log(answer.y.hi / answer.y.lo))
    assert np.mean(np.log(widths["plan"])) < np.mean(np.log(widths["random"])) - 0.03
