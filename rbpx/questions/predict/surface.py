"""Predicts what a new run of given size and tokens would show (predict S= D=), from all trainings of a family.

The answer is the prediction over forms (`rbpx.laws.surface.averaged`), method `combined`; the forms stand beside it.
Each form is also fitted without the largest runs in S, D and C, and compared with them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.given import said_of_given
from rbpx.display.view import magnitude
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.pins import Pin
from rbpx.laws.power.predictor import outside
from rbpx.laws.prediction.prediction import COMBINED
from rbpx.laws.prediction.verdict import FAR
from rbpx.laws.surface.averaged import (
    BudgetTest,
    backtest_budgets,
    forms_to_mix,
    moved_most,
    predict_over_forms,
    summary,
)
from rbpx.laws.surface.checks import Compared, HeldOut, compare_each, mean_error
from rbpx.laws.surface.fit import Surface
from rbpx.laws.surface.given import fit_given
from rbpx.questions.predict.register import registering, said_by
from rbpx.questions.predict.rows import (
    WIDER,
    constants,
    given_table,
    moves,
    prediction,
    predictions,
    said_of_moves,
    values,
)
from rbpx.questions.result import Result
from rbpx.runs.fits import alike, naming
from rbpx.runs.group import labels_of
from rbpx.runs.points.frontier import said_of_points
from rbpx.runs.points.outliers import outlier_rows, said_of_outliers, tested_quantities
from rbpx.runs.points.surfaces import MOST_REPLICATES, Trained, doubts_of_points, surface_record, with_constants
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Status, in_order
from rbpx.store.store import Record

_NOTE: Final = (
    "Combined: over the forms of a surface and their misfit, with the 95 % interval of one new run, widened where "
    "larger budgets were foretold worse; where size and tokens vary together, a law in one axis near the line of the "
    "runs."
)


@dataclass(frozen=True, eq=False)
class _Quantity:
    """One quantity: its points, its forms with their held-out runs, and what all forms foretold of larger budgets."""

    trained: Trained
    forms: tuple[Compared, ...]
    budgets: tuple[BudgetTest, ...]

    @property
    def best(self) -> Surface:
        """The form with the least BIC; the first one where none has any."""
        return min((form.fit for form in self.forms), key=_bic)

    @property
    def fits(self) -> list[Surface]:
        """Of each form, without resampled documents: a new run is read on the same ones."""
        return [form.same_documents for form in self.forms]

    @property
    def points(self) -> list[list[float]]:
        """S, D and y of each."""
        runs = self.trained.runs
        return [runs.S_N.tolist(), runs.D_N.tolist(), (self.trained.sign * runs.y_N).tolist()]

    def signed(self, y: Estimate) -> Record:
        """A value with the sign of the quantity, as rows have it."""
        return values(y.times(self.trained.sign))


def _bic(fit: Surface) -> float:
    return math.inf if fit.bic is None else fit.bic


def over_surface(connection: duckdb.DuckDBPyConnection, group: TrainingGroup, request: Request) -> Result:
    """Predict every requested quantity at every point asked for: a row for each, and for each held-out run."""
    options: dict[str, Any] = {"objective": request.objective, "delta": request.delta}
    quantities = tested_quantities(connection, group, request)
    of_each = [forms_to_mix(each.runs, request.pins) for each in quantities]
    for mixed in of_each:
        with_constants(mixed, request.pins)
    with naming(group.title):
        n_replicates = min(request.resamples, MOST_REPLICATES)
        laws = [
            _Quantity(
                trained,
                compare_each(trained.runs, mixed, n_replicates, same_documents=True, pins=request.pins, **options),
                backtest_budgets(trained.runs, mixed, request.pins, **options),
            )
            for trained, mixed in zip(quantities, of_each, strict=True)
        ]
    records = [{form.fit.form: _record(group, of.trained, form) for form in of.forms} for of in laws]
    rows = [list(_rows(group, of, fits, request, options)) for of, fits in zip(laws, records, strict=True)]
    answers = [_of(own, "prediction", COMBINED) for own in rows]
    said = [
        *said_of_points([cell for each in quantities for cell in each.cells], group.runs),
        *said_of_outliers(quantities),
        *said_of_moves(answers),
        *(line for of, own in zip(laws, answers, strict=True) for line in _said(of, own)),
    ]
    forms = list(dict.fromkeys(form for fits in records for form in fits))
    view = predictions(forms, ", ".join(forms), magnitude("D", "D"))
    every = [row for own in rows for row in own]
    tables = [view.table("Predictions for new runs", _of(every, "prediction"), group.title, note=_NOTE)]
    of_laws = zip(rows, laws, records, strict=True)
    registered = (said_by(own, fits[of.best.form], of.best.n_points, of.points) for own, of, fits in of_laws)
    return Result(
        [group],
        alike([*every, *outlier_rows(group, quantities)]),
        [*tables, *given_table(_of(every, "constant"), group.title)],
        said,
        fits=[fit for fits in records for fit in fits.values()],
        then=registering(request, group, registered),
    )


def _of(rows: Sequence[Record], kind: str, method: str | None = None) -> list[Record]:
    return [row for row in rows if row["kind"] == kind and method in (None, row["method"])]


def _record(group: TrainingGroup, trained: Trained, form: Compared) -> Record:
    reasons = doubts_of_points(group, trained, form.fit)
    return surface_record(group, trained, form.fit, reasons, mean_error(form.held_out), {})


def _rows(
    group: TrainingGroup, of: _Quantity, fits: dict[str, Record], request: Request, options: dict[str, Any]
) -> Iterator[Record]:
    """All that is known of one quantity, told apart by `kind`."""
    best, runs, targets = of.best, of.trained.runs, request.points_to_predict()

    def refit(held: dict[str, float]) -> list[Record]:
        pins = {name: Pin(value) for name, value in held.items()}
        others = [fit_given(runs, fit.form, pins, 0, is_tested=False, **options) for fit in of.fits]
        return [of.signed(answer.y) for answer in predict_over_forms(others, targets, of.budgets)]

    found = list(_predictions(group, of, targets))
    now, pinned = [row for row in found if row["method"] == COMBINED], min(of.fits, key=_bic).pinned
    beside = constants(pinned, now, float(runs.y_N.min(initial=math.inf)), refit)
    named = dict.fromkeys((*group.first.names(), "axis", "measured", "error", "held"))
    named |= {"law": of.trained.law, **group.names(), "k": of.trained.k, "n_fitted": best.n_points}
    for row in (*found, *({"method": COMBINED} | row for row in beside), *_backtests(of)):
        fit = fits.get(row["method"], fits[best.form])
        yield {"kind": row["kind"], "fit_id": fit["fit_id"], **named, **row}


def _predictions(group: TrainingGroup, of: _Quantity, targets: Sequence[tuple[float, float]]) -> Iterator[Record]:
    """At each point the combined answer, then that of each form, against which speaks what speaks against all."""
    runs, doubts = of.trained.runs, {fit.form: doubts_of_points(group, of.trained, fit) for fit in of.fits}
    answers = zip(targets, predict_over_forms(of.fits, targets, of.budgets), moved_most(of.fits, targets), strict=True)
    ends = [max(np.flatnonzero(runs.group_N == run), key=lambda at: runs.D_N[at]) for run in range(runs.n_groups)]
    labels = labels_of([of.trained.members[at] for at in ends])  # each training by what tells it from the others
    for (S, D), answer, moved in answers:
        beyond = max(outside(S, runs.S_N.tolist()), outside(D, runs.D_N.tolist())) if len(runs.S_N) else 1.0
        heaviest = max(answer.weights, key=lambda name: answer.weights[name], default=of.fits[0].form)
        reasons = in_order([*doubts[heaviest], *([Status.beyond] if beyond > FAR else [])])
        at = {"S": S, "D": D, "beyond": beyond}
        own = {name: getattr(answer, name) for name in ("expected_error", "widened", "weights", "axis")}
        own |= moves(moved, labels, of.trained.sign)
        yield {"method": COMBINED} | prediction(at | of.signed(answer.y), reasons, **own)
        for form, y in answer.within.items():
            yield {"method": form} | prediction(at | of.signed(y), in_order([*doubts[form], *reasons]))


def _backtests(of: _Quantity) -> Iterator[Record]:
    """The runs of larger budgets, foretold over forms, then the largest in each axis, foretold by each form."""
    tests: list[tuple[str, int | None, HeldOut]] = []
    tests += [(COMBINED, int(each.fitted_N.sum()), test) for each in of.budgets for test in each.held_out]
    tests += [(form.fit.form, None, test) for form in of.forms for test in form.held_out]
    for method, n_fitted, test in tests:
        row = {"kind": "backtest", "method": method, "n_fitted": n_fitted, **of.trained.members[test.at].names()}
        row |= {"axis": test.axis.value, "S": test.S, "D": test.D, **of.signed(test.predicted)}
        yield row | {"measured": of.trained.sign * test.measured, "error": test.error, "held": test.is_inside}


def _said(of: _Quantity, answers: Sequence[Record]) -> Iterator[str]:
    """How well larger budgets were foretold, and whether the runs speak against what was given."""
    if foretold := summary(of.budgets):
        error, inside, n = foretold
        most = max((row["widened"] for row in answers), default=1.0)
        wider = f", so intervals here are {most:.2g} times as wide in ln y" if most > WIDER else ""
        yield (
            f"{of.trained.title}: the runs of larger budgets, each foretold from smaller ones over forms, are "
            f"{error:.1%} off on average; {inside} of {n} lie in their 95 % intervals{wider}."
        )
    yield from said_of_given(of.trained.title, of.best.pinned)
