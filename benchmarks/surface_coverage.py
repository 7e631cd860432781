"""Measures how often the 95 % intervals of a surface cover the truth, on runs drawn from the law of arXiv 2203.15556.

A grid has every size with every number of tokens, and `ratios` every size with 5 to 160 tokens per parameter. ln y of a
run scatters by `scatter`; surfaces are fitted by log_huber with delta = 1e-3 and 200 resamples of the runs.
`checkpoints` have four points a run, which move together. On collinear designs (20 tokens per parameter, exactly or
within 5 %) a new run near the line is predicted.

    .venv/bin/python benchmarks/surface_coverage.py [DRAWS, default 200]
"""

import math
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rbpx.laws.surface.averaged import predict_on_line
from rbpx.laws.surface.design import judge_design
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.surface import optimum
from tests.support.surfaces import BUDGET, NEW, TRUE, Drawn, draw, grid, law, ratios, straight, true_optimum

GOOD = {
    "grid 4 x 4": (grid(4, 4), {}),
    "grid 5 x 4": (grid(5, 4), {}),
    "ratios 4 x 4": (ratios(4, 4), {}),
    "ratios 6 x 4": (ratios(6, 4), {}),
    "ratios 6 x 4, t of 3": (ratios(6, 4), {"tails": 3.0}),
    "grid 5 x 4, checkpoints": (grid(5, 4), {"checkpoints": 4}),
}
LINES = {"16 runs on a line": straight(16), "16 runs within 5 %": straight(16, 0.05)}


def held(drawn: Drawn, n_replicates: int = 200) -> dict[str, bool]:
    """Whether each interval of a fit contains the truth: constants, the optimum of a budget, predictions, a new run."""
    fit = fit_surface(drawn.runs, n_replicates=n_replicates)
    of = {name: (fit.constants[name], value) for name, value in TRUE.items()}
    best = optimum(fit.surface, BUDGET)
    S = true_optimum(BUDGET)
    of["S_opt"] = (best.S, S)
    of["D_opt"] = (best.D, BUDGET / 6 / S)
    for name, at in (("inside", (1e8, 5e9)), ("beyond", NEW)):
        of[name] = (fit.surface.predict(*at), float(law(*(np.array([each]) for each in at))[0]))
    of["new_run"] = (fit.surface.predict(*drawn.new, new_run=True), drawn.new_y)
    # An end that is not known is as far away as can be.
    return {
        name: (-math.inf if each.lo is None else each.lo) <= truth <= (math.inf if each.hi is None else each.hi)
        for name, (each, truth) in of.items()
    }


def held_on_line(drawn: Drawn) -> bool:
    """Whether the prediction near the line of a collinear design contains the new run."""
    design = judge_design(drawn.runs.S_N, drawn.runs.D_N)
    on_line = predict_on_line(drawn.runs, design, *drawn.new).y
    return on_line.ends[0] <= drawn.new_y <= on_line.ends[1]


def main(draws: int) -> None:
    """Print a row for each design and scatter."""
    names = ("A", "B", "E", "alpha", "beta", "S_opt", "D_opt", "inside", "beyond", "new_run")
    print(f"| {draws} draws | scatter | " + " | ".join(names) + " | CPU s a draw |")
    print("|---" * (len(names) + 3) + "|")
    for scatter in (0.01, 0.003):
        for place, (name, (design, options)) in enumerate(GOOD.items()):
            start = time.process_time()
            rows = [held(draw((seed, place), design, scatter, **options)) for seed in range(draws)]
            seconds = (time.process_time() - start) / draws
            shares = " | ".join(f"{np.mean([row[each] for row in rows]):.3f}" for each in names)
            print(f"| {name} | {scatter} | {shares} | {seconds:.2f} |", flush=True)
    for name, design in LINES.items():
        for scatter in (0.003, 0.01):
            share = np.mean([held_on_line(draw((seed, 7), design, scatter)) for seed in range(draws)])
            print(f"| {name} | {scatter} |" + " |" * (len(names) - 1) + f" {share:.3f} | |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
