"""Runs outside what the others allow: found one and several at a time, and no more often in clean sets than is said."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from rbpx.laws.surface.outliers import _deleted, farthest_of, outliers
from rbpx.laws.surface.runs import Runs
from tests.support.surfaces import grid, law, straight

SCATTER = 0.01


def drawn(above: dict[int, float], seed: int = 2) -> Runs:
    """18 runs, some of which lie above the law by a share."""
    S, D = grid(6, 3)
    y = law(S, D) * np.exp(SCATTER * np.random.default_rng(seed).standard_normal(len(S)))
    for run, share in above.items():
        y[run] *= 1 + share
    return Runs.of(S, D, y)


@pytest.mark.parametrize("above", [{}, {7: 0.65}, {0: 0.65}, {12: 0.1}, {3: -0.2}, {7: 0.65, 8: 0.4}], ids=str)
def test_they_are_found_with_how_far_they_lie(above: dict[int, float]) -> None:
    found = {each.run: each for each in outliers(drawn(above))}
    assert found.keys() == above.keys()
    for run, share in above.items():
        assert math.log1p(found[run].share) == pytest.approx(math.log1p(share), abs=5 * SCATTER)
        assert found[run].in_sd * share > 0
        assert found[run].p < 0.01


def test_residuals_are_those_of_least_squares_with_a_constant_of_its_own_for_the_run() -> None:
    rng = np.random.default_rng(0)
    J, off, counts = rng.standard_normal((12, 4)), rng.standard_normal(12), np.arange(12) < 10
    t, dof = _deleted(off, J, counts)
    for run in range(12):
        rows = counts | (np.arange(12) == run)
        with_own = np.column_stack([J, np.arange(12) == run])[rows]
        best, squares, *_ = np.linalg.lstsq(with_own, off[rows])
        assert dof[run] == len(with_own) - 5
        variance = squares[0] / dof[run] * np.linalg.inv(with_own.T @ with_own)[4, 4]
        assert t[run] == pytest.approx(best[4] / math.sqrt(variance))


@pytest.mark.parametrize("n", [1, 3, 18])
def test_the_farthest_of_several_is_allowed_to_lie_farther(n: int) -> None:
    assert (2 * norm.cdf(farthest_of(n)) - 1) ** n == pytest.approx(0.95)


def test_where_the_others_say_too_little_none_is_named() -> None:
    S, D = grid(3, 2)
    y = law(S, D)
    y[1] *= 1.65
    assert outliers(Runs.of(S, D, y)) == ()
    S, D = straight(9)
    assert outliers(Runs.of(S, D, law(S, D) * np.where(S == S[4], 1.65, 1))) == ()


def test_checkpoints_of_a_run_are_named_together() -> None:
    runs = drawn({7: 0.3})
    two = [np.repeat(each, 2) for each in (runs.S_N, runs.D_N, runs.y_N)]
    two[1] *= np.tile([0.5, 1.0], 18)
    two[2] = law(two[0], two[1]) * np.repeat(runs.y_N / law(runs.S_N, runs.D_N), 2)
    (found,) = outliers(Runs.of(*two, groups=np.repeat(np.arange(18), 2)))
    assert (found.run, found.share) == (7, pytest.approx(0.3, abs=0.05))
