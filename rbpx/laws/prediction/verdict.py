"""Whether a law stands, and whether it needs an offset: the one place that says when each status of a law holds.

A referee asks of a law whether there is a trend, whether its form is that of the points, whether it predicts, and how
well its exponent is known. Each failed test is a status with its remedy (`rbpx.status`); `ok` means that none failed.
Several may fail: `judge` gives all of them, in the order of `Status`, and the first is the status of the fit.

| status | holds where |
|---|---|
| no_trend | the 95 % interval of alpha contains 0 |
| bends, intervals_missed, one_run, uneven_scatter | the points depart from the law by a bend, by the largest sizes, by another size, by scatter that grows (`rbpx.laws.intervals.misfit`); (a prediction over forms) such a departure, other than a bend, is three times as likely as all forms |
| bends | or, where models of one size were trained more than once, the law is off by significantly more than these differ (each test then has half of the level) |
| not_monotone | it bends so, and turns round between the sizes |
| intervals_missed | or, over forms, the interval of the largest size, predicted from the others, misses at a level of 97.5 % |
| backtest_failed | intervals_missed holds, and that prediction is off by more than 5 % and by no less than the next smaller size's own value would be |
| undertrained, overtrained | the largest size saw fewer or more tokens than the smaller ones announce (`rbpx.laws.prediction.warnings`) |
| barely_determined | the 95 % interval of alpha is unbounded, or at least as wide as alpha; (a prediction over forms) the sizes span less than two decades |
| beyond | (a prediction) S is more than 10 times outside the sizes |

The first five say what tests found: of true laws, one in twenty has any of them, whatever the number of sizes. The
others are facts.

A backtest fits a law to the smallest sizes and compares it with each larger one; models of one size are fitted together
or predicted together. A power law y = C S^(-alpha) is y = E + C S^(-alpha) with E = 0, so the interval of E says which
of the two the data support: one that leaves out 0 calls for the offset, one that contains only small offsets for the
power law, any other for neither.

Shapes: N models, in increasing order of size; G different sizes.
"""  # noqa: E501

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from scipy.special import stdtrit

from rbpx.laws.intervals.estimate import TAILS, Replicates, Z, document_t, student_t
from rbpx.laws.intervals.lack_of_fit import line_residuals
from rbpx.laws.intervals.misfit import Departure, Misfit, misfit
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.power.predictor import Prediction, outside
from rbpx.laws.power.regression import jacobian, ln_law
from rbpx.laws.prediction.calibration import in_sd, widening
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.prediction.warnings import departure_over_forms, tokens_off
from rbpx.laws.priors import FixedValues
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


def compare_forms(power: PowerLaw, y_replicates: Replicates | None = None) -> FormVerdict | None:
    """Compare a power law with the same law and an offset, both by ordinary least squares of ln y.

    Args:
        power: the power law.
        y_replicates: of |y|.

    Returns:
        The verdict; None where the law does not fall with size, or there are fewer than the 4 sizes that an offset
        needs.
    """
    if power.status is not None or power.alpha.value is None or power.alpha.value <= 0:
        return None
    offset = fit_power_law(power.S, [abs(y) for y in power.y], y_replicates, Method.offset, backtests=False)
    if offset.status is Status.too_few_sizes:
        return None
    pairs = (power.aic, offset.aic), (power.bic, offset.bic)
    differences = [None if a is None or b is None else a - b for a, b in pairs]
    return FormVerdict(form_of([offset]), offset.E.value, offset.E.lo, offset.E.hi, *differences)


def form_of(laws: Sequence[PowerLaw]) -> Form:
    """The form that laws with an offset call for: it, where an interval of E leaves out 0."""
    if any(law.E.lo is not None and law.E.lo > 0 for law in laws):
        return Form.offset
    negligible = all(law.E.hi is not None and law.E.hi <= NEGLIGIBLE * min(map(abs, law.y)) for law in laws)
    return Form.power if negligible else Form.either


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


def backtest(fit_smallest: Callable[[int], PowerLaw], S: Sequence[float], y: Sequence[float]) -> tuple[Backtest, ...]:
    """Compare a law fitted to the smallest sizes with each larger one, from 3 different sizes up.

    Args:
        fit_smallest: the fit to the m smallest models; one without numbers predicts nothing.
        S: sizes, increasing.
        y: the values there, with their sign; one that is 0 or not finite has no relative error and is left out.
    """
    fits = {m: fit_smallest(m) for m in _whole_sizes(S)}
    return _compared({m: map(fit.predict, S[m:]) for m, fit in fits.items() if fit.theta_P is not None}, y)


def backtest_over_forms(
    S: Sequence[float], y: Sequence[float], given: Sequence[FixedValues] = ()
) -> tuple[Backtest, ...]:
    """The same for the prediction over forms (`rbpx.laws.prediction.prediction`); none where the y have no law."""
    whole = _whole_sizes(S)
    return _compared({m: average_forms(S[:m], y[:m], S[m:], given, each_form=False) or () for m in whole}, y)


