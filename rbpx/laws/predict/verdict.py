"""Whether a law stands, and whether it needs an offset: the one place that says when each status of a law holds.

A referee asks of a law whether there is a trend, whether its form is that of the points, whether it predicts, and how
well its exponent is known. Each question has a test, each failed test a status with its remedy (`rbpx.status`); `ok`
means that none failed. Several may fail: `judge` gives all of them, in the order of `Status`, and the first is the
status of the fit.

| status | holds where |
|---|---|
| no_trend | the 95 % interval of alpha contains 0 |
| not_monotone | ln y curves significantly against ln S, and turns round between the sizes |
| bends | it curves significantly, or its residuals come in runs (p < 0.05), or, where models of one size were trained more than once, the law is off by significantly more than these differ; (a prediction over forms) neither a power law nor an offset has a fifth of the weight |
| backtest_failed | the largest size, predicted from the others, is off by more than 5 % and by no less than the next smaller size's own value would be |
| intervals_missed | the 95 % interval of that prediction misses, or those of two or more backtests and fewer than 80 % hold |
| barely_determined | the 95 % interval of alpha is unbounded, or at least as wide as alpha; (a prediction over forms) the sizes span less than two decades |
| beyond | (a prediction) S is more than 10 times outside the sizes |

A backtest fits a law to the smallest sizes and compares it with each larger one; models of one size are fitted together
or predicted together. A power law y = C S^(-alpha) is y = E + C S^(-alpha) with E = 0, so the interval of E says which
of the two the data support: one that leaves out 0 calls for the offset, one that contains only small offsets for the
power law, any other for neither.

Shapes: N models, in increasing order of size.
"""  # noqa: E501

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from rbpx.laws.forms.candidates import Shape
from rbpx.laws.intervals.estimate import Resampled, student_t
from rbpx.laws.intervals.lack_of_fit import curvature, runs_p
from rbpx.laws.names import Method
from rbpx.laws.power.law import PowerLawFit, fit_offsets
from rbpx.laws.predict.prediction import Averaged, Prediction, Predictor, outside, predict_over_forms, predictor
from rbpx.status import Status, first_of, in_order

NEGLIGIBLE: Final = 0.05  # of the smallest y: an offset below it moves no prediction that one would make


class Form(StrEnum):
    """Which form the data call for; `either` is "not distinguishable with these data"."""

    power = "power"
    offset = "offset"
    either = "either"

    @property
    def word(self) -> str:
        """As tables and sentences say it."""
        return "undecided" if self is Form.either else self.value


@dataclass(frozen=True)
class FormVerdict:
    """What the data say about an irreducible part.

    Attributes:
        form: the verdict.
        E: the best offset, in the unit of y; None where it could not be fitted.
        E_lo: lower end of its 95 % interval, None where the data set none.
        E_hi: upper end.
        aic_power_less_offset: Akaike's criterion of the power law less that of the offset; above 0 for the offset.
        bic_power_less_offset: Schwarz's.
    """

    form: Form
    E: float | None
    E_lo: float | None
    E_hi: float | None
    aic_power_less_offset: float | None
    bic_power_less_offset: float | None


def compare_forms(laws: Sequence[tuple[PowerLawFit, ArrayLike | Resampled | None]]) -> list[FormVerdict | None]:
    """Compare power laws with the same laws and an offset, both by ordinary least squares of ln y.

    Args:
        laws: each power law, and its resamples as in `fit_power_law`.

    Returns:
        The verdicts; None where no law falls with size, or there are fewer than the 4 sizes that an offset needs.
    """
    falls = [power.status is Status.ok and power.alpha is not None and power.alpha > 0 for power, _ in laws]
    falling = [law for law, does in zip(laws, falls, strict=True) if does]
    offsets = iter(fit_offsets([(power.S, _positive(power), resampled) for power, resampled in falling]))
    return [_verdict(power, next(offsets)) if does else None for (power, _), does in zip(laws, falls, strict=True)]


def _positive(power: PowerLawFit) -> list[float]:
    return [abs(value) for value in power.y]


def _verdict(power: PowerLawFit, offset: PowerLawFit) -> FormVerdict | None:
    if offset.status is Status.too_few_sizes:
        return None
    if offset.alpha is None:
        return FormVerdict(Form.either, None, None, None, None, None)
    E, form = offset.offset, Form.either
    if E.lo is not None and E.lo > 0:
        form = Form.offset
    elif E.hi is not None and E.hi <= NEGLIGIBLE * min(_positive(power)):
        form = Form.power
    differences = [
        None if a is None or b is None else a - b for a, b in ((power.aic, offset.aic), (power.bic, offset.bic))
    ]
    return FormVerdict(form, E.value, E.lo, E.hi, *differences)


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
    """The same for the prediction over forms (`rbpx.laws.predict.prediction`); none where the y have no law."""
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


FAR: Final = 10  # times outside the sizes: beyond what any backtest covers
SIGNIFICANT: Final = 0.05
FAILED: Final = 0.05  # of y: a backtest that is closer has not failed
SHORT: Final = 2.0  # decades of S, below which the sizes say little about the form
OUTSIDE: Final = 0.8  # weight of a bend, above which neither a power law nor an offset fits
HELD: Final = 0.8  # of the intervals of backtests, at least
_OF_POINTS: Final = (Status.no_trend, Status.not_monotone, Status.one_document, Status.power_law_limit)  # of any form


