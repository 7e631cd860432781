"""When each status holds: points made for it, and the share of true laws that are judged ok."""

import math
from typing import Any

import numpy as np
import pytest

from rbpx.laws.names import Method
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.power.predicted import Prediction
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.prediction.verdict import Backtest, backtest, backtest_averaged, judge, judge_averaged
from rbpx.status import Status

S = [float(size) for size in np.logspace(6, 9, 7)]
SCATTER = np.array([1, -1, 0.5, 1, -0.5, -1, 0.5])


def judged(y: Any, sizes: Any = S, method: Method = Method.ols) -> tuple[PowerLaw, tuple[Status, ...]]:
    """A fit and its verdict, with its backtests, as a group of runs gets them."""
    fit = fit_power_law(sizes, y, None, method)
    tests = backtest(lambda m: fit_power_law(sizes[:m], y[:m], None, method), sizes, list(y))
    return fit, judge(fit, tests)


def law(alpha: float = 0.1, scatter: float = 0.01) -> np.ndarray:
    return 5 * np.array(S) ** -alpha * np.exp(scatter * SCATTER)


@pytest.mark.parametrize("middle", [2.37, 2.52, 2.67, 2.8])
def test_three_sizes_that_fall_by_far_more_than_models_scatter_have_a_trend(middle: float) -> None:
    assert Status.no_trend not in judged([3.4, middle, 2.1], [1e8, 1e9, 1e10])[1]


def test_three_sizes_on_a_line_that_hardly_falls_have_no_trend() -> None:
    # By .2 % in all, a fifth of the scatter that three sizes may have.
    assert judged([3.0, 2.997, 2.994], [1e8, 1e9, 1e10])[1][0] is Status.no_trend


@pytest.mark.parametrize("turns", [True, False])
def test_a_bend_doubts_a_prediction_over_forms_only_where_points_turn_round(turns: bool) -> None:
    x = np.log(S)
    y = np.exp(0.02 * (x - x[4]) ** 2 if turns else -0.1 * x - 0.004 * (x - x.mean()) ** 2) * np.exp(0.001 * SCATTER)
    _, reasons = judged(y)
    (answer,) = average_forms(S, y.tolist(), [S[-1] * 2]) or ()
    assert Status.bends in reasons
    assert (Status.bends in judge_averaged(reasons, answer, S, y.tolist(), ())) is turns


def test_an_error_below_a_twentieth_is_no_failure() -> None:
    y = np.array(law(alpha=0.01, scatter=0.0001))
    y[-1] = y[-2]
    assert Status.backtest_failed not in judged(y)[1]


def compared(last: tuple[float, float]) -> list[Backtest]:
    """Backtests that all miss, but for that of the largest size from all others, which has an interval about 1."""
    wrong, own = Prediction(1e9, 2.0, 1.9, 2.1, beyond=3), Prediction(1e9, 1.0, *last, beyond=3)
    return [*(Backtest(m, 1e9, wrong, 1.0, 1.0) for m in (3, 4, 5)), Backtest(6, 1e9, own, 1.1, -0.1)]


OF_97 = 2.7764 / 3.4954  # the quantiles 97.5 % and 98.75 % of Student's t of 4, by a table


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ((0.8, 1.2), False),  # the smaller backtests are in the points, which have their own test
        ((0.8, 1.0999), False),  # a miss by 95 %, not by 97.5 %
        ((0.8, math.exp(math.log(1.1) * OF_97 * 1.001)), False),
        ((0.8, math.exp(math.log(1.1) * OF_97 * 0.999)), True),
        ((0.99, math.exp(math.log(1.1) * OF_97 * 1.001)), False),  # the other side says nothing
    ],
)
def test_a_prediction_misses_where_the_largest_size_lies_outside_an_interval_of_a_higher_level(
    last: tuple[float, float], expected: bool
) -> None:
    y, answers = law().tolist(), average_forms(S, law(), [1e9])
    assert (Status.intervals_missed in judge_averaged((), answers[0], S, y, compared(last))) is expected


def test_what_prevents_a_fit_is_its_only_reason() -> None:
    assert judged([3.0, 2.0], S[:2])[1] == (Status.too_few_sizes,)
    assert judged([3.0, 3.0, 3.0], S[:3])[1] == (Status.no_trend,)


def test_a_prediction_far_outside_or_from_a_short_ladder_says_so() -> None:
    y = law().tolist()

    def reasons(S_new: float, sizes: list[float] = S, y: list[float] = y) -> tuple[Status, ...]:
        answers = average_forms(sizes, y, [S_new])
        return judge_averaged((), answers[0], sizes, y, ())

    assert reasons(1e9) == ()
    assert reasons(1.04e10) == ()  # ten times as people round
    assert reasons(1.06e10) == (Status.beyond,)
    assert reasons(0.9e5) == (Status.beyond,)
    assert reasons(1e8, S[:4], y[:4]) == (Status.barely_determined,)


def test_what_speaks_against_the_points_speaks_against_every_form() -> None:
    answers = average_forms(S, law(), [1e9])
    assert judge_averaged([Status.no_trend, Status.bends], answers[0], S, law().tolist(), ()) == (Status.no_trend,)


def test_backtests_compare_each_larger_size_with_the_law_of_the_smaller_ones() -> None:
    y = law()
    tests = backtest(lambda m: fit_power_law(S[:m], y[:m]), S, y.tolist())
    assert [(test.n_fitted, test.S) for test in tests] == [(m, S[i]) for m in range(3, 7) for i in range(m, 7)]
    slope, intercept = np.polyfit(np.log(S[:4]), np.log(y[:4]), 1)
    last = next(test for test in tests if test.n_fitted == 4 and test.S == S[6])
    assert last.error == pytest.approx(math.exp(intercept + slope * math.log(S[6])) / y[6] - 1, rel=1e-9)
    assert last.predicted == fit_power_law(S[:4], y[:4]).predict(S[6])
    over = backtest_averaged(S, y.tolist())
    assert [(test.n_fitted, test.S) for test in over] == [(test.n_fitted, test.S) for test in tests]
    answers = average_forms(S[:4], y[:4], [S[6]])
    found = next(test for test in over if test.n_fitted == 4 and test.S == S[6]).predicted
    expected = (answers[0].y, answers[0].lo, answers[0].hi)  # a sum over forms has its last bit from its neighbours
    assert (found.y, found.lo, found.hi) == pytest.approx(expected, rel=1e-14)


def test_a_larger_size_without_a_miss_is_left_out_of_the_backtests() -> None:
    y = [*law()[:5].tolist(), 0.0, math.inf]
    tests = backtest(lambda m: fit_power_law(S[:m], y[:m]), S, y)
    assert [(test.n_fitted, test.S) for test in tests] == [(3, S[3]), (3, S[4]), (4, S[4])]
