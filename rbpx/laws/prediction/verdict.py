"""Decides which statuses hold for a law or a prediction, from tests and backtests, and whether it needs an offset.

docs/explanation/uncertainty.md lists them. Of true laws one in twenty has any of no_trend, bends, intervals_missed,
one_run and uneven_scatter, for any number of sizes.

Shapes: N models, in increasing order of size; G different sizes.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np

from rbpx.laws.forms.scatters import SCATTER, SCATTER_COUNTS
from rbpx.laws.intervals.estimate import Estimate, Replicates, Z, document_t, student_t
from rbpx.laws.intervals.lack_of_fit import line_residuals
from rbpx.laws.intervals.misfit import Departure, Misfit, misfit
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.law import PowerLaw, fit_power_law
from rbpx.laws.power.offset import jacobian, ln_law
from rbpx.laws.power.predicted import FAR, Prediction, extrapolation_factor
from rbpx.laws.prediction.calibration import error_in_sd, widening_factor
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.prediction.warnings import departure_from_forms, n_unexpected_tokens, vary_apart
from rbpx.laws.priors import FixedValues
from rbpx.status import Status, first_of, in_order

NEGLIGIBLE: Final = 0.05  # of the smallest y; a smaller offset changes no prediction of interest


class SupportedForm(StrEnum):
    """The form that the data support; `either` where they do not distinguish them."""

    power = "power"
    offset = "offset"
    either = "either"

    @property
    def word(self) -> str:
        """Name in tables and sentences."""
        return "undecided" if self is SupportedForm.either else self.value


@dataclass(frozen=True)
class FormVerdict:
    """Evidence for an irreducible part: the best offset with its interval; differences are positive for the offset.

    `law` is the law with that offset, not judged.
    """

    form: SupportedForm
    E: float | None
    E_lo: float | None
    E_hi: float | None
    aic_power_less_offset: float | None
    bic_power_less_offset: float | None
    law: PowerLaw = field(compare=False, repr=False)

    def record(self) -> dict[str, Any]:
        """Its numbers, as `params` have them."""
        return {name: each for name, each in vars(self).items() if name != "law"}


def compare_forms(power: PowerLaw, y_replicates: Replicates | None = None) -> FormVerdict | None:
    """Compares a power law with the offset form, both by ordinary least squares of ln y.

    None where the law does not fall with size, or fewer than 4 sizes are there.
    """
    if power.alpha.value is None or power.alpha.value <= 0:
        return None
    offset = fit_power_law(power.S, power.y, y_replicates, Method.offset, backtests=False, signed=power.sign == -1)
    if offset.status is Status.too_few_sizes:
        return None
    pairs = (power.aic, offset.aic), (power.bic, offset.bic)
    aic, bic = (None if a is None or b is None else a - b for a, b in pairs)
    return FormVerdict(_form_of(offset), offset.E.value, offset.E.lo, offset.E.hi, aic, bic, offset)


def _form_of(law: PowerLaw) -> SupportedForm:
    """The offset if the interval of E excludes 0, the power law if it has small offsets alone."""
    if law.E.lo is not None and law.E.lo > 0:
        return SupportedForm.offset
    negligible = law.E.hi is not None and law.E.hi <= NEGLIGIBLE * min(map(abs, law.y))
    return SupportedForm.power if negligible else SupportedForm.either


MIN_FITTED = 3


@dataclass(frozen=True)
class Backtest:
    """A prediction of size S from the `n_fitted` smallest models; its error is (predicted - measured) / measured."""

    n_fitted: int
    S: float
    predicted: Prediction
    measured: float
    error: float

    @property
    def is_inside(self) -> bool | None:
        """Whether the interval contains the measured value."""
        return self.predicted.estimate.holds(self.measured)


def backtest(fit_smallest: Callable[[int], PowerLaw], S: Sequence[float], y: Sequence[float]) -> tuple[Backtest, ...]:
    """Predicts each larger size from the m smallest models, from 3 different sizes on; unknown y are left out."""
    fits = {m: fit_smallest(m) for m in _whole_sizes(S)}
    return _compared({m: map(fit.predict, S[m:]) for m, fit in fits.items() if fit.theta_P is not None}, y)


def backtest_averaged(
    S: Sequence[float], y: Sequence[float], given: Sequence[FixedValues] = ()
) -> tuple[Backtest, ...]:
    """The backtests of model averaging; none where the y have no law."""
    whole = _whole_sizes(S)
    return _compared({m: average_forms(S[:m], y[:m], S[m:], given, each_form=False) or () for m in whole}, y)


def _whole_sizes(S: Sequence[float]) -> list[int]:
    """Numbers of the smallest models that are all models of 3, 4, ... sizes, without the largest size."""
    return [m for m in range(MIN_FITTED, len(S)) if S[m - 1] < S[m] and len(set(S[:m])) >= MIN_FITTED]


def _compared(predicted: Mapping[int, Iterable[Prediction]], y: Sequence[float]) -> tuple[Backtest, ...]:
    return tuple(
        Backtest(m, each.S, each, value, (each.y - value) / value)
        for m, by_smallest in predicted.items()
        for each, value in zip(by_smallest, y[m:], strict=False)
        if value != 0 and math.isfinite(value)
    )


SIGNIFICANT: Final = 0.05
FAILED: Final = 0.05  # of y, for backtest_failed
SHORT: Final = 2.0  # decades of S that determine little about the form
_OF_POINTS: Final = {  # of any form
    *(Status.no_trend, Status.one_document, Status.at_bound, Status.given_refused),
    Status.tokens,
}
# In model averaging these change coverage and errors by less than a third (benchmarks/worlds.py).
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
    """Every status that holds for a fitted law, including its own; replicates are of |y|."""
    if fit.alpha.value is None or fit.status is Status.no_trend:  # no numbers, or all y are equal
        return in_order([fit.status])
    of_form = _of_form(fit, y_replicates)
    against = _of_last(fit.S, fit.y, backtests) if Status.intervals_missed in of_form else []
    if vary_apart(fit.S, tokens) or n_unexpected_tokens(fit.S, tokens):
        against.append(Status.tokens)
    against += [Status.given_refused] if any(each.is_refused for each in fit.pinned) else []
    return in_order([fit.status, *_of_exponent(fit), *of_form, *against])


def judge_averaged(
    reasons: Iterable[Status], answer: Prediction, S: Sequence[float], y: Sequence[float], backtests: Sequence[Backtest]
) -> tuple[Status, ...]:
    """Every status of an averaged prediction, and the `REMARKS`; `reasons` are those of a law of the same points."""
    told = set(reasons)
    statuses = list(told & _OF_POINTS)
    if Status.bends in told and _turns(S, y):  # every form bends, none turns round
        statuses.append(Status.bends)
    departure = departure_from_forms(S, y)
    if departure is not None:
        statuses.append(_SAYS[departure])
    if math.log10(S[-1] / S[0]) < SHORT:
        statuses.append(Status.barely_determined)
    if extrapolation_factor(answer.S, S) > FAR:
        statuses.append(Status.beyond)
    return in_order([*statuses, *missed_by_backtests(S, backtests)])


def _turns(S: Sequence[float], y: Sequence[float]) -> bool:
    slope = np.polyder(np.polyfit(np.log(S), np.log(np.abs(y)), 2))
    return bool(np.prod(np.polyval(slope, np.log([S[0], S[-1]]))) < 0)


_HELD: Final = 0.8  # share of the intervals of backtests that must hold, or predictions are widened


def judge_alone(reasons: Iterable[Status], held: Iterable[bool | None]) -> tuple[Status, ...]:
    """Every status of a prediction by one form, whose backtests `held` or not; without any it is barely_determined."""
    told = [each for each in held if each is not None]
    missed = Status.intervals_missed if too_few_hold(told) else None
    return in_order([*reasons, missed if told else Status.barely_determined])


def too_few_hold(held: Iterable[bool | None]) -> bool:
    """Whether fewer than four fifths of the intervals of backtests hold."""
    told = [each for each in held if each is not None]
    return sum(told) < _HELD * len(told)


def widening_of(tests: Sequence[Backtest], n_models: int) -> float:
    """The factor by which backtests widen intervals; 1 where at least four fifths of their intervals hold.

    Backtests from one number of models count as one, in proportion to the models beyond two.
    """
    errors: dict[int, list[float]] = {}
    for test in tests:
        error = error_in_sd(test.predicted.estimate, test.measured)
        errors.setdefault(test.n_fitted, []).extend([] if error is None else [error])
    if not too_few_hold(test.is_inside for test in tests):
        return 1.0
    return widening_factor(((n - 2) / (n_models - 2), of_n) for n, of_n in errors.items())


def _of_exponent(fit: PowerLaw) -> list[Status]:
    alpha, lo, hi = fit.alpha.value or 0.0, fit.alpha.lo, fit.alpha.hi
    if lo is None and hi is None and fit.alpha.stderr is not None and fit.uncertainty is not None:
        half = student_t(fit.uncertainty.dof) * fit.alpha.stderr  # without replicates of documents: the scatter alone
        lo, hi = alpha - half, alpha + half
    warnings = trend_warnings(Estimate(alpha, -math.inf if lo is None else lo, math.inf if hi is None else hi))
    if len(set(fit.S)) > MIN_FITTED or fit.uncertainty is None or fit.method is Method.weighted:
        return warnings
    # One degree of freedom says little about the scatter, so the trend is held against what that can be.
    about, dof = fit.uncertainty, fit.uncertainty.dof + SCATTER_COUNTS
    scatter = math.sqrt((about.scatter**2 * about.dof + SCATTER_COUNTS * SCATTER**2) / dof)
    lo, hi = replace(about, scatter=scatter, dof=dof).interval(alpha, np.eye(len(about.bias_P))[1])
    return [*({Status.no_trend} if lo <= 0 <= hi else ()), *({*warnings} - {Status.no_trend})]


def _of_form(fit: PowerLaw, y_replicates: Replicates | None) -> list[Status]:
    pure_error, level, statuses = fit.pure_error, SIGNIFICANT, []
    if pure_error is not None:
        level /= 2
        statuses += [Status.bends] if pure_error.p < level else []
    test = _misfit(fit, y_replicates, level)
    found = [] if test is None else test.found
    return [*statuses, *(_SAYS[departure] for departure in found)]


def _misfit(fit: PowerLaw, replicates: Replicates | None, level: float) -> Misfit | None:
    """The test of the means of the sizes; None where documents alone explain its size."""
    S_G = np.unique(fit.S)
    of_size_GN = np.equal.outer(S_G, fit.S).astype(np.float64)
    mean_GN = of_size_GN / np.sqrt(of_size_GN.sum(axis=1, keepdims=True))  # times the root of the number of models
    residual_N, J_NP = _about(fit)
    test = misfit(np.log(S_G), mean_GN @ residual_N, mean_GN @ J_NP, level)
    if test is None or replicates is None or not replicates.suffices:
        return test
    variance = float(replicates.covariance_of((test.direction_N @ mean_GN)[None])[0, 0])
    return test if test.length**2 > document_t(replicates.n_effective) ** 2 * variance else None


def _about(fit: PowerLaw) -> tuple[Floats, Floats]:
    """Residuals of ln y, [N], and derivatives by the parameters, [N, P], near the best fit."""
    x_N, ln_y_N = np.log(fit.S) - math.log(fit.S_ref), np.log(np.abs(fit.y))
    if fit.method is not Method.offset or fit.theta_P is None:
        return line_residuals(x_N, ln_y_N), np.column_stack([np.ones(len(x_N)), x_N])
    return ln_y_N - ln_law(x_N, fit.theta_P), jacobian(x_N, fit.theta_P) * [1, -1, 1]


def _last(S: Sequence[float], backtests: Sequence[Backtest]) -> list[Backtest]:
    n_smaller = sum(size < S[-1] for size in S)
    return [test for test in backtests if test.n_fitted == n_smaller]


def _of_last(S: Sequence[float], y: Sequence[float], backtests: Sequence[Backtest]) -> list[Status]:
    last = _last(S, backtests)
    if not last:
        return []
    predicted, measured = last[0].predicted.y, float(np.mean([test.measured for test in last]))
    largest_smaller = max(size for size in S if size < S[-1])
    naive = float(np.mean([value for size, value in zip(S, y, strict=True) if size == largest_smaller]))
    off = abs(predicted - measured)
    return [Status.backtest_failed] if off > FAILED * abs(measured) and off >= abs(naive - measured) else []


def missed_by_backtests(S: Sequence[float], backtests: Sequence[Backtest]) -> list[Status]:
    """`intervals_missed` where the interval of the largest size, at its share of the level, misses half of its runs."""
    last, dof = _last(S, backtests), len(set(S)) - 3
    if not last or dof < 1:
        return []
    wider = Z * student_t(dof, SIGNIFICANT / 2) / student_t(dof)
    errors = [error_in_sd(test.predicted.estimate, test.measured) for test in last]
    missed = sum(error is not None and abs(error) > wider for error in errors)
    return [Status.intervals_missed] if 2 * missed >= len(last) else []


def trend_warnings(alpha: Estimate) -> list[Status]:
    """`no_trend` where the interval contains 0, `barely_determined` where it is at least as wide as alpha."""
    if alpha.value is None or alpha.ends is None:
        return []
    warnings = [Status.no_trend] if alpha.holds(0.0) else []
    return [*warnings, Status.barely_determined] if alpha.ends[1] - alpha.ends[0] >= abs(alpha.value) else warnings


def with_reasons(fit: PowerLaw, reasons: Sequence[Status | None]) -> PowerLaw:
    """The fit with these reasons and the first of them as its status."""
    return replace(fit, status=first_of(reasons), reasons=in_order(reasons))
