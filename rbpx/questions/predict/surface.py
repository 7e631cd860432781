"""Predicts what a new run of given size and tokens would show (predict S= D=), from all trainings of a family.

The answer is the prediction over forms (`rbpx.laws.surface.averaged`), method `combined`; the forms stand beside it.
Each form is also fitted without the largest runs in S, D and C, and compared with them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.laws.intervals.estimate import Estimate, flat
from rbpx.laws.numeric import together
from rbpx.laws.pins import Pin, Pins
from rbpx.laws.predict.influence import Moved
from rbpx.laws.predict.prediction import COMBINED, outside
from rbpx.laws.predict.verdict import FAR
from rbpx.laws.surface.averaged import (
    BudgetTest,
    OverForms,
    backtest_budgets,
    forms_to_mix,
    moved_most,
    predict_over_forms,
)
from rbpx.laws.surface.checks import Compared, HeldOut, compare_each, mean_error
from rbpx.laws.surface.fit import SurfaceFit
from rbpx.laws.surface.given import fitting_given
from rbpx.questions.predict.register import register_answers
from rbpx.runs.fits import alike, naming
from rbpx.runs.group import labels_of
from rbpx.runs.points.outliers import outlier_rows, tested_quantities
from rbpx.runs.points.surfaces import (
    MOST_RESAMPLES,
    Trained,
    doubts_of_points,
    surface_record,
    with_constants,
)
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Doubted, Status, first_of, in_order
from rbpx.store.store import Record, Store


@dataclass(frozen=True)
class AtPoint(Doubted):
    """One prediction of one quantity.

    Attributes:
        S: size.
        D: tokens.
        over_forms: the combined answer, and that of each form.
        beyond: the factor by which the point lies outside the sizes or the tokens, whichever is more; 1 within both.
        reasons: every status that holds for the combined answer.
        reasons_within: every status that holds for that of each form, those of the combined answer among them.
        moved: how far the combined answer moves at most with one run left out, and the number of that run.
    """

    S: float
    D: float
    over_forms: OverForms
    beyond: float
    reasons: tuple[Status, ...]
    reasons_within: Mapping[str, tuple[Status, ...]]
    moved: Moved | None

    def reasons_of(self, method: str) -> tuple[Status, ...]:
        """Every status that holds for the answer by `combined` or by a form."""
        return self.reasons if method == COMBINED else self.reasons_within[method]


@dataclass(frozen=True)
class Beside:
    """A combined answer under another value of a given constant.

    Attributes:
        name: of the constant.
        value: that it has.
        what: "given", "free", or which end of the interval that it has where it is free.
        p: of the test of a given value; None elsewhere.
        S: the size of a new model.
        y: what it would show; without a value where no law can have the constant so, an E above the smallest y.
        beyond: the factor by which it lies outside the measured models.
        D: its tokens; None where the law is in size alone.
    """

    name: str
    value: Estimate
    what: str
    p: float | None
    S: float
    y: Estimate
    beyond: float
    D: float | None = None

    def row(self) -> Record:
        """What a row for programs says of it."""
        at = {"S": self.S, "y": self.y.value, "lo": self.y.lo, "hi": self.y.hi, "beyond": self.beyond, "D": self.D}
        return at | {"constant": self.name, "given": self.what, "p": self.p} | flat({"at": self.value})


@dataclass(frozen=True, eq=False)
class SurfaceForesight:
    """One quantity: its points, its forms with their held-out runs, what all forms foretold, and its predictions.

    `beside` is what they would be without given constants, and with others.
    """

    trained: Trained
    forms: tuple[Compared, ...]
    budgets: tuple[BudgetTest, ...]
    points: tuple[AtPoint, ...]
    beside: tuple[Beside, ...] = ()

    @property
    def best(self) -> Compared:
        """The form with the least BIC; the first one where none has any."""
        known = [each for each in self.forms if each.fit.bic is not None]
        return min(known, key=lambda each: each.fit.bic or 0.0) if known else self.forms[0]

    @property
    def _names(self) -> list[str]:
        """Each training by what tells it from the others."""
        runs = self.trained.runs
        ends = [max(np.flatnonzero(runs.group_N == run), key=lambda at: runs.D_N[at]) for run in range(runs.n_groups)]
        return labels_of([self.trained.members[at] for at in ends])

    def moves(self, of: AtPoint) -> Record:
        """How far one prediction moves at most with one run left out, and which run that is."""
        if of.moved is None:
            return {"moved": None, "moved_by": None}
        return {"moved": self.trained.sign * of.moved.share, "moved_by": self._names[of.moved.by]}

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
    quantities, laws = tested_quantities(connection, group, request), []
    several = [(each.runs, forms_to_mix(each.runs, request.pins)) for each in quantities]
    for _, names in several:
        with_constants(names, request.pins)
    with naming(group.title):
        compared = compare_each(several, n_resamples, same_documents=True, pins=request.pins, **options)
        foretold = backtest_budgets(several, request.pins, **options)
    for trained, forms, budgets in zip(quantities, compared, foretold, strict=True):
        fits = [each.same_documents for each in forms]  # a new run is read on the same documents
        answers = predict_over_forms(fits, targets, budgets)
        told = zip(targets, answers, moved_most(fits, targets), strict=True)
        points = [_at(group, trained, fits, *at, answer, moved) for at, answer, moved in told]
        beside = tuple(_beside(fits, points, budgets, options))
        laws.append(SurfaceForesight(trained, forms, budgets, tuple(points), beside))
    return SurfaceForesights(group, tuple(laws), request.register)


def _beside(
    fits: Sequence[SurfaceFit], points: Sequence[AtPoint], budgets: Sequence[BudgetTest], options: dict[str, Any]
) -> Iterator[Beside]:
    """For each given constant the answer with it, without any, and at the ends of the interval that the runs give."""
    runs, targets = fits[0].runs, [(point.S, point.D) for point in points]

    def all_with(pins: Pins, name: str, value: Estimate, what: str, p: float | None) -> Iterator[Beside]:
        refits = together([fitting_given(runs, fit.form, pins, 0, is_tested=False, **options) for fit in fits])
        for answer, at in zip(predict_over_forms(refits, targets, budgets), points, strict=True):
            yield Beside(name, value, what, p, at.S, answer.y, at.beyond, at.D)

    likeliest = max(fits, key=lambda fit: -math.inf if fit.bic is None else -fit.bic)
    for pinned in likeliest.pinned:
        for point in points:
            y = point.over_forms.y
            yield Beside(pinned.name, pinned.now, "given", pinned.p, point.S, y, point.beyond, point.D)
        yield from all_with({}, pinned.name, pinned.free, "free", None)
        most = float(runs.y_N.min()) if pinned.name == "E" else math.inf
        for what, end in (("lower end", pinned.free.lo), ("upper end", pinned.free.hi)):
            if end is not None and end < most:
                yield from all_with({pinned.name: Pin(end)}, pinned.name, Estimate(end), what, None)
            elif end is not None:
                for at in points:
                    yield Beside(pinned.name, Estimate(end), what, None, at.S, Estimate(), at.beyond, at.D)


def _at(
    group: TrainingGroup,
    trained: Trained,
    fits: Sequence[SurfaceFit],
    S: float,
    D: float,
    answer: OverForms,
    moved: Moved | None,
) -> AtPoint:
    runs = trained.runs
    beyond = max(outside(S, runs.S_N.tolist()), outside(D, runs.D_N.tolist())) if len(runs.S_N) else 1.0
    heaviest = max(answer.weights, key=lambda name: answer.weights[name], default=fits[0].form)
    of_fit = next(fit for fit in fits if fit.form == heaviest)
    far = [Status.beyond] if beyond > FAR else []
    reasons = in_order([*doubts_of_points(group, trained, of_fit), *far])
    within = {fit.form: in_order([*doubts_of_points(group, trained, fit), *reasons]) for fit in fits}
    return AtPoint(S, D, answer, beyond, reasons, within, moved)


def keep_foreseen(store: Store, foresights: SurfaceForesights) -> Any:
    """Write the surfaces to `fits`, and return a row for each prediction and each held-out run."""
    rows, answers, fits = [], [], list[Record]()
    for law in foresights.laws:
        records: dict[str, Record] = {}
        for form in law.forms:
            reasons = doubts_of_points(foresights.group, law.trained, form.fit)
            error = mean_error(form.held_out)
            record = surface_record(foresights.group, law.trained, form.fit, reasons, error, {})
            records[form.fit.form] = record
        fits += records.values()
        rows += _rows(foresights.group, law, records)
        answers += _answers(law, records[law.best.fit.form])
    then, name = None, foresights.registers
    if name is not None:
        then = partial(register_answers, name, foresights.group, answers)
    outside = outlier_rows(foresights.group, [law.trained for law in foresights.laws])
    return {"rows": alike([*rows, *outside]) if outside else rows, "fits": fits, "then": then}


def _answers(law: SurfaceForesight, fit: Record) -> list[Record]:
    """The combined answers of one quantity as predictions of a forecast."""
    runs, answers = law.trained.runs, []
    points = [runs.S_N.tolist(), runs.D_N.tolist(), (law.trained.sign * runs.y_N).tolist()]
    for point in law.points:
        answer = {"law": fit["law"], "k": fit["k"], "S": point.S, "D": point.D, **_values(law, point.over_forms.y)}
        answer |= {"expected_error": point.over_forms.expected_error}
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
            row |= {"S": point.S, "D": point.D, **_values(law, y)}
            row |= {"expected_error": point.over_forms.expected_error if is_answer else None}
            row |= {"widened": point.over_forms.widened if is_answer else None}
            row |= law.moves(point) if is_answer else {"moved": None, "moved_by": None}
            row |= {
                "beyond": point.beyond,
                "measured": None,
                "error": None,
                "held": None,
                "weights": point.over_forms.weights if is_answer else None,
            }
            reasons = point.reasons_of(method)
            told = [reason.value for reason in reasons]
            rows.append(row | {"status": first_of(reasons).value, "reasons": told})
    for beside in law.beside:
        row = {"kind": "constant", "fit_id": records[law.best.fit.form]["fit_id"], **of_no_run, **named}
        rows.append(row | {"method": COMBINED, "n_fitted": law.best.fit.n_points, "axis": None} | beside.row())
    tests: list[tuple[str, str, int | None, HeldOut]] = []
    tests += [(law.best.fit.form, COMBINED, int(of.fitted_N.sum()), test) for of in law.budgets for test in of.held_out]
    tests += [(form.fit.form, form.fit.form, None, test) for form in law.forms for test in form.held_out]
    for form, method, n_fitted, test in tests:
        row = {"kind": "backtest", "fit_id": records[form]["fit_id"], **named}
        row |= {**law.trained.members[test.at].names(), "method": method, "n_fitted": n_fitted}
        row |= {"axis": test.axis.value, "S": test.S, "D": test.D, **_values(law, test.predicted)}
        row |= {"expected_error": None, "widened": None, "moved": None, "moved_by": None, "beyond": None}
        row |= {"measured": law.trained.sign * test.measured, "error": test.error}
        rows.append(row | {"held": test.is_inside, "weights": None, "status": None, "reasons": None})
    return alike(rows) if law.beside else rows


def _values(law: SurfaceForesight, y: Estimate) -> Record:
    signed = law.signed(y)
    return {"y": signed.value, "lo": signed.lo, "hi": signed.hi}
