"""Extrapolates laws to other sizes, and backtests them on the sizes there are (verb predict).

The answer is the prediction over forms (`rbpx.laws.predict.prediction`), method `combined`: what a law says far outside
the sizes depends on its form, which a few sizes do not determine. The laws of single methods stand beside it. To
measure how well a law predicts, it is fitted to the m smallest sizes and compared with each larger one, on the same
tokens, for m from 3 up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb
import numpy as np

from rbpx.config.request import Request
from rbpx.display.vocabulary import law_title
from rbpx.laws.forms.candidates import Shape
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.names import Method, OnText
from rbpx.laws.pins import Given, Pins
from rbpx.laws.power.given import values_of
from rbpx.laws.predict.calibration import expected_error, widened
from rbpx.laws.predict.influence import Moved, moved_most
from rbpx.laws.predict.prediction import COMBINED, Averaged, Prediction, Within, average_forms, outside, predict
from rbpx.laws.predict.verdict import FAR, Backtest, backtest_over_forms, judge_over_forms, widening_of
from rbpx.laws.sweeps import Cell
from rbpx.questions.predict.register import register_answers, targets_of
from rbpx.questions.predict.surface import Beside, SurfaceForesights, foresee, keep_foreseen
from rbpx.runs.fits import Law, alike, doubted, fit_points, fit_record
from rbpx.runs.group import Group, labels_of
from rbpx.runs.points.frontier import frontier
from rbpx.runs.points.sizes import Points, known_points
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Doubted, Status, in_order
from rbpx.store.store import Record, Store

if TYPE_CHECKING:
    from rbpx.questions.predict.losses import LossForesights


@dataclass(frozen=True)
class Foreseen(Doubted):
    """One prediction and the objections to it.

    Attributes:
        prediction: value and interval of a new model of this size on the same text.
        reasons: every status that holds for it.
        expected_error: median |error| to expect, relative; None unless combined.
        widened: by what factor backtests widened the interval, in ln y; None unless combined.
        moved: how far it moves at most with one run left out, and which; None unless combined.
    """

    prediction: Prediction
    reasons: tuple[Status, ...]
    expected_error: float | None = None
    widened: float | None = None
    moved: Moved | None = None


@dataclass(frozen=True, eq=False)
class Foresight:
    """One law by one method: its predictions and its backtests.

    Attributes:
        law: the fit by that method; by the first method asked for where the answer is `combined`.
        method: `combined`, a method of `rbpx.laws.names`, or a form of which only the prediction is known.
        predictions: the predictions at the sizes asked for.
        backtests: the backtests of that method.
        weights: the weights of the forms; None unless combined.
        beside: what the combined answer would be without given constants, and with others.
    """

    law: Law
    method: str
    predictions: tuple[Foreseen, ...]
    backtests: tuple[Backtest, ...]
    weights: dict[Shape, float] | None = None
    beside: tuple[Beside, ...] = ()

    @property
    def title(self) -> str:
        """The name of the law."""
        return law_title(self.law.law, self.law.k)

    @property
    def held(self) -> list[bool]:
        """For each backtest with an interval, whether it contains the measured value."""
        return [test.is_inside for test in self.backtests if test.is_inside is not None]

    def moves(self, of: Foreseen) -> Record:
        """How far one prediction moves at most with one run left out, and which run that is."""
        if of.moved is None:
            return {"moved": None, "moved_by": None}
        return {"moved": of.moved.share, "moved_by": labels_of(self.law.runs)[of.moved.by]}

    @property
    def mean_error(self) -> float | None:
        """Mean of |error| over all backtests; None where there are none."""
        return float(np.mean([abs(b.error) for b in self.backtests])) if self.backtests else None


@dataclass(frozen=True, eq=False)
class Foresights:
    """The laws of one group, those that predict best first; for each law the combined answer first.

    `registers` is the name under which the combined answers become a forecast; None for no forecast. `cells` says how
    each point of a frontier was found.
    """

    group: Group
    laws: tuple[Foresight, ...]
    targets: tuple[float, ...]
    resamples: int
    registers: str | None = None
    cells: tuple[Cell, ...] = ()

    @property
    def answers(self) -> tuple[Foresight, ...]:
        """The answer for each law: the combined one, or the law itself where nothing could be combined."""
        firsts: dict[tuple[str, int | None], Foresight] = {}
        for foresight in self.laws:
            firsts.setdefault((foresight.law.law, foresight.law.k), foresight)
        return tuple(firsts.values())


Answered: TypeAlias = "Foresights | SurfaceForesights | LossForesights"


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Answered:
    """Backtest every requested law and extrapolate it to the requested sizes, by default ten times the largest.

    With `D` given, predict at points of size and tokens, from all trainings of the group; in a loss on another text,
    from that.
    """
    if isinstance(request.axis, OnText):
        from rbpx.questions.predict.losses import foretell  # which laws in size do without, as below

        return foretell(connection, group, request)
    if isinstance(group, TrainingGroup):
        return foresee(connection, group, request)
    points, targets = known_points(connection, group, request, set(request.laws.names)), targets_of(group, request)
    points, cells = frontier(points) if request.frontier else (points, ())
    foreseen = [_foresee(group, series, request.method, targets, request.pins) for series in points]
    foreseen.sort(key=lambda of_law: (of_law[0].mean_error is None, of_law[0].mean_error))
    laws = tuple(each for of_law in foreseen for each in of_law)
    return Foresights(group, laws, tuple(targets), request.resamples, request.register, cells)


def _foresee(
    group: Group, points: Points, methods: Sequence[Method], targets: list[float], pins: Pins
) -> list[Foresight]:
    """The answers for one law: the combined one, those of single forms, and those by each method.

    What speaks against the combined answer speaks against each of the others, which rest on the same points.
    """
    laws = [doubted(group, fit_points(points, method, pins)) for method in methods]
    over_forms = _over_forms(next((law for law in laws if law.fit.alpha is not None), laws[0]), targets, pins)
    combined = [each.reasons for each in over_forms[0].predictions] if over_forms else [()] * len(targets)
    return [*over_forms, *(_by_method(law, targets, combined) for law in laws)]


def _by_method(law: Law, targets: Sequence[float], combined: Sequence[tuple[Status, ...]]) -> Foresight:
    """The predictions of one law, each with its own statuses and those of the combined answer at the same size."""
    if law.fit.alpha is None:
        return Foresight(law, law.method.value, (), ())
    foreseen = []
    for S, reasons in zip(targets, combined, strict=True):
        prediction = predict(law.fit, S)
        far = [Status.beyond] if prediction.beyond > FAR else []
        foreseen.append(Foreseen(prediction, in_order([*(law.fit.reasons or ()), *far, *reasons])))
    return Foresight(law, law.method.value, tuple(foreseen), law.backtests)


def _over_forms(law: Law, targets: Sequence[float], pins: Pins) -> list[Foresight]:
    """The combined answer, then each form by itself; nothing where no forms can be averaged."""
    S, y = [float(run.non_embedding_params) for run in law.runs], law.fit.y
    given: Sequence[Given] = ()
    if law.fit.pinned:
        given = values_of(pins, y, {each.name: each.free for each in law.fit.pinned})
    answers = None if law.fit.alpha is None else average_forms(S, y, targets, given)
    if answers is None:
        return []

    def alone(at: float, answer: Within, reasons: tuple[Status, ...]) -> Foreseen:
        return Foreseen(Prediction(at, answer.y, answer.lo, answer.hi, outside(at, S)), reasons)

    combined, tests = _combined(law, S, answers, given)
    moves = moved_most(S, y, targets, [each.y for each in answers], given)
    combined = tuple(replace(each, moved=moved) for each, moved in zip(combined, moves, strict=True))
    judged = [(answer, each.reasons) for answer, each in zip(answers, combined, strict=True)]
    forms = {shape: tuple(alone(a.S, a.within[shape], told) for a, told in judged) for shape in answers[0].within}
    of_forms = [Foresight(law, shape, predictions, ()) for shape, predictions in forms.items()]
    beside = tuple(_beside(law, S, targets, combined))
    return [Foresight(law, COMBINED, combined, tests, answers[0].weights, beside), *of_forms]


def _combined(
    law: Law, S: list[float], answers: Sequence[Averaged], given: Sequence[Given]
) -> tuple[tuple[Foreseen, ...], tuple[Backtest, ...]]:
    """The answers over forms, judged and widened by their backtests, and these."""
    tests, reasons = backtest_over_forms(S, law.fit.y, given), law.fit.reasons or ()
    by = widening_of(tests, len(S))

    def over_all(answer: Averaged) -> Foreseen:
        told = judge_over_forms(reasons, answer, S, law.fit.y, tests)
        y_new = widened(Estimate(answer.y, answer.lo, answer.hi), by)
        prediction = Prediction(answer.S, answer.y, y_new.lo, y_new.hi, outside(answer.S, S))
        return Foreseen(prediction, told, expected_error(y_new, prediction.beyond), by)

    return tuple(over_all(answer) for answer in answers), tests


def _beside(law: Law, S: list[float], targets: Sequence[float], now: Sequence[Foreseen]) -> Iterator[Beside]:
    """For each given constant the answer with it, without any, and at the ends of the interval that the points give."""
    for pinned in law.fit.pinned:
        for at in (each.prediction for each in now):
            yield Beside(pinned.name, pinned.now, "given", pinned.p, at.S, at.estimate, at.beyond)
        ends = [("lower end", pinned.free.lo), ("upper end", pinned.free.hi)]
        others = [("free", pinned.free, list[Given]())]
        others += [(what, Estimate(end), [Given({pinned.name: end})]) for what, end in ends if end is not None]
        for what, value, given in others:
            answers = average_forms(S, law.fit.y, targets, given) if _is_below(value, pinned.name, law) else None
            told = [None] * len(now) if answers is None else _combined(law, S, answers, given)[0]
            for of, each in zip(now, told, strict=True):
                at, y = of.prediction, Estimate() if each is None else each.prediction.estimate
                yield Beside(pinned.name, value, what, None, at.S, y, at.beyond)


def _is_below(value: Estimate, name: str, law: Law) -> bool:
    """Whether a law can have this constant: an E is below every y."""
    return name != "E" or value.value is None or value.value < min(map(abs, law.fit.y))


def keep(store: Store, foresights: Answered) -> Any:
    """Write the laws to the store with their predictions and backtests; return a row for each of these."""
    if isinstance(foresights, SurfaceForesights):
        return keep_foreseen(store, foresights)
    if not isinstance(foresights, Foresights):
        from rbpx.questions.predict.losses import keep_told

        return keep_told(foresights)
    laws = {id(foresight.law): foresight.law for foresight in foresights.laws}
    records = {at: _record(foresights, law) for at, law in laws.items()}
    rows: list[Record] = []
    for foresight in foresights.laws:
        record = records[id(foresight.law)]
        named = {"fit_id": record["fit_id"], "law": record["law"], **foresights.group.names(), "k": record["k"]}
        named |= {"method": foresight.method}
        for each in foresight.predictions:
            row = {"kind": "prediction", **named, "n_fitted": len(foresight.law.runs), **vars(each.prediction)}
            row |= {"expected_error": each.expected_error, "widened": each.widened} | foresight.moves(each)
            row |= {"status": each.status.value, "reasons": [reason.value for reason in each.reasons]}
            rows.append(row | {"weights": foresight.weights})
        for test in foresight.backtests:
            row = {"kind": "backtest", **named, "n_fitted": test.n_fitted, **vars(test.predicted)}
            rows.append(row | {"measured": test.measured, "error": test.error, "held": test.is_inside})
        for beside in foresight.beside:
            rows.append({"kind": "constant", **named, "n_fitted": len(foresight.law.runs)} | beside.row())
        if not foresight.predictions:
            rows.append({"kind": "none", **named, "status": foresight.law.fit.status})
    then, name = None, foresights.registers
    if name is not None:
        then = partial(register_answers, name, foresights.group, _answers(foresights, records))
    return {"rows": alike(rows), "fits": list(records.values()), "then": then}


def _answers(foresights: Foresights, records: dict[int, Record]) -> list[Record]:
    """The combined answers as predictions of a forecast."""
    answers = []
    for of in foresights.laws:
        fit, points = records[id(of.law)], [of.law.fit.S, of.law.fit.y]
        for each in of.predictions if of.method == COMBINED else ():
            answer = {"law": fit["law"], "k": fit["k"], "D": None, **vars(each.prediction)}
            answer |= {"expected_error": each.expected_error}
            answer |= {"status": each.status.value, "weights": of.weights, "fit_id": fit["fit_id"]}
            answers.append(answer | {"n_points": len(fit["run_ids"]), "run_ids": fit["run_ids"], "points": points})
    return answers


def _record(foresights: Foresights, law: Law) -> Record:
    """The row of `fits` of one law, with its predictions and those over forms."""
    record = fit_record(foresights.group, law, foresights.resamples)
    of_law = {each.method: each for each in foresights.laws if each.law is law}
    own = of_law.get(law.method.value)
    record["params"] = record["params"] | {
        "predictions": [vars(each.prediction) for each in own.predictions] if own else [],
        "backtests": [vars(test) | {"predicted": vars(test.predicted)} for test in law.backtests],
        "mean_backtest_error": own.mean_error if own else None,
        "over_forms": {
            method: [vars(each.prediction) for each in foresight.predictions]
            for method, foresight in of_law.items()
            if foresight is not own
        },
    }
    return record