def _whole_sizes(S: Sequence[float]) -> list[int]:
    """How many of the smallest models are all those of 3 sizes, of 4, and so on, without the largest size."""
    return [m for m in range(MIN_FITTED, len(S)) if S[m - 1] < S[m] and len(set(S[:m])) >= MIN_FITTED]


def _compared(predicted: Mapping[int, Iterable[Prediction]], y: Sequence[float]) -> tuple[Backtest, ...]:
    return tuple(
        Backtest(m, told.S, told, value, (told.y - value) / value)
        for m, by_smallest in predicted.items()
        for told, value in zip(by_smallest, y[m:], strict=False)
        if value != 0 and math.isfinite(value)
    )


FAR: Final = 10  # times outside the sizes: beyond what any backtest covers
SIGNIFICANT: Final = 0.05
FAILED: Final = 0.05  # of y: a backtest that is closer has not failed
SHORT: Final = 2.0  # decades of S, below which the sizes say little about the form
_OF_POINTS: Final = (  # of any form
    *(Status.no_trend, Status.not_monotone, Status.one_document, Status.power_law_limit, Status.given_refused),
    *(Status.undertrained, Status.overtrained),
)
# Of predictions over forms these change neither how many hold nor their errors by a third (benchmarks/worlds.py).
REMARKS: Final = (Status.one_run, Status.barely_determined)
_SAYS: Final = {
    Departure.bend: Status.bends,
    Departure.end: Status.intervals_missed,
    Departure.run: Status.one_run,
    Departure.scatter: Status.uneven_scatter,
}


def judge(
    fit: PowerLaw,
    backtests: Sequence[Backtest] = (),
    y_replicates: Replicates | None = None,
    tokens: Sequence[float | None] | None = None,
) -> tuple[Status, ...]:
    """Every status that holds for a fitted law, in the order of `Status`; none where the law stands.

    Args:
        fit: a law; the status it has already is one of those returned, unless it is ok.
        backtests: of the same law, by the same method (`rbpx.laws.prediction.verdict`).
        y_replicates: of |y|.
        tokens: that each model was trained on, None where they are not known.
    """
    if fit.alpha.value is None or fit.status is Status.no_variation:
        return in_order([fit.status])
    of_form = _of_form(fit, y_replicates)
    against = _of_last(fit.S, fit.y, backtests) if Status.intervals_missed in of_form else []
    if n_off := tokens_off(fit.S, tokens):
        against.append(Status.undertrained if n_off < 0 else Status.overtrained)
    against += [Status.given_refused] if any(each.is_refused for each in fit.pinned) else []
    return in_order([fit.status, *_of_exponent(fit), *of_form, *against])


def judge_over_forms(
    reasons: Iterable[Status], answer: Prediction, S: Sequence[float], y: Sequence[float], backtests: Sequence[Backtest]
) -> tuple[Status, ...]:
    """Every status that holds for a prediction over forms at one size, and what else holds that widens it (`REMARKS`).

    Args:
        reasons: those of the power law through the same points.
        answer: the prediction.
        S: sizes, increasing.
        y: the values there.
        backtests: of the prediction over forms.
    """
    statuses: list[Status] = [status for status in reasons if status in _OF_POINTS]
    departure = departure_over_forms(S, y)
    if departure is not None:
        statuses.append(_SAYS[departure])
    if math.log10(S[-1] / S[0]) < SHORT:
        statuses.append(Status.barely_determined)
    if outside(answer.S, S) > FAR:
        statuses.append(Status.beyond)
    return in_order([*statuses, *missed_by_backtests(S, backtests)])


def missed_by_backtests(S: Sequence[float], backtests: Sequence[Backtest]) -> list[Status]:
    """intervals_missed where the interval of the largest size misses it."""
    return [Status.intervals_missed] if _misses(S, backtests) else []


_HELD: Final = 0.8  # of the intervals of backtests; where fewer hold, those of predictions are widened


def widening_of(tests: Sequence[Backtest], n_models: int) -> float:
    """By what factor backtests say that intervals are to be widened; 1 where four fifths of theirs hold.

    Those from so many models count as one, by the models beyond the two that a power law takes.
    """
    errors: dict[int, list[float]] = {}
    for test in tests:
        error = in_sd(test.predicted.estimate, test.measured)
        errors.setdefault(test.n_fitted, []).extend([] if error is None else [error])
    held = [test.is_inside for test in tests if test.is_inside is not None]
    if sum(held) >= _HELD * len(held):
        return 1.0
    return widening(((n - 2) / (n_models - 2), of_n) for n, of_n in errors.items())


def _of_exponent(fit: PowerLaw) -> list[Status]:
    alpha, lo, hi = fit.alpha.value or 0.0, fit.alpha.lo, fit.alpha.hi
    if lo is None and hi is None and fit.alpha.stderr is not None and fit.uncertainty is not None:
        half = student_t(fit.uncertainty.dof) * fit.alpha.stderr  # no documents: the scatter alone
        lo, hi = alpha - half, alpha + half
    return trend_doubts(alpha, -math.inf if lo is None else lo, math.inf if hi is None else hi)


