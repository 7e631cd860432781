"""Laws of models that were trained more than once at a size: scatter is measured, and misfit is told apart from it."""

import math

import numpy as np
import pytest
from scipy import stats

from rbpx.laws.names import Method
from rbpx.laws.power.law import fit_power_law
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.prediction.verdict import backtest_averaged, judge
from rbpx.status import Status

SIZES = np.geomspace(1e6, 1e9, 5)
SEEDS = 3
S = np.repeat(SIZES, SEEDS)


def drawn(rng: np.random.Generator, of_size_sd: float, own_sd: float, bend: float = 0.0) -> np.ndarray:
    """A law with an effect of each size, which its seeds share, and scatter of each model."""
    x = np.log(S) - np.log(S).mean()
    effect = np.repeat(rng.normal(0, of_size_sd, len(SIZES)), SEEDS)
    return np.exp(1 - 0.1 * x + bend * x**2 + effect + rng.normal(0, own_sd, len(S)))


def test_seeds_of_a_size_count_once_in_the_interval() -> None:
    """It is that of the line through the means of sizes, as what they have in common is one draw."""
    y = drawn(np.random.default_rng(1), 0.01, 0.004)
    line = stats.linregress(np.log(SIZES), np.log(y).reshape(len(SIZES), SEEDS).mean(axis=1))
    fit = fit_power_law(S, y)
    half = stats.t.ppf(0.975, len(SIZES) - 2) * line.stderr
    assert fit.alpha.value == pytest.approx(-line.slope, rel=1e-9)
    assert (fit.alpha.lo, fit.alpha.hi) == pytest.approx((-line.slope - half, -line.slope + half), rel=1e-9)


def test_the_test_of_the_law_is_that_of_the_means_of_sizes_against_the_spread_within_them() -> None:
    """Sizes that were trained once have no such spread."""
    rng = np.random.default_rng(8)
    sizes = np.geomspace(1e4, 1e7, 7)
    n = np.array([3, 3, 1, 1, 1, 1, 1])
    x = np.log(sizes)
    ln_y = np.repeat(1 - 0.1 * x + 0.004 * (x - x.mean()) ** 2, n) + rng.normal(0, 0.005, n.sum())
    within = sum(((ln_y[at : at + 3] - ln_y[at : at + 3].mean()) ** 2).sum() for at in (0, 3)) / 4
    test = fit_power_law(np.repeat(sizes, n), np.exp(ln_y)).pure_error
    assert test.sd_rest == pytest.approx(within**0.5, rel=1e-9)
    means = np.array([*(ln_y[at : at + 3].mean() for at in (0, 3)), *ln_y[6:]])
    weighted = np.polyfit(x, means, 1, w=np.sqrt(n))
    F = (n * (means - np.polyval(weighted, x)) ** 2).sum() / 5 / within
    assert (test.dof, test.dof_rest) == (5, 4)
    assert (test.F, test.p) == pytest.approx((F, stats.f.sf(F, 5, 4)), rel=1e-9)


@pytest.mark.parametrize("method", [Method.ols, Method.robust, Method.offset])
def test_every_method_takes_replicates_and_counts_sizes_not_models(method: Method) -> None:
    y = drawn(np.random.default_rng(2), 0.0, 0.004)
    assert fit_power_law(S, y, None, method).n_points == len(S)
    few = 3 * SEEDS if method is Method.offset else 2 * SEEDS
    assert fit_power_law(S[:few], y[:few], None, method).status is Status.too_few_sizes


def test_misfit_is_told_apart_from_scatter_by_replicates() -> None:
    rng = np.random.default_rng(3)
    scattered, misfit = drawn(rng, 0.0, 0.01), drawn(rng, 0.01, 0.0005)
    close, off = fit_power_law(S, scattered), fit_power_law(S, misfit)
    assert Status.bends not in judge(close)
    assert Status.bends in judge(off)
    assert off.pure_error.sd_rest < 0.1 * off.pure_error.sd_about
    # The same residuals without replicates do not say which of the two they are.
    assert Status.bends not in judge(fit_power_law(SIZES, misfit[::SEEDS]))


def test_identical_repeats_say_what_one_of_them_does() -> None:
    y, n = drawn(np.random.default_rng(6), 0.02, 0.0), [3, 1, 2, 3, 1]
    some = np.concatenate([np.arange(SEEDS * at, SEEDS * at + count) for at, count in enumerate(n)])
    answers = (average_forms(S[of], y[of], [1e10, 3e7]) or () for of in (some, slice(None, None, SEEDS)))
    for by_some, by_one in zip(*answers, strict=True):
        assert [by_some.lo, by_some.y, by_some.hi] == pytest.approx([by_one.lo, by_one.y, by_one.hi], rel=1e-9)


def test_where_means_of_sizes_lie_on_a_law_a_new_model_varies_as_repeats_do() -> None:
    """By as much as these do, less their part in the means, which Student's t of sizes less 2 has already."""
    off = np.tile([0.01, -0.01, 0.0], len(SIZES))
    (answer,) = average_forms(S, 2 * (S / 1e6) ** -0.1 * np.exp(off), [1e10]) or ()
    variance = (off @ off) / (len(S) - len(SIZES)) * (1 - 1 / SEEDS)
    half = stats.t.ppf(0.975, len(SIZES) - 2) * math.sqrt(variance)
    middle = math.log(2) - 0.1 * math.log(1e4)
    assert np.log([answer.lo, answer.y, answer.hi]) == pytest.approx([middle - half, middle, middle + half], abs=1e-9)


def test_backtests_hold_out_whole_sizes() -> None:
    tests = backtest_averaged(S.tolist(), drawn(np.random.default_rng(7), 0.0, 0.01).tolist())
    fitted = [(test.n_fitted, test.S) for test in tests]
    held_out = [(3, 3), (3, 4), (4, 4)]  # how many sizes were fitted, and which was predicted
    assert fitted == [(n * SEEDS, SIZES[at]) for n, at in held_out for _ in range(SEEDS)]
