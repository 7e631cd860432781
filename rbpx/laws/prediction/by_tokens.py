"""Predicts other sizes by laws in size and tokens, where tokens vary apart from size."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.power.predicted import Prediction
from rbpx.laws.prediction.verdict import Backtest
from rbpx.laws.surface.averaged import backtest_budgets, forms_to_mix, predict_averaged, widened_tests
from rbpx.laws.surface.design import judge_design
from rbpx.laws.surface.fit import fit_surface
from rbpx.laws.surface.runs import Runs
from rbpx.status import Status, in_order


def predict_at_usual_tokens(
    S: Sequence[float],
    y: Sequence[float],
    D: Sequence[float],
    targets: Sequence[float],
    of_law: Sequence[Status],
    p: float,
) -> tuple[list[Prediction], tuple[Backtest, ...]] | None:
    """Predicts by surfaces, at as many tokens as a line of ln D on ln S gives; None where these are not identified."""
    runs = Runs.of(S, D, y)
    if min(y) <= 0 or judge_design(runs.S_N, runs.D_N).is_collinear:
        return None
    forms = forms_to_mix(runs)
    fits = [fit_surface(runs, form, n_replicates=0) for form in forms]
    if all(fit.surface is None for fit in fits):
        return None
    slope, level = np.polyfit(np.log(S), np.log(D), 1)
    points = [(size, math.exp(level + slope * math.log(size))) for size in targets]
    budgets, kept, found = backtest_budgets(runs, forms), [Status.one_document, Status.given_refused], []
    for (size, tokens), at in zip(points, predict_averaged(fits, points, budgets, p=p), strict=True):
        if at.y.value is None:
            return None
        of_form = next(fit.reasons for fit in fits if fit.form == max(at.weights, key=at.weights.__getitem__))
        reasons = in_order([*(each for each in of_law if each in kept), *of_form, *at.reasons])
        within = {
            form: _at(size, tokens, each, at.beyond) for form, each in at.within.items() if each.value is not None
        }
        answer = _at(size, tokens, at.y, at.beyond)
        found.append(replace(answer, weights=at.weights, within=within, widened=at.widened, reasons=reasons))
    tests = [
        Backtest(int(of.fitted_N.sum()), test.S, _at(test.S, test.D, test.predicted, of.gap), test.measured, test.error)
        for of in widened_tests(budgets)
        for test in of.held_out
        if test.error is not None
    ]
    return found, tuple(tests)


def _at(S: float, D: float, y: Estimate, beyond: float) -> Prediction:
    return Prediction(S, math.nan if y.value is None else y.value, y.lo, y.hi, beyond, D=D)
