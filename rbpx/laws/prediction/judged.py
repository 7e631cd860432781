"""Predicts a law at other sizes as `predict` answers: averaged over forms, widened by its backtests, with statuses."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rbpx.laws.intervals.estimate import LEVEL
from rbpx.laws.power.predicted import Prediction
from rbpx.laws.prediction.calibration import widen
from rbpx.laws.prediction.prediction import average_forms
from rbpx.laws.prediction.verdict import (
    REMARKS,
    Backtest,
    backtest_averaged,
    judge_averaged,
    too_few_hold,
    widening_of,
)
from rbpx.laws.priors import FixedValues
from rbpx.status import Status, in_order


def predict_judged(
    S: Sequence[float],
    y: Sequence[float],
    targets: Sequence[float],
    of_law: Iterable[Status] = (),
    given: Sequence[FixedValues] = (),
    p: float = 1 - LEVEL,
) -> tuple[list[Prediction], tuple[Backtest, ...]] | None:
    """Predicts y at each target, and each measured size from smaller ones.

    None where `average_forms` has no prediction.
    The intervals of both are widened by the same factor, so that the backtests say what the predictions hold:
    intervals_missed where fewer than four fifths of them do.

    Args:
        S: sizes, increasing.
        y: values of one sign.
        targets: sizes to predict.
        of_law: statuses of the power law through these points.
        given: fixed parameters, as in `average_forms`.
        p: one minus the level of the intervals.
    """
    answers = average_forms(S, y, targets, given, p=p)
    if answers is None:
        return None
    tests, of_law, found = backtest_averaged(S, y, given), tuple(of_law), []
    by = widening_of(tests, len(S))
    wider = tuple(replace(test, predicted=_wider(test.predicted, by)) for test in tests)
    missed = [Status.intervals_missed] if too_few_hold(test.is_inside for test in wider) else []
    for each in answers:
        holds = in_order([*judge_averaged(of_law, each, S, y, tests), *missed])
        reasons, remarks = (tuple(s for s in holds if (s in REMARKS) is said) for said in (False, True))
        found.append(replace(_wider(each, by), widened=by, reasons=reasons, remarks=remarks))
    return found, wider


def _wider(of: Prediction, by: float) -> Prediction:
    y = widen(of.estimate, by)
    return replace(of, lo=y.lo, hi=y.hi)
