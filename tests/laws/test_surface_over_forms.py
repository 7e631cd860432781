"""Predictions over forms in size and tokens, against a plain computation with dense covariances, and by coverage."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal, norm

from rbpx.laws.forms.linearised import FormMixture, LinearisedForm, average_linearised
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.prediction.calibration import error_in_sd, widen, widening_factor
from rbpx.laws.surface.averaged import backtest_budgets
from tests.support.surfaces import draw, grid

Floats = NDArray[np.float64]
FORMS = ("chinchilla", "kaplan")


def small(runs: bool = False) -> tuple[list[LinearisedForm], Floats, Floats, Floats, NDArray[np.int64]]:
    """Two forms at six points and two targets; no axis has places enough to bend at."""
    rng = np.random.default_rng(4)
    x_NA = np.array(list(itertools.product([0.0, 1.1, 2.3], [0.0, 1.7])))
    x_TA = np.array([[3.4, 2.0], [1.0, 3.9]])
    forms = []
    for name in ("one", "other"):
        ln_y, J, slope = rng.normal(0, 0.02, 8), rng.normal(0, 0.3, (8, 3)), rng.normal(-0.1, 0.02, (8, 2))
        forms.append(LinearisedForm(name, 1.0, ln_y[:6], J[:6], slope[:6], ln_y[6:], J[6:], slope[6:]))
    run_N = np.repeat(np.arange(3), 2) if runs else np.arange(6)
    return forms, x_NA, x_TA, rng.normal(0, 0.02, 6), run_N


def plainly(
    forms: list[LinearisedForm], x_NA: Floats, x_TA: Floats, ln_y_N: Floats, run_N: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Mean and standard deviation of ln y at each target, by one conditioned normal distribution a component."""
    N = len(ln_y_N)
    lefts = [ln_y_N - form.ln_y_N for form in forms]
    best = min(lefts, key=lambda left: float(np.abs(left).sum()))
    usual = np.median(np.sort(np.abs(best))[forms[0].J_NP.shape[1] :])  # a robust fit of three constants meets three
    far = np.maximum(1, np.abs(best) / (5 * (1.4826 * usual + 1e-7)))
    both = np.vstack([x_NA, x_TA])
    apart2 = ((both[:, None] - both) ** 2).sum(axis=2)
    shares = (0.0, 0.5, 0.9, 0.97) if len(set(run_N.tolist())) < N else (0.0,)
    misfits = [(1.0, 0.0, 0.2)] + [
        (length, misfit, 0.04) for length in (0.7, 1.4, 2.8, 5.6) for misfit in (0.5, 1, 2, 4, 8)
    ]
    a, b = (both - x_NA.mean(axis=0)).T
    rows = []
    for form, left in zip(forms, lefts, strict=True):
        J, (of_S, of_D) = np.vstack([form.J_NP, form.J_TP]), np.vstack([form.slope_NA, form.slope_TA]).T
        drift = np.column_stack([0.25 * of_S * a**2, 0.5 * of_S * a * b, 0.5 * of_D * a * b, 0.25 * of_D * b**2])
        mixing = (0.1 * of_S * a * b)[:, None]
        for columns, prior in ((J, 0.36), (np.hstack([J, mixing]), 0.24), (np.hstack([J, drift]), 0.4)):
            for share, (length, misfit, weight) in itertools.product(shares, misfits):
                own = share * (run_N[:, None] == run_N) + (1 - share) * np.eye(N)
                smooth = misfit**2 * np.exp(-apart2 / 2 / length**2)
                R = own * np.outer(far, far) + smooth[:N, :N]
                whole = smooth.copy()
                whole[:N, :N] = R
                whole[range(N, N + 2), range(N, N + 2)] = 1 + misfit**2
                inverse = np.linalg.inv(R)
                theta = np.linalg.lstsq(columns[:N].T @ inverse @ columns[:N], columns[:N].T @ inverse @ left)[0]
                rest = left - columns[:N] @ theta
                dof = max(N - columns.shape[1], 0)
                estimate = math.sqrt((rest @ inverse @ rest + 2 * 0.006**2) / (dof + 2))
                for scale in np.array([0.25, 0.4, 0.63, 1, 1.6, 2.5, 4, 6]) * estimate:
                    covariance = scale**2 * whole + columns @ columns.T
                    seen = covariance[:N, :N]
                    evidence = multivariate_normal(np.zeros(N), seen).logpdf(left)
                    onto = covariance[N:, :N] @ np.linalg.inv(seen)
                    variance = np.diag(covariance[N:, N:] - onto @ covariance[:N, N:])
                    centre = form.ln_y_T + onto @ left
                    rows.append((math.log(prior * weight / len(shares)) + 0.85 * evidence, *centre, *variance))
    table = np.array(rows)
    weights = np.exp(table[:, 0] - table[:, 0].max())
    weights /= weights.sum()
    mean = weights @ table[:, 1:3]
    return mean, np.sqrt(weights @ (table[:, 3:] + (table[:, 1:3] - mean) ** 2))


