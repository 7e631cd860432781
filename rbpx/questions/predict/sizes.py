"""Extrapolates laws to other sizes, and backtests them on the sizes there are.

The answer is the prediction over forms (`rbpx.laws.prediction.prediction`), method `combined`: what a law says far
outside the sizes depends on its form, which a few sizes do not determine. The laws of single methods stand beside it.
To measure how well a law predicts, it is fitted to the m smallest sizes and compared with each larger one, on the same
tokens, for m from 3 up.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rbpx.config.request import Request
from rbpx.laws.pins import Given, Pins
from rbpx.laws.power.given import values_of
from rbpx.laws.power.predictor import Prediction
from rbpx.laws.prediction.calibration import expected_error, widened
from rbpx.laws.prediction.influence import moved_most
from rbpx.laws.prediction.prediction import COMBINED, average_forms
from rbpx.laws.prediction.verdict import FAR, Backtest, backtest_over_forms, judge_over_forms, widening_of
from rbpx.questions.predict.rows import backtest, constants, moves, prediction, tested, title_of, values
from rbpx.runs.fits import Law, doubted, fit_points, fit_record
from rbpx.runs.group import Group, labels_of
from rbpx.runs.points.sizes import Points
from rbpx.status import Status, in_order
from rbpx.store.store import Record

_IN_FITS: Final = ("S", "y", "lo", "hi", "beyond")  # of a prediction, in params


@dataclass(frozen=True, eq=False)
class Foresight:
    """One law by one method: its predictions and its backtests.

    Attributes:
        law: the fit by that method; by the first method that has numbers where the answer is over forms.
        fit: the same as a row of `fits`.
        method: `combined`, a form of which only the prediction is known, or a method of `rbpx.laws.names`.
        rows: all that is known, told apart by `kind`: its predictions at the sizes asked for, its backtests, and what
            the combined answer would be without given constants and with others; or that there is `none`.
    """

    law: Law
    fit: Record
    method: str
    rows: Sequence[Record]

    def of(self, kind: str) -> list[Record]:
        """Its rows of a kind."""
        return [row for row in self.rows if row["kind"] == kind]

    @property
    def title(self) -> str:
        """The name of the law."""
        return title_of(self.rows[0])

    @property
    def tested(self) -> Record:
        """What its backtests say."""
        return tested(self.of("backtest"))


def foresee(group: Group, points: Points, request: Request, targets: Sequence[float]) -> list[Foresight]:
    """The answers for one law: the combined one, those of single forms, and those by each method.

    What speaks against the combined answer speaks against each of the others, which rest on the same points.
    """
    laws = [doubted(group, fit_points(points, method, request.pins)) for method in request.method]
    fits = [fit_record(group, law, request.resamples) for law in laws]
    first = next((at for at, law in enumerate(laws) if law.fit.alpha.value is not None), 0)
    over_forms = _over_forms(group, laws[first], fits[first], targets, request.pins)
    combined = [row["reasons"] for row in over_forms[0].of("prediction")] if over_forms else [()] * len(targets)
    return [*over_forms, *(_by_method(group, *law, targets, combined) for law in zip(laws, fits, strict=True))]


def _foresight(group: Group, law: Law, fit: Record, method: str, rows: Iterable[Record]) -> Foresight:
    named = {"fit_id": fit["fit_id"], "law": law.law, **group.names(), "k": law.k, "method": method}
    told = list(rows) or [{"kind": "none", "n_fitted": None, "status": law.fit.status}]
    return Foresight(law, fit, method, [named | {"n_fitted": len(law.runs)} | row for row in told])


def _by_method(
    group: Group, law: Law, fit: Record, targets: Sequence[float], combined: Sequence[Sequence[Status]]
) -> Foresight:
    """The predictions of one law, each with its own statuses and those of the combined answer at the same size."""
    if law.fit.alpha.value is None:
        return _foresight(group, law, fit, law.method.value, ())
    rows = []
    for S, reasons in zip(targets, combined, strict=True):
        told = law.fit.predict(S)
        far = [Status.beyond] if told.beyond > FAR else []
        rows.append(prediction(told.record(), in_order([*(law.fit.reasons or ()), *far, *reasons])))
    return _foresight(group, law, fit, law.method.value, [*rows, *map(backtest, law.backtests)])


def _over_forms(group: Group, law: Law, fit: Record, targets: Sequence[float], pins: Pins) -> list[Foresight]:
    """The combined answer, then each form by itself; nothing where no forms can be averaged."""
    S, y, pinned = [float(run.non_embedding_params) for run in law.runs], law.fit.y, law.fit.pinned
    given = values_of(pins, y, {each.name: each.free for each in pinned}) if pinned else ()
    answers = None if law.fit.alpha.value is None else average_forms(S, y, targets, given)
    if answers is None:
        return []
    combined, tests = _combined(law, S, answers, given)
    moved, labels = moved_most(S, y, targets, [each.y for each in answers], given), labels_of(law.runs)
    combined = [row | moves(each, labels) for row, each in zip(combined, moved, strict=True)]

    def refit(held: dict[str, float]) -> list[Record] | None:
        others = average_forms(S, y, targets, with_held := [Given(held)] if held else [])
        return None if others is None else _combined(law, S, others, with_held)[0]

    beside = constants(pinned, combined, min(map(abs, y)), refit)
    found = [_foresight(group, law, fit, COMBINED, [*combined, *map(backtest, tests), *beside])]
    for form in answers[0].within:
        told = zip(answers, combined, strict=True)
        alone = [prediction(row | values(each.within[form].estimate), row["reasons"]) for each, row in told]
        found.append(_foresight(group, law, fit, form, alone))
    return found


def _combined(
    law: Law, S: Sequence[float], answers: Sequence[Prediction], given: Sequence[Given]
) -> tuple[list[Record], tuple[Backtest, ...]]:
    """The answers over forms, judged and widened by their backtests, and these."""
    tests, rows = backtest_over_forms(S, law.fit.y, given), []
    by = widening_of(tests, len(S))
    for each in answers:
        y = widened(each.estimate, by)
        reasons = judge_over_forms(law.fit.reasons or (), each, S, law.fit.y, tests)
        own = {"expected_error": expected_error(y, each.beyond), "widened": by, "weights": each.weights}
        rows.append(prediction({"S": each.S, "beyond": each.beyond, **values(y)}, reasons, **own))
    return rows, tests


def fits_of(foresights: Sequence[Foresight]) -> list[Record]:
    """The rows of `fits`, each with its predictions and backtests, and what was predicted over forms beside it."""
    fits = []
    for law in {id(of.law): of for of in foresights}.values():  # the last one of each law is by its method
        predictions = {of.method: of.of("prediction") for of in foresights if of.law is law.law}
        said = {of: [{name: row[name] for name in _IN_FITS} for row in rows] for of, rows in predictions.items()}
        params = {
            "predictions": said.pop(law.method),
            "backtests": [vars(test) | {"predicted": test.predicted.record()} for test in law.law.backtests],
            "mean_backtest_error": law.tested["mean_error"],
            "over_forms": said,
        }
        fits.append(law.fit | {"params": law.fit["params"] | params})
    return fits
