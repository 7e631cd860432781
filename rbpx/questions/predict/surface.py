"""Predicts a new run of given size and tokens (predict S= D=) from all trainings of a family.

The answer, method `combined`, is averaged over forms. Each form has rows of its own, and backtests without the largest
runs in S, D and C.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import duckdb

from rbpx.display.fixed_parameters import said_of_given
from rbpx.laws.prediction.prediction import COMBINED, WITHOUT_LARGEST
from rbpx.laws.priors import Prior
from rbpx.laws.surface.averaged import (
    AveragedPrediction,
    BudgetTest,
    backtest_budgets,
    forms_to_mix,
    most_influential,
    predict_averaged,
    widened_tests,
)
from rbpx.laws.surface.checks import HeldOut, held_out
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.fixed_parameters import fit_surface_with_priors
from rbpx.questions.predict import PredictKeys
from rbpx.questions.predict.register import forecast_rows, forecast_writer
from rbpx.questions.predict.rows import (
    answer_sentence,
    backtest_summary,
    fixed_parameter_rows,
    fixed_parameter_table,
    influence_keys,
    influence_sentence,
    prediction,
    prediction_tables,
    tail_probability,
    values,
    without_largest_clause,
)
from rbpx.questions.result import Result
from rbpx.runs.fits import alike, naming
from rbpx.runs.group import Group
from rbpx.runs.points.outliers import outlier_rows, said_of_largest, said_of_runs, tested_quantities
from rbpx.runs.points.surfaces import (
    MOST_REPLICATES,
    Trained,
    asked_forms,
    doubts_of_points,
    judged_alone,
    surface_record,
    with_constants,
)
from rbpx.store.store import Record


class _Quantity(NamedTuple):
    """One quantity.

    Attributes:
        alone: the fits without bootstrap replicates, since a new run is read on the same documents.
        tests: of each form on the largest runs.
        budgets: predictions of larger budgets by the average over forms.
        records: rows of `fits`, by form.
    """

    trained: Trained
    fits: Sequence[Surface]
    alone: Sequence[Surface]
    tests: Sequence[Sequence[HeldOut]]
    budgets: Sequence[BudgetTest]
    records: Mapping[str, Record]

    @property
    def best(self) -> Surface:
        """The form with the least BIC."""
        return _least_bic(self.fits)


def _least_bic(fits: Sequence[Surface]) -> Surface:
    """The first one where none has a BIC."""
    return min(fits, key=lambda fit: math.inf if fit.bic is None else fit.bic)


def predict_from_surface(connection: duckdb.DuckDBPyConnection, group: Group, request: PredictKeys) -> Result:
    """Predicts every quantity at every requested point, with a row for each held-out run."""
    quantities = tested_quantities(connection, group, request)
    with naming(group.title):
        laws = [_fitted(group, trained, request) for trained in quantities]
    rows = [list(_rows(group, of, request)) for of in laws]
    answers = [
        [row | backtest_summary(_of(own, "backtest", COMBINED)) for row in _of(own, "prediction", COMBINED)]
        for own in rows
    ]
    forms = list(dict.fromkeys(form for of in laws for form in of.records))
    asked = asked_forms(group, forms, request, request.unique_tokens)
    every, first = alike([row for own in rows for row in own]), [row for own in answers for row in own]
    said = [
        *answer_sentence(first),
        *said_of_runs(group, quantities),
        *influence_sentence(answers),
        *(line for of in laws for line in said_of_given(of.trained.title, of.best.pinned)),
    ]
    unasked = {*forms} - {*asked}
    told = [row for row in _of(every, "prediction") if not asked or row["method"] in (COMBINED, *asked)]
    tables = prediction_tables("Predictions for new runs", told, first, group.title, forms, bool(asked))
    registered = (
        forecast_rows(own, of.records[of.best.form], of.best.n_points, _points(of.trained))
        for own, of in zip(rows, laws, strict=True)
    )
    return Result(
        [group],
        alike([*(row for row in every if row["method"] not in unasked), *outlier_rows(group, quantities)]),
        [*tables, *fixed_parameter_table(_of(every, "constant"), group.title)],
        said,
        beside=[row for row in every if row["method"] in unasked],
        fits=[fit for of in laws for fit in of.records.values()],
        notes=[line for own, of in zip(rows, laws, strict=True) for line in _said_without(own, of.trained)],
        then=forecast_writer(request, group, registered),
    )


def _of(rows: Sequence[Record], kind: str, method: str | None = None) -> list[Record]:
    return [row for row in rows if row["kind"] == kind and method in (None, row["method"])]


def _said_without(rows: Sequence[Record], trained: Trained) -> Iterator[str]:
    off = said_of_largest(trained)
    if off is not None:
        yield f"{off}{without_largest_clause(_of(rows, 'prediction', WITHOUT_LARGEST), 2)}."


def _points(trained: Trained) -> list[list[float]]:
    return [trained.runs.S_N.tolist(), trained.runs.D_N.tolist(), (trained.sign * trained.runs.y_N).tolist()]


def _options(request: PredictKeys) -> dict[str, Any]:
    return {"objective": request.objective, "delta": request.delta}


def _fitted(group: Group, trained: Trained, request: PredictKeys) -> _Quantity:
    runs, pins, n, options = trained.runs, request.pins, min(request.resamples, MOST_REPLICATES), _options(request)
    forms, same = forms_to_mix(runs, pins), replace(runs, y_BN=None)
    with_constants(forms, pins)
    fits = [fit_surface_with_priors(runs, form, pins, n, **options) for form in forms]
    alone = fits if runs.y_BN is None else [fit_surface_with_priors(same, form, pins, n, **options) for form in forms]
    tests = [held_out(runs, form, n, pins, **options) for form in forms]
    budgets = backtest_budgets(runs, forms, pins, **options)
    records = {fit.form: surface_record(group, trained, fit, of) for fit, of in zip(fits, tests, strict=True)}
    return _Quantity(trained, fits, alone, tests, budgets, records)


def _rows(group: Group, of: _Quantity, request: PredictKeys) -> Iterator[Record]:
    best, runs, sign = of.best, of.trained.runs, of.trained.sign

    def refit(held: dict[str, float]) -> list[Record]:
        pins = {name: Prior(value) for name, value in held.items()}
        others = [
            fit_surface_with_priors(runs, fit.form, pins, 0, is_tested=False, **_options(request)) for fit in of.alone
        ]
        return [values(answer.y.times(sign)) for answer in _averaged(others, of.budgets, request)]

    found = list(_predictions(group, of, request))
    now = [row for row in found if row["method"] == COMBINED]
    beside = fixed_parameter_rows(_least_bic(of.alone).pinned, now, float(runs.y_N.min(initial=math.inf)), refit)
    named = dict.fromkeys((*group.first.names(), "axis", "measured", "error", "held"))
    named |= {"law": of.trained.law, **group.names(), "k": of.trained.k, "n_fitted": best.n_points}
    given = ({"method": COMBINED} | row for row in beside)
    for row in (*found, *_without_largest(of, now, request), *given, *_backtests(of)):
        fit = of.records.get(row["method"], of.records[best.form])
        yield {"kind": row["kind"], "fit_id": fit["fit_id"], **named, **row}


def _averaged(fits: Sequence[Surface], budgets: Sequence[BudgetTest], request: PredictKeys) -> list[AveragedPrediction]:
    targets = request.points_to_predict()
    p = tail_probability(len(targets), request.joint)
    return predict_averaged(fits, targets, budgets, request.unique_tokens, p)


def _predictions(group: Group, of: _Quantity, request: PredictKeys) -> Iterator[Record]:
    sign, U, targets = of.trained.sign, request.unique_tokens, request.points_to_predict()
    doubts = {fit.form: doubts_of_points(group, of.trained, fit) for fit in of.alone}
    alone = {
        fit.form: judged_alone(group, of.trained, fit, tests) for fit, tests in zip(of.alone, of.tests, strict=True)
    }
    predictions, moves = _averaged(of.alone, of.budgets, request), most_influential(of.alone, targets, U)
    for (S, D), answer, moved in zip(targets, predictions, moves, strict=True):
        heaviest = max(answer.weights, key=lambda name: answer.weights[name], default=of.fits[0].form)
        reasons = [*doubts[heaviest], *answer.reasons]
        at = {"S": S, "D": D, "beyond": answer.beyond} | ({"n_joint": len(targets)} if request.joint else {})
        at |= {} if U is None else {"unique_tokens": U}
        own = {name: getattr(answer, name) for name in ("widened", "weights", "axis")}
        own |= influence_keys(moved, of.trained.labels, sign)
        yield {"method": COMBINED} | prediction(at | values(answer.y.times(sign)), reasons, **own)
        for form, y in answer.within.items():
            yield {"method": form} | prediction(at | values(y.times(sign)), [*reasons, *alone[form]])


def _without_largest(of: _Quantity, now: Sequence[Record], request: PredictKeys) -> Iterator[Record]:
    without, options = of.trained.without_largest, _options(request)
    if without is None:
        return
    runs, forms = replace(without.runs, y_BN=None), [fit.form for fit in of.alone]
    fits = [fit_surface_with_priors(runs, form, request.pins, 0, is_tested=False, **options) for form in forms]
    budgets = backtest_budgets(runs, forms, request.pins, **options)
    for row, answer in zip(now, _averaged(fits, budgets, request), strict=True):
        at: Record = {name: row[name] for name in ("S", "D", "beyond", "n_joint", "unique_tokens") if name in row}
        at |= values(answer.y.times(of.trained.sign))
        own = {name: getattr(answer, name) for name in ("widened", "weights")}
        about = {"method": WITHOUT_LARGEST, "n_fitted": len(runs.S_N)}
        yield about | prediction(at, row["reasons"], **own)


def _backtests(of: _Quantity) -> Iterator[Record]:
    tests: list[tuple[str, int | None, HeldOut]] = []
    tests += [
        (COMBINED, int(each.fitted_N.sum()), test) for each in widened_tests(of.budgets) for test in each.held_out
    ]
    tests += [(fit.form, None, test) for fit, own in zip(of.fits, of.tests, strict=True) for test in own]
    for method, n_fitted, test in tests:
        row = {"kind": "backtest", "method": method, "n_fitted": n_fitted, **of.trained.members[test.at].names()}
        row |= {"axis": test.axis.value, "S": test.S, "D": test.D, **values(test.predicted.times(of.trained.sign))}
        yield row | {"measured": of.trained.sign * test.measured, "error": test.error, "held": test.is_inside}