def moments(of: FormMixture) -> tuple[Floats, Floats]:
    weight, centre, scale = of.mixture.weight, of.mixture.centre, of.mixture.scale
    mean = (weight * centre).sum(axis=1)
    return mean, np.sqrt((weight * (scale**2 + (centre - mean[:, None]) ** 2)).sum(axis=1))


@pytest.mark.parametrize("runs", [False, True], ids=["alone", "checkpoints"])
def test_the_mixture_is_that_of_normal_distributions_conditioned_one_by_one(runs: bool) -> None:
    of = small(runs)
    mean, sd = plainly(*of)
    found_mean, found_sd = moments(average_linearised(*of))
    assert found_mean == pytest.approx(mean, abs=1e-9)
    assert found_sd == pytest.approx(sd, rel=1e-6)
    assert sum(average_linearised(*of).weights.values()) == pytest.approx(1)


def test_what_is_held_out_has_no_part_in_its_prediction() -> None:
    runs = draw((5,), grid(4, 4), 0.005).runs
    budgets = backtest_budgets(runs, FORMS)
    C = 6 * runs.S_N * runs.D_N
    assert {budget.gap for budget in budgets} == {3.0, 9.0}
    for budget in budgets:
        held = np.array([6 * test.S * test.D for test in budget.held_out])
        assert C[budget.fitted_N].max() < held.min(), "only runs of less compute predict"
        assert held.max() / held.min() < 3
    first = budgets[0]
    moved = runs.y_N.copy()
    moved[~first.fitted_N] *= 1.5
    again = backtest_budgets(replace(runs, y_N=moved), FORMS)
    for test, same in zip(first.held_out, again[0].held_out, strict=True):
        assert same.predicted.value == pytest.approx(test.predicted.value, rel=1e-9)
        assert same.measured == pytest.approx(1.5 * test.measured)


def test_intervals_are_widened_by_what_backtests_missed_and_never_narrowed() -> None:
    q = norm.ppf(0.9)
    assert widening_factor([]) == widening_factor([(1.0, [0.1, -0.2, 0.05])]) == 1.0
    errors = [3 * q, -3 * q, 3 * q]
    assert widening_factor([(1.0, errors)]) == pytest.approx(math.sqrt((4 + 2 * 9) / 6))
    assert widening_factor([(0.5, errors)]) == pytest.approx(math.sqrt((4 + 9) / 5)), "half of the points count half"
    assert widening_factor([(1.0, errors), (1.0, [])]) == widening_factor([(1.0, errors)])


def test_an_error_is_counted_in_the_standard_deviation_of_its_side() -> None:
    y = Estimate(2.0, 2.0 * math.exp(-0.1), 2.0 * math.exp(0.3))
    assert error_in_sd(y, 2.0 * math.exp(0.3)) == pytest.approx(norm.ppf(0.975))
    assert error_in_sd(y, 2.0 * math.exp(-0.05)) == pytest.approx(-norm.ppf(0.975) / 2)
    assert error_in_sd(y.times(-1), -2.0 * math.exp(0.3)) == pytest.approx(norm.ppf(0.975))
    assert error_in_sd(Estimate(2.0), 2.1) is error_in_sd(y, 0.0) is None
    twice = widen(y, 2.0)
    assert (twice.lo, twice.hi) == (pytest.approx(2 * math.exp(-0.2)), pytest.approx(2 * math.exp(0.6)))
    around_0 = Estimate(2.0, -1.0, 3.0)
    assert widen(around_0, 2.0) is around_0, "there is no width in ln y"
