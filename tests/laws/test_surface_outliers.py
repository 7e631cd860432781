"""Runs outside what the others allow: found one and several at a time, and no more often in clean sets than is said."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from rbpx.laws.surface.outliers import _deleted, _p_of_shift, common_shift, farthest_of, outliers
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


def of_budgets(above: float, which: str = "budget", seed: int = 0, checkpoints: int = 1) -> tuple[Runs, set[int]]:
    """5 budgets of 5 sizes, and those of the largest budget or size, which all lie above the law by a share."""
    C = np.repeat(1e18 * 4.0 ** np.arange(5), 5)
    S = np.sqrt(C / 120) * np.tile(np.geomspace(0.25, 4, 5), 5)
    if which == "size":
        S = np.tile(np.geomspace(1e7, 1e9, 5), 5)
        C = 6 * S * np.repeat(np.geomspace(1e9, 3e10, 5), 5)
    off = C > 0.99 * C.max() if which == "budget" else S > 0.99 * S.max()
    of_run = np.exp(0.003 * np.random.default_rng(seed).standard_normal(25)) * np.where(off, 1 + above, 1)
    S, D, of_run = (np.repeat(each, checkpoints) for each in (S, C / 6 / S, of_run))
    D = D / 2.0 ** np.tile(np.arange(checkpoints), 25)
    runs = Runs.of(S, D, law(S, D) * of_run, groups=np.repeat(np.arange(25), checkpoints))
    return runs, set(np.flatnonzero(off).tolist())


@pytest.mark.parametrize("which", ["budget", "size"])
@pytest.mark.parametrize("above", [0.02, -0.02, 0.05])
def test_the_largest_runs_that_lie_off_together_are_named_with_how_far(above: float, which: str) -> None:
    runs, off = of_budgets(above, which)
    found = common_shift(runs)
    assert set(found.runs) == off
    assert found.share == pytest.approx(above, abs=0.006)
    assert found.in_sd * above > 0
    assert found.p < 0.02


def test_their_checkpoints_count_with_their_runs() -> None:
    runs, off = of_budgets(0.03, checkpoints=3)
    found = common_shift(runs)
    assert set(found.runs) == off


def test_no_largest_are_named_where_all_have_one_budget_or_the_rest_is_a_line() -> None:
    S, D = straight(9)
    assert common_shift(Runs.of(S, D, law(S, D))) is None
    S = np.geomspace(1e8, 1e9, 6)
    assert common_shift(Runs.of(S, 1e20 / S, law(S, 1e20 / S))) is None


def test_a_shift_that_runs_share_is_tested_as_one_more_constant_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    J, off, of = rng.standard_normal((12, 4)), rng.standard_normal(12), np.arange(12) > 8
    with_own = np.column_stack([J, of])
    best, squares, *_ = np.linalg.lstsq(with_own, off)
    stderr = math.sqrt(squares[0] / 7 * np.linalg.inv(with_own.T @ with_own)[4, 4])
    assert _p_of_shift(off, J, of) == pytest.approx(2 * student.sf(abs(best[4]) / stderr, 7))
    assert _p_of_shift(off, np.column_stack([J, of]), of) == 1.0


@pytest.mark.parametrize("n", [1, 3, 18])
def test_the_farthest_of_several_is_allowed_to_lie_farther(n: int) -> None:
    assert (2 * norm.cdf(farthest_of(n)) - 1) ** n == pytest.approx(0.95)
