"""Fits a law and judges it, as `fit` does, and predicts it at other sizes, as `predict` does, widened and judged."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rbpx.laws.intervals.estimate import LEVEL, Replicates
from rbpx.laws.names import Method
from rbpx.laws.numeric import Floats
from rbpx.laws.power.fixed_parameters import fit_law_with_priors
from rbpx.laws.power.law import PowerLaw, fit_power_law, with_backtest
from rbpx.laws.power.predicted import Prediction
from rbpx.laws.prediction.calibration import widen
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.prediction.verdict import (
    REMARKS,
    Backtest,
    backtest,
    backtest_averaged,
    judge,
    judge_averaged,
    too_few_hold,
    widening_of,
    with_reasons,
)
from rbpx.laws.prediction.warnings import vary_apart
from rbpx.laws.priors import NO_PRIORS, FixedValues, Priors
from rbpx.status import Status, in_order

_WIDEST: Final = 10  # times its lower end is the upper end of an interval that tells something


def fit_judged(
    S: Floats,
    y: Floats,
    replicates: Replicates | None,
    method: Method,
    pins: Priors = NO_PRIORS,
    signed: bool = False,
    weight_N: Floats | None = None,
    tokens: Sequence[float | None] | None = None,
    tests: bool = True,
    fit: PowerLaw | None = None,
) -> tuple[PowerLaw, tuple[Backtest, ...]]:
    """Fits a law, predicts each larger size from smaller ones, and adds every status that holds.

    Sizes increase; replicates are of y times its sign. Without `tests` it is fitted alone. `fit` is the law where these
    points have been fitted already, without backtests.
    """
    if fit is not None:
        fit = with_backtest(fit)
    elif pins:
        fit = fit_law_with_priors(S, y, replicates, method, pins, signed=signed)
    else:
        fit = fit_power_law(S, y, replicates, method, signed=signed, weight_N=weight_N)
    if not tests:
        return fit, ()

    def smallest(m: int) -> PowerLaw:
        # The larger model has the same documents, and refitting an offset to all replicates is slow.
        kept = None if replicates is None or method is Method.offset else replicates.smallest(m)
        few = None if weight_N is None else weight_N[:m]
        return fit_power_law(S[:m], y[:m], kept, method, False, signed, fit.given, few)

    found = backtest(smallest, S.tolist(), y.tolist())
    return with_reasons(fit, judge(fit, found, positive_replicates(replicates), tokens)), found


def positive_replicates(replicates: Replicates | None) -> Replicates | None:
    """The replicates of |y|."""
    if replicates is None or not replicates.n_left_out:
        return replicates
    return Replicates.of(np.abs(replicates.y_BN), replicates.n_effective)


def predict_judged(
    S: Sequence[float],
    y: Sequence[float],
    targets: Sequence[float],
    of_law: Iterable[Status] = (),
    given: Sequence[FixedValues] = (),
    p: float = 1 - LEVEL,
    tokens: Sequence[float | None] | None = None,
    odds: "Odds | None" = None,
) -> tuple[list[Prediction], tuple[Backtest, ...]] | None:
    """Predicts y at each target, and each measured size from smaller ones; None where `average_forms` predicts nothing.

    Intervals of both are widened alike, so that the backtests say what the predictions hold. `of_law` are statuses of
    the power law through these points. Where `tokens` vary apart from size, size and tokens predict. Of `odds`
    the predictions are those of their values.
    """
    of_law = tuple(of_law)
    if tokens is not None and not given and vary_apart(S, tokens):
        # Imported here: surfaces take long to import, and a law in size does not need them.
        from rbpx.laws.prediction.by_tokens import predict_at_usual_tokens

        of_both = predict_at_usual_tokens(S, y, [D or math.nan for D in tokens], targets, of_law, p)
        if of_both is not None:
            return of_both
    answers = average_forms(S, y, targets, given, p=p)
    if answers is None:
        return None
    tests, found = backtest_averaged(S, y, given), []
    by = widening_of(tests, len(S))
    wider = tuple(replace(test, predicted=_wider(test.predicted, by)) for test in tests)
    missed = [Status.intervals_missed] if too_few_hold(test.is_inside for test in wider) else []
    for each in answers:
        answer = _wider(each, by) if odds is None else odds.back(_wider(each, by))
        holds = in_order([*judge_averaged(of_law, each, S, y, tests), *missed])
        reasons, remarks = (tuple(s for s in holds if (s in REMARKS) is said) for said in (False, True))
        least, most = sorted(map(abs, answer.estimate.ends or (1.0, 1.0)))
        if most >= _WIDEST * least:
            reasons = in_order([*reasons, Status.barely_determined])
        found.append(replace(answer, widened=by, reasons=reasons, remarks=remarks))
    return found, wider


def _wider(of: Prediction, by: float) -> Prediction:
    y = widen(of.estimate, by)
    return replace(of, lo=y.lo, hi=y.hi)


@dataclass(frozen=True)
class Odds:
    """Values between two bounds as odds, (far - y) / (y - near); they fall towards `far`, which y approaches."""

    near: float
    far: float

    @classmethod
    def of(cls, y: Floats, bounds: tuple[float, float]) -> "Odds":
        """The odds of values in order of size.

        Raises:
            ValueError: a value is not between the bounds.
        """
        lo, hi = bounds
        outside_N = ~((y > lo) & (y < hi))
        if outside_N.any():
            raise ValueError(f"y must lie between the bounds {lo} and {hi}, got {y[outside_N][0]}")
        return cls(lo, hi) if y[-1] >= y[0] else cls(hi, lo)

    def of_y(self, y: Floats) -> Floats:
        """The odds of values."""
        return np.asarray((self.far - y) / (y - self.near))

    def back(self, of: Prediction) -> Prediction:
        """The prediction of a value from that of its odds."""
        y, *ends = ((self.far + self.near * z) / (1 + z) for z in (of.y, *(of.estimate.ends or ())))
        lo, hi = sorted(ends) if ends else (None, None)
        return replace(of, y=y, lo=lo, hi=hi, within={})
