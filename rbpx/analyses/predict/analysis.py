"""Backtest and prediction (verb predict): laws fitted to small sizes, compared with larger ones and extrapolated.

The answer is the prediction over forms (`rbpx.laws.averaged`), method `combined`: which form a law has decides what
it says far outside the sizes, and a few sizes do not decide the form. The laws of single methods stand beside it. Each
is fitted to the m smallest sizes and compared with each larger one, on the same tokens, for m from 3 up; this measures
how well it predicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from rbpx.analyses.predict.register import check, register_answers, targets_of
from rbpx.analyses.predict.surface import SurfaceForesights, foresee, keep_foreseen
from rbpx.config.request import Request
from rbpx.groups.fits import Law, alike, doubted, fit_points, fit_record, keep_fits
from rbpx.groups.group import Group
from rbpx.groups.points import Points, size_points, weigh_group
from rbpx.groups.trainings import TrainingGroup
from rbpx.laws.averaged import COMBINED, Averaged, Within, average_forms
from rbpx.laws.backtest import Backtest, backtest_over_forms
from rbpx.laws.candidates import Shape
from rbpx.laws.names import Method
from rbpx.laws.prediction import Prediction, outside, predict
from rbpx.laws.verdict import FAR, judge_over_forms
from rbpx.status import Status, first_of, in_order
from rbpx.store.store import Record, Store

__all__ = ["Foreseen", "Foresight", "Foresights", "analyse", "check", "keep"]


@dataclass(frozen=True)
class Foreseen:
    """One prediction and what is to be said against it.

    Attributes:
        prediction: value and interval of a new model of this size on the same text.
        reasons: every status that holds for it, the first is the one to show.
    """

    prediction: Prediction
    reasons: tuple[Status, ...]

    @property
    def status(self) -> Status:
        """The first of the reasons."""
        return first_of(self.reasons)


@dataclass(frozen=True, eq=False)
class Foresight:
    """One law by one method: its predictions and its backtests.

    Attributes:
        law: the fit of that method; of the first method asked for where the answer is `combined`.
        method: `combined`, a method of `rbpx.laws.names`, or a form of which no more than its prediction is known.
        predictions: at the sizes asked for.
        backtests: of that method.
        weights: of the forms; None unless combined.
    """

    law: Law
    method: str
    predictions: tuple[Foreseen, ...]
    backtests: tuple[Backtest, ...]
    weights: dict[Shape, float] | None = None

    @property
    def mean_error(self) -> float | None:
        """Mean of |error| over all backtests; None where there are none."""
        return float(np.mean([abs(b.error) for b in self.backtests])) if self.backtests else None


@dataclass(frozen=True, eq=False)
class Foresights:
    """The laws of one group, the best at predicting first; of each law the combined answer first.

    `registers` is the name under which the combined answers become a forecast; None for none.
    """

    group: Group
    laws: tuple[Foresight, ...]
    targets: tuple[float, ...]
    resamples: int
    registers: str | None = None

    @property
    def answers(self) -> tuple[Foresight, ...]:
        """One a law: its combined answer, or what there is where nothing could be combined."""
        firsts: dict[tuple[str, int | None], Foresight] = {}
        for foresight in self.laws:
            firsts.setdefault((foresight.law.law, foresight.law.k), foresight)
        return tuple(firsts.values())


def analyse(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Foresights | SurfaceForesights:
    """Backtest every requested law and extrapolate it to the requested sizes, by default ten times the largest.

    With `D` given, predict at points of size and tokens, from all trainings of the group.
    """
    if isinstance(group, TrainingGroup):
        return foresee(connection, group, request)
    chosen = set(request.laws.names)
    k_grid: list[int] = []
    if group.is_measured:
        k_grid = request.k.grid(min(run.vocab_size or 0 for run in group.runs))
    evidence = weigh_group(connection, group, request, k_grid, chosen)
    points = size_points(group, evidence, request, k_grid, chosen)
    targets = targets_of(group, request)
    foreseen = [_foresee(group, series, request.method, targets) for series in points]
    foreseen.sort(key=lambda of_law: (of_law[0].mean_error is None, of_law[0].mean_error))
    laws = tuple(each for of_law in foreseen for each in of_law)
    return Foresights(group, laws, tuple(targets), request.resamples, request.register)


def _foresee(group: Group, points: Points, methods: Sequence[Method], targets: list[float]) -> list[Foresight]:
    """Of one law the combined answer, those of the methods, and those of the other forms."""
    laws = [doubted(group, fit_points(points, method)) for method in methods]
    return [*_over_forms(laws[0], targets), *(_by_method(law, targets) for law in laws)]


def _by_method(law: Law, targets: Sequence[float]) -> Foresight:
    if law.fit.alpha is None:
        return Foresight(law, law.method.value, (), ())
    reasons = law.fit.reasons or ()
    predictions = [predict(law.fit, S) for S in targets]
    foreseen = [Foreseen(p, in_order([*reasons, *([Status.beyond] if p.beyond > FAR else [])])) for p in predictions]
    return Foresight(law, law.method.value, tuple(foreseen), law.backtests)


def _over_forms(law: Law, targets: Sequence[float]) -> list[Foresight]:
    """The combined answer, then each form by itself; none where nothing can be averaged."""
    S, y = [float(run.non_embedding_params) for run in law.runs], law.fit.y
    answers = None if law.fit.alpha is None else average_forms(S, y, targets)
    if answers is None:
        return []
    tests = backtest_over_forms(S, y)
    reasons = law.fit.reasons or ()
    foreseen = [
        Foreseen(_prediction(answer.S, answer, S), judge_over_forms(reasons, answer, S, y, tests)) for answer in answers
    ]
    forms = [
        Foresight(law, shape.value, tuple(Foreseen(_prediction(a.S, a.within[shape], S), ()) for a in answers), ())
        for shape in answers[0].within
    ]
    return [Foresight(law, COMBINED, tuple(foreseen), tests, answers[0].weights), *forms]


def _prediction(at: float, answer: Averaged | Within, S: Sequence[float]) -> Prediction:
    return Prediction(at, answer.y, answer.lo, answer.hi, outside(at, S))


def keep(store: Store, foresights: Foresights | SurfaceForesights) -> list[Record]:
    """Write the laws to the store, each with its predictions and backtests, and return those, a row each."""
    if isinstance(foresights, SurfaceForesights):
        return keep_foreseen(store, foresights)
    laws = {id(foresight.law): foresight.law for foresight in foresights.laws}
    records = {at: _record(foresights, law) for at, law in laws.items()}
    keep_fits(store, list(records.values()))
    rows: list[Record] = []
    for foresight in foresights.laws:
        record = records[id(foresight.law)]
        named = {"fit_id": record["fit_id"], "law": record["law"], **foresights.group.names(), "k": record["k"]}
        named |= {"method": foresight.method}
        n = len(foresight.law.runs)
        for each in foresight.predictions:
            rows.append(_row("prediction", named, n, each.prediction, each.reasons) | {"weights": foresight.weights})
        for test in foresight.backtests:
            row = _row("backtest", named, test.n_fitted, test.predicted)
            rows.append(row | {"measured": test.measured, "error": test.error, "held": test.is_inside})
        if not foresight.predictions:
            rows.append({"kind": "none", **named, "status": foresight.law.fit.status})
    if foresights.registers is not None:
        register_answers(store, foresights.registers, foresights.group, _answers(foresights, records))
    return alike(rows)


def _answers(foresights: Foresights, records: dict[int, Record]) -> list[Record]:
    """The combined answers as predictions of a forecast."""
    answers = []
    for foresight in foresights.laws:
        fit = records[id(foresight.law)]
        points = [foresight.law.fit.S, foresight.law.fit.y] if foresight.weights else []
        for each in foresight.predictions if foresight.method == COMBINED else ():
            answer = {"law": fit["law"], "k": fit["k"], "D": None, **vars(each.prediction)}
            answer |= {"status": each.status.value, "weights": foresight.weights, "fit_id": fit["fit_id"]}
            answers.append(answer | {"n_points": len(fit["run_ids"]), "run_ids": fit["run_ids"], "points": points})
    return answers


def _record(foresights: Foresights, law: Law) -> Record:
    """The row of `fits` of one law, with all that was foreseen by it and over forms."""
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


def _row(
    kind: str, named: Record, n_fitted: int, prediction: Prediction, reasons: Sequence[Status] | None = None
) -> Record:
    status = None if reasons is None else first_of(reasons).value
    told = None if reasons is None else [reason.value for reason in reasons]
    return {"kind": kind, **named, "n_fitted": n_fitted, **vars(prediction), "status": status, "reasons": told}
