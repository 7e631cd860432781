"""Reduces sweeps and repeats to one point: the best run of each size and number of tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rbpx.display.frontier import said_of_frontier
from rbpx.errors import number_of
from rbpx.laws.names import Axis
from rbpx.laws.sweeps import SweepCell, SweepMinimum, best_of
from rbpx.runs.points.sizes import Points
from rbpx.runs.run import Run, grouped, tokens_of
from rbpx.runs.select.budgets import unbeaten

__all__ = ["frontier", "said_of_points"]


def said_of_points(cells: Sequence[SweepCell], runs: Sequence[Run]) -> Iterator[str]:
    """Describes the points of a frontier; without one, says how many sizes and tokens have several runs."""
    several = [places for places in _cells(runs) if len(places) > 1]
    if cells:
        yield from said_of_frontier(cells)
    elif several:
        have = "has" if len(several) == 1 else "have"
        crowded = number_of(len(several), "(S, D) cell")
        yield f"{crowded} {have} {sum(map(len, several)):,} runs: frontier=true takes the best of each."


def frontier(series: Sequence[Points]) -> tuple[list[Points], tuple[SweepCell, ...]]:
    """Reduce each quantity to one point per size and number of tokens, and say how each point was found.

    Along C only points that no point of at most as much compute beats remain.
    """
    best, cells = list[Points](), list[SweepCell]()
    for points in series:
        if points.doubt is not None and not np.isfinite(points.y_N).any():
            best.append(points)
            continue
        weight_CN, runs = np.zeros((len(of := _cells(points.runs)), len(points.runs))), list[Run]()
        for places, weight_N in zip(of, weight_CN, strict=True):
            run, cell = _cell(points, places)
            weight_N[places] = cell.best.weight_N
            runs.append(run)
            cells.append(cell)
        y_N = np.array([cell.best.y.value for cell in cells[-len(runs) :]], np.float64)
        kept_N = np.full(len(runs), True)
        if runs[0].axis is Axis.C:
            kept_N = np.array(unbeaten(y_N.tolist(), [run.x or 0.0 for run in runs]))
        y_BN = None if points.y_BN is None else (points.y_BN @ weight_CN.T)[:, kept_N]
        chosen = tuple(run for run, is_kept in zip(runs, kept_N.tolist(), strict=True) if is_kept)
        best.append(replace(points, runs=chosen, y_N=y_N[kept_N], y_BN=y_BN))
    return best, tuple(cells)


def _cells(runs: Sequence[Run]) -> list[list[int]]:
    def cell(at: int) -> tuple[Any, ...]:
        run = runs[at]
        step = run.training_step if run.axis is Axis.step else None
        return run.non_embedding_params, tokens_of(run), run.unique_tokens, step

    return list(grouped(range(len(runs)), cell).values())


def _cell(points: Points, places: Sequence[int]) -> tuple[Run, SweepCell]:
    runs, y_N = [points.runs[at] for at in places], points.y_N[places]
    known = np.flatnonzero(np.isfinite(y_N)) if np.isfinite(y_N).any() else np.arange(len(y_N))
    names = dict.fromkeys(name for run in runs for name in run.varied)
    knobs = {name: np.array([runs[at].varied.get(name, np.nan) for at in known]) for name in names}
    seeds = [runs[at].training_seed for at in known]
    found = best_of(y_N[known], knobs, are_seeds=None not in seeds and len(set(seeds)) == len(seeds))
    weight_N = np.zeros(len(runs))
    weight_N[known] = found.weight_N
    best = SweepMinimum(found.y, found.at, found.how, int(known[found.least]), weight_N)
    of = runs[best.least]
    run_ids = tuple(sorted({run_id for run in runs for run_id in run.run_ids}))
    stands = replace(of, run_ids=run_ids, varied={}, weight=1.0)
    if len(runs) > 1:
        stands = replace(stands, model=None, training_seed=None)
    D = tokens_of(of)
    C = of.training_flops or (None if D is None else 6 * of.non_embedding_params * D)
    where = (of.size, float(of.non_embedding_params), D, C)
    return stands, SweepCell(points.law, points.k, *where, best, float(y_N[best.least]))