def _of_form(fit: PowerLaw, y_replicates: Replicates | None) -> list[Status]:
    pure_error, level, statuses = fit.pure_error, SIGNIFICANT, []
    if pure_error is not None:
        level /= 2
        statuses += [Status.bends] if pure_error.p < level else []
    test = _misfit(fit, y_replicates, level)
    found = [] if test is None else test.found
    if Departure.bend in found:
        ln_S_N = np.log(fit.S)
        curve = np.polyfit(ln_S_N, np.log(np.abs(fit.y)), 2)
        if np.prod(np.polyval(np.polyder(curve), [ln_S_N.min(), ln_S_N.max()])) < 0:
            statuses.append(Status.not_monotone)
    return [*statuses, *(_SAYS[departure] for departure in found)]


def _misfit(fit: PowerLaw, replicates: Replicates | None, level: float) -> Misfit | None:
    """The test of the law by the means of its sizes; None where documents alone move them as far from it."""
    S_G = np.unique(fit.S)
    of_size_GN = np.equal.outer(S_G, fit.S).astype(np.float64)
    mean_GN = of_size_GN / np.sqrt(of_size_GN.sum(axis=1, keepdims=True))  # times the root of how many there are
    residual_N, J_NP = _about(fit)
    test = misfit(np.log(S_G), mean_GN @ residual_N, mean_GN @ J_NP, level)
    if test is None or replicates is None or not replicates.suffices:
        return test
    variance = float(replicates.covariance_of((test.direction_N @ mean_GN)[None])[0, 0])
    return test if test.length**2 > document_t(replicates.n_effective) ** 2 * variance else None


def _about(fit: PowerLaw) -> tuple[Floats, Floats]:
    """What the parameters may still change: ln y less that of the law, [N], and its derivatives by these, [N, P].

    The line of ln y is linear, so that of an offset alone has to be near its best.
    """
    x_N, ln_y_N = np.log(fit.S) - math.log(fit.S_ref), np.log(np.abs(fit.y))
    if fit.method is not Method.offset or fit.theta_P is None:
        return line_residuals(x_N, ln_y_N), np.column_stack([np.ones(len(x_N)), x_N])
    return ln_y_N - ln_law(x_N, fit.theta_P), jacobian(x_N, fit.theta_P) * [1, -1, 1]


def _last(S: Sequence[float], backtests: Sequence[Backtest]) -> list[Backtest]:
    """The backtests of the models of the largest size by all smaller ones."""
    n_smaller = sum(size < S[-1] for size in S)
    return [test for test in backtests if test.n_fitted == n_smaller]


def _of_last(S: Sequence[float], y: Sequence[float], backtests: Sequence[Backtest]) -> list[Status]:
    """backtest_failed where the largest size is predicted badly; of equal sizes, replicates, the mean counts."""
    last = _last(S, backtests)
    if not last:
        return []
    predicted, measured = last[0].predicted.y, float(np.mean([test.measured for test in last]))
    largest_smaller = max(size for size in S if size < S[-1])
    naive = float(np.mean([value for size, value in zip(S, y, strict=True) if size == largest_smaller]))
    off = abs(predicted - measured)
    return [Status.backtest_failed] if off > FAILED * abs(measured) and off >= abs(naive - measured) else []


def _misses(S: Sequence[float], backtests: Sequence[Backtest]) -> bool:
    """Whether the interval of the largest size, widened to its share of the level, misses half of its models or more.

    Ends are as far out in ln y as quantiles of Student's t of that level are.
    """
    last, dof = _last(S, backtests), len(set(S)) - 3
    if not last or dof < 1:
        return False
    wider = Z * float(stdtrit(dof, 1 - SIGNIFICANT / 4) / stdtrit(dof, TAILS[1]))
    errors = [in_sd(test.predicted.estimate, test.measured) for test in last]
    return 2 * sum(error is not None and abs(error) > wider for error in errors) >= len(last)


def trend_doubts(alpha: float | None, lo: float | None, hi: float | None) -> list[Status]:
    """no_trend where the interval contains 0, barely_determined where it is as wide as the exponent."""
    if alpha is None or lo is None or hi is None:
        return []
    doubts = [Status.no_trend] if lo <= 0 <= hi else []
    return [*doubts, Status.barely_determined] if hi - lo >= abs(alpha) else doubts


def with_reasons(fit: PowerLaw, reasons: Sequence[Status | None]) -> PowerLaw:
    """A fit with the first of the reasons as its status and all of them as its reasons."""
    return replace(fit, status=first_of(reasons), reasons=in_order(reasons))


def judged(fit: PowerLaw) -> PowerLaw:
    """A law with the status that its exponent has earned beside its own, and every reason."""
    return with_reasons(fit, [fit.status, *trend_doubts(fit.alpha.value, fit.alpha.lo, fit.alpha.hi)])
