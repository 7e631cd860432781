"""Predicts what a new run of given size and tokens would show (predict S= D=), from all trainings of a family.

The answer is the prediction over forms (`rbpx.laws.surface.averaged`), method `combined`; the forms stand beside it.
Each form is also fitted without the largest runs in S, D and C, and compared with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from rbpx.analyses.predict.register import register_answers
from rbpx.config.request import Request
from rbpx.groups.points.surfaces import MOST_RESAMPLES, Trained, doubts_of_points, surface_record, trained_quantities
from rbpx.groups.select.trainings import TrainingGroup
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.predict.prediction import COMBINED, outside
from rbpx.laws.predict.verdict import FAR
from rbpx.laws.surface.averaged import OverForms, forms_to_mix, predict_over_forms
from rbpx.laws.surface.checks import Compared, compare_each, mean_error
from rbpx.laws.surface.fit import SurfaceFit
from rbpx.status import Doubted, Status, in_order
from rbpx.store.store import Record, Store


@dataclass(frozen=True)
class AtPoint(Doubted):
    """One prediction of one quantity.

    Attributes:
        S: size.
        D: tokens.
        over_forms: the combined answer, and that of each form.
        beyond: the factor by which the point lies outside the sizes or the tokens, whichever is more; 1 within both.
        reasons: every status that holds.
    """

    S: float
    D: float
    over_forms: OverForms
    beyond: float
    reasons: tuple[Status, ...]


@dataclass(frozen=True, eq=False)
class SurfaceForesight:
    """One quantity: its points, its forms with their held-out runs, and its predictions."""

    trained: Trained
    forms: tuple[Compared, ...]
    points: tuple[AtPoint, ...]

    @property
    def best(self) -> Compared:
        """The form with the least BIC; the first one where none has any."""
        known = [each for each in self.forms if each.fit.bic is not None]
        return min(known, key=lambda each: each.fit.bic or 0.0) if known else self.forms[0]

    def signed(self, y: Estimate) -> Estimate:
        """A value with the sign of the quantity."""
        return y.times(self.trained.sign)


@dataclass(frozen=True, eq=False)
class SurfaceForesights:
    """The predictions of one group of trainings; `registers` is the name of the forecast that they become."""

    group: TrainingGroup
    laws: tuple[SurfaceForesight, ...]
    registers: str | None = None


def foresee(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> SurfaceForesights:
    """Predict every requested quantity at every point asked for."""
    n_resamples = min(request.resamples, MOST_RESAMPLES)
    targets = request.points_to_predict()
    options: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
    quantities, laws = trained_quantities(connection, group, request), []
    several = [(each.runs, forms_to_mix(each.runs)) for each in quantities]
    compared = compare_each(several, n_resamples, same_documents=True, **options)
    for trained, forms in zip(quantities, compared, strict=True):
        fits = [each.same_documents for each in forms]  # a new run is read on the same documents
        points = tuple(_at(group, trained, fits, S, D) for S, D in targets)
        laws.append(SurfaceForesight(trained, forms, points))
    return SurfaceForesights(group, tuple(laws), request.register)


def _at(group: TrainingGroup, trained: Trained, fits: Sequence[SurfaceFit], S: float, D: float) -> AtPoint:
    answer = predict_over_forms(fits, S, D)
    runs = trained.runs
    beyond = max(outside(S, runs.S_N.tolist()), outside(D, runs.D_N.tolist())) if len(runs.S_N) else 1.0
    heaviest = max(answer.weights, key=lambda name: answer.weights[name], default=fits[0].form)
    of_fit = next(fit for fit in fits if fit.form == heaviest)
    reasons = doubts_of_points(group, trained, of_fit)
    return AtPoint(S, D, answer, beyond, in_order([*reasons, *([Status.beyond] if beyond > FAR else [])]))


def keep_foreseen(store: Store, foresights: SurfaceForesights) -> list[Record]:
    """Write the surfaces to `fits`, and return a row for each prediction and each held-out run."""
    rows, answers = [], []
    for law in foresights.laws:
        records: dict[str, Record] = {}
        for form in law.forms:
            reasons = doubts_of_points(foresights.group, law.trained, form.fit)
            error = mean_error(form.held_out)
            record = surface_record(foresights.group, law.trained, form.fit, reasons, error, {})
            store.write_record("fits", record["fit_id"], record)
            records[form.fit.form] = record
        rows += _rows(foresights.group, law, records)
        answers += _answers(law, records[law.best.fit.form])
    if foresights.registers is not None:
        register_answers(store, foresights.registers, foresights.group, answers)
    return rows


def _answers(law: SurfaceForesight, fit: Record) -> list[Record]:
    """The combined answers of one quantity as predictions of a forecast."""
    runs, answers = law.trained.runs, []
    points = [runs.S_N.tolist(), runs.D_N.tolist(), (law.trained.sign * runs.y_N).tolist()]
    for point in law.points:
        answer = {"law": fit["law"], "k": fit["k"], "S": point.S, "D": point.D, **_values(law, point.over_forms.y)}
        answer |= {"beyond": point.beyond, "status": point.status.value, "weights": point.over_forms.weights}
        answer |= {"fit_id": fit["fit_id"], "n_points": law.best.fit.n_points}
        answers.append(answer | {"run_ids": fit["run_ids"], "points": points})
    return answers


def _rows(group: TrainingGroup, law: SurfaceForesight, records: dict[str, Record]) -> list[Record]:
    named = {"law": records[law.best.fit.form]["law"], **group.names(), "k": law.trained.k}
    of_no_run = dict.fromkeys(group.first.names())
    rows = []
    for point in law.points:
        own = {COMBINED: point.over_forms.y, **point.over_forms.within}
        for method, y in own.items():
            is_answer = method == COMBINED
            of_form = law.best.fit.form if is_answer else method
            row = {"kind": "prediction", "fit_id": records[of_form]["fit_id"], **of_no_run, **named, "method": method}
            row |= {"n_fitted": law.best.fit.n_points, "axis": point.over_forms.axis if is_answer else None}
            row |= {"S": point.S, "D": point.D, **_values(law, y), "beyond": point.beyond, "measured": None}
            row |= {"error": None, "held": None, "weights": point.over_forms.weights if is_answer else None}
            told = [reason.value for reason in point.reasons]
            rows.append(row | {"status": point.status.value, "reasons": told})
    for form in law.forms:
        for test in form.held_out:
            row = {"kind": "backtest", "fit_id": records[form.fit.form]["fit_id"]}
            row |= {**named, **law.trained.members[test.at].names(), "method": form.fit.form}
            row |= {"n_fitted": None, "axis": test.axis.value, "S": test.S, "D": test.D, **_values(law, test.predicted)}
            row |= {"beyond": None, "measured": law.trained.sign * test.measured, "error": test.error}
            rows.append(row | {"held": test.is_inside, "weights": None, "status": None, "reasons": None})
    return rows


def _values(law: SurfaceForesight, y: Estimate) -> Record:
    signed = law.signed(y)
    return {"y": signed.value, "lo": signed.lo, "hi": signed.hi}
