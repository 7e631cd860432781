"""The best of a sweep, and laws of runs that do not count alike."""

import csv
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from rbpx.laws.sweeps import SweepMethod, best_of
from tests.support.drawn_laws import BATCH, BEST, LR, sweep


def test_without_noise_the_best_is_that_of_the_quadratic() -> None:
    best = best_of(sweep(0, scatter=0.0), {"lr": LR, "batch": BATCH})
    assert best.how is SweepMethod.quadratic
    assert best.y.value == pytest.approx(BEST["y"], abs=1e-9)
    assert best.at["lr"].value == pytest.approx(BEST["lr"], rel=1e-6)
    assert best.at["batch"].value == pytest.approx(BEST["batch"], rel=1e-6)
    assert best.weight_N.sum() == pytest.approx(1)


def test_seeds_have_a_mean_and_a_cell_without_noise_its_least() -> None:
    y = np.array([2.51, 2.53, 2.49, 2.8])
    seeds = best_of(y, {"lr": np.array([1e-3, 1e-3, 1e-3, 1e-2])}, are_seeds=True)
    assert (seeds.how, seeds.n_used) == (SweepMethod.seeds, 3)
    assert seeds.y.value == pytest.approx(2.51)
    assert seeds.y.hi - seeds.y.value == pytest.approx(4.3027 * 0.02 / math.sqrt(3), rel=1e-3)  # Student's t, 2 dof
    few = best_of(np.array([2.5, 2.6]), {"lr": np.array([1e-3, 2e-3])})
    assert (few.how, few.y.value, few.y.lo) == (SweepMethod.least, 2.5, None)
    assert best_of(np.array([2.5]), {}).how is SweepMethod.only


def test_the_best_of_step_law_is_that_of_a_plain_quadratic_through_the_runs_nearest_to_it(shared_data: Path) -> None:
    cells = defaultdict(list)
    with (shared_data / "reference" / "steplaw_dense.csv").open() as file:
        for row in csv.DictReader(file):
            cell = (row["non_embedding_params"], row["training_tokens"])
            cells[cell].append([float(row[name]) for name in ("lr", "batch_size", "smooth_loss")])
    assert len(cells) == 17
    assert sum(map(len, cells.values())) == 1911
    lower = 0
    for runs in cells.values():
        lr, batch, y = np.array(runs).T
        best = best_of(y, {"lr": lr, "batch": batch})
        assert best.how is SweepMethod.quadratic
        lower += best.y.value > y.min()
        near = best.weight_N != 0
        u, v = np.log(lr[near] / best.at["lr"].value), np.log(batch[near] / best.at["batch"].value)
        theta = np.linalg.lstsq(np.column_stack([np.ones_like(u), u, v, u * u, u * v, v * v]), y[near])[0]
        H = np.array([[2 * theta[3], theta[4]], [theta[4], 2 * theta[5]]])
        flat = np.exp(-np.linalg.solve(H, theta[1:3])) * [best.at["lr"].value, best.at["batch"].value]
        for at, knob in zip(flat, ("lr", "batch"), strict=True):
            assert best.at[knob].lo < at < best.at[knob].hi
            assert at == pytest.approx(best.at[knob].value, rel=0.2)
        assert best.y.value == pytest.approx(theta[0], abs=best.y.hi - best.y.lo)
    assert lower >= 12


# -------------------------------------------------------------------------------------- runs that do not count alike