def judge(
    fit: PowerLawFit, backtests: Sequence[Backtest] = (), y_resampled: ArrayLike | Resampled | None = None
) -> tuple[Status, ...]:
    """Every status that holds for a fitted law, in the order of `Status`; none where the law stands.

    Args:
        fit: a law; the status it has already is one of those returned, unless it is ok.
        backtests: of the same law, by the same method (`rbpx.laws.predict.verdict`).
        y_resampled: as in `rbpx.laws.power.law.fit_power_law`.
    """
    if fit.alpha is None or fit.status is Status.no_variation:
        return in_order([fit.status])
    against = judge_backtests(fit.S, fit.y, backtests)
    return in_order([fit.status, *_of_exponent(fit), *_of_form(fit, y_resampled), *against])


def judge_over_forms(
    reasons: Iterable[Status], answer: Averaged, S: Sequence[float], y: Sequence[float], backtests: Sequence[Backtest]
) -> tuple[Status, ...]:
    """Every status that holds for a prediction over forms at one size.

    Args:
        reasons: those of the power law through the same points.
        answer: the prediction.
        S: sizes, increasing.
        y: the values there.
        backtests: of the prediction over forms.
    """
    statuses: list[Status] = [status for status in reasons if status in _OF_POINTS]
    if answer.weights.get(Shape.bend, 0.0) > OUTSIDE:
        statuses.append(Status.bends)
    if math.log10(S[-1] / S[0]) < SHORT:
        statuses.append(Status.barely_determined)
    if outside(answer.S, S) > FAR:
        statuses.append(Status.beyond)
    return in_order([*statuses, *judge_backtests(S, y, backtests)])


def _of_exponent(fit: PowerLawFit) -> list[Status]:
    alpha, lo, hi = fit.alpha or 0.0, fit.alpha_lo, fit.alpha_hi
    if lo is None and hi is None and fit.alpha_stderr is not None and fit.uncertainty is not None:
        half = student_t(fit.uncertainty.dof) * fit.alpha_stderr  # no documents: the scatter alone
        lo, hi = alpha - half, alpha + half
    return trend_doubts(alpha, -math.inf if lo is None else lo, math.inf if hi is None else hi)


def _of_form(fit: PowerLawFit, y_resampled: ArrayLike | Resampled | None) -> list[Status]:
    if fit.method is Method.offset:
        return []  # an offset is how such points bend; that it still fails shows in its backtests
    ln_S_N, ln_y_N = np.log(fit.S), np.log(np.abs(fit.y))
    bent = curvature(ln_S_N, ln_y_N, _absolute(y_resampled))
    statuses = []
    if bent.leaves_out_0:
        statuses.append(Status.bends)
        slope_at_ends = np.polyval(np.polyder(np.polyfit(ln_S_N, ln_y_N, 2)), [ln_S_N.min(), ln_S_N.max()])
        if slope_at_ends[0] * slope_at_ends[1] < 0:
            statuses.append(Status.not_monotone)
    replicates = fit.replicates  # these say what scatter is, so that no runs have to
    chance = runs_p(ln_S_N, ln_y_N) if replicates is None else replicates.p
    if chance is not None and chance < SIGNIFICANT:
        statuses.append(Status.bends)
    return statuses


def _absolute(y_resampled: ArrayLike | Resampled | None) -> Resampled | None:
    if y_resampled is None or isinstance(y_resampled, Resampled):
        return y_resampled
    return Resampled.of(np.abs(np.asarray(y_resampled, dtype=np.float64)))


def judge_backtests(S: Sequence[float], y: Sequence[float], backtests: Sequence[Backtest]) -> list[Status]:
    """What the backtests of a law say against it.

    Args:
        S: sizes, increasing; of equal ones, replicates, the mean counts.
        y: the values there.
        backtests: of any method.
    """
    statuses = []
    n_smaller = sum(size < S[-1] for size in S)
    last = [test for test in backtests if test.n_fitted == n_smaller]
    if last:
        predicted, measured = last[0].predicted.y, float(np.mean([test.measured for test in last]))
        next_smaller = float(np.mean([value for size, value in zip(S, y, strict=True) if size == S[n_smaller - 1]]))
        is_off = abs(predicted - measured) > FAILED * abs(measured)
        if is_off and abs(predicted - measured) >= abs(next_smaller - measured):
            statuses.append(Status.backtest_failed)
    inside = [test.is_inside for test in backtests if test.is_inside is not None]
    missed = inside.count(False)
    missed_last = sum(test.is_inside is False for test in last)
    if (missed_last and 2 * missed_last >= len(last)) or (missed > 1 and missed > (1 - HELD) * len(inside)):
        statuses.append(Status.intervals_missed)
    return statuses


def trend_doubts(alpha: float | None, lo: float | None, hi: float | None) -> list[Status]:
    """no_trend where the interval contains 0, barely_determined where it is as wide as the exponent."""
    if alpha is None or lo is None or hi is None:
        return []
    doubts = [Status.no_trend] if lo <= 0 <= hi else []
    return [*doubts, Status.barely_determined] if hi - lo >= abs(alpha) else doubts


def with_reasons(fit: PowerLawFit, reasons: Collection[Status]) -> PowerLawFit:
    """A fit with the first of the reasons as its status and all of them as its reasons."""
    return replace(fit, status=first_of(reasons), reasons=in_order(reasons))


def judged(fit: PowerLawFit) -> PowerLawFit:
    """A law with the status that its exponent has earned beside its own, and every reason."""
    return with_reasons(fit, [fit.status, *trend_doubts(fit.alpha, fit.alpha_lo, fit.alpha_hi)])
