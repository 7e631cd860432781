"""Backtests of a law: fitted to the smallest sizes, compared with each larger one.

Models of one size, replicates, are fitted together or predicted together.

Shapes: N models, in increasing order of size.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rbpx.laws.forms.averaged import predict_over_forms
from rbpx.laws.power.fitted import PowerLawFit
from rbpx.laws.predict.prediction import Prediction, Predictor, outside, predictor

MIN_FITTED = 3


@dataclass(frozen=True)
class Backtest:
    """One prediction compared with the measurement.

    Attributes:
        n_fitted: how many of the smallest models the law was fitted to.
        S: the size that was predicted.
        predicted: value with its interval.
        measured: the value there, in the unit of y.
        error: (predicted - measured) / measured.
    """

    n_fitted: int
    S: float
    predicted: Prediction
    measured: float
    error: float

    @property
    def is_inside(self) -> bool | None:
        """Whether the interval contains the measured value; None without an interval."""
        lo, hi = self.predicted.lo, self.predicted.hi
        return None if lo is None or hi is None else lo <= self.measured <= hi


def backtest(
    fit_smallest: Callable[[int], PowerLawFit | Predictor | None], S: Sequence[float], y: Sequence[float]
) -> tuple[Backtest, ...]:
    """Compare a law fitted to the smallest sizes with each larger one, from 3 different sizes up.

    Args:
        fit_smallest: the fit to the m smallest models, or what it predicts from; one without numbers predicts nothing.
        S: sizes, increasing.
        y: the values there, with their sign; one that is 0 or not finite has no relative error and is left out.
    """
    tests = []
    for m in whole_sizes(S):
        fit = fit_smallest(m)
        law = predictor(fit) if isinstance(fit, PowerLawFit) else fit
        if law is not None:
            known = [(at, value) for at, value in zip(S[m:], y[m:], strict=True) if value != 0 and math.isfinite(value)]
            tests += [_compare(m, law.at(at), value) for at, value in known]
    return tuple(tests)


def backtest_over_forms(S: Sequence[float], y: Sequence[float]) -> tuple[Backtest, ...]:
    """The same for the prediction over forms (`rbpx.laws.forms.averaged`); none where the y have no law."""
    tests = []
    for m in whole_sizes(S):
        answers = predict_over_forms(S[:m], y[:m], S[m:])
        for at, answer, value in zip(S[m:], answers or (), y[m:], strict=False):
            predicted = Prediction(at, answer.y, answer.lo, answer.hi, outside(at, S[:m]))
            tests.append(_compare(m, predicted, value))
    return tuple(tests)


def whole_sizes(S: Sequence[float]) -> list[int]:
    """How many of the smallest models are all those of 3 sizes, of 4, and so on, without the largest size."""
    return [m for m in range(MIN_FITTED, len(S)) if S[m - 1] < S[m] and len(set(S[:m])) >= MIN_FITTED]


def _compare(m: int, predicted: Prediction, measured: float) -> Backtest:
    return Backtest(m, predicted.S, predicted, measured, (predicted.y - measured) / measured)
