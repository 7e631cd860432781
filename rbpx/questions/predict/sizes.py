"""Extrapolates the law of one quantity to other sizes, and backtests it on the measured sizes.

The answer, method `combined`, is averaged over forms, which a few sizes do not determine. A backtest fits the m
smallest sizes, m from 3 up, and predicts each larger one on the same tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rbpx.laws.power.fixed_parameters import value_combinations
from rbpx.laws.power.predicted import FAR, Prediction
from rbpx.laws.prediction.influence import Influence, most_influential
from rbpx.laws.prediction.judged import predict_judged
from rbpx.laws.prediction.prediction import COMBINED, WITHOUT_LARGEST
from rbpx.laws.prediction.verdict import Backtest, judge_alone
from rbpx.laws.prediction.warnings import n_largest_off, n_smaller, n_unexpected_tokens
from rbpx.laws.priors import FixedValues
from rbpx.questions.predict import PredictKeys
from rbpx.questions.predict.rows import (
    backtest,
    fixed_parameter_rows,
    influence_keys,
    prediction,
    tail_probability,
    title_of,
    values,
)
from rbpx.runs.fits import Law, doubted, fit_points, fit_record
from rbpx.runs.group import Group
from rbpx.runs.points.sizes import Points
from rbpx.runs.run import labels_of
from rbpx.status import Status
from rbpx.store.store import Record


@dataclass(frozen=True, eq=False)
class LawPrediction:
    """The predictions and backtests of one quantity.

    Attributes:
        law: by the first method that has numbers; the averaged prediction uses its points.
        n_smaller: how many smaller runs fail to predict the largest, if they do.
        fit: the row of `fits` of `law`.
        rows: first the answer, `combined` or else the first method, with its backtests, predictions with other or no
            fixed parameters and without the largest runs, or `none`; then single forms and the other methods.
    """

    law: Law
    n_smaller: int | None
    fit: Record
    fits: Sequence[Record]
    rows: Sequence[Record]

    def of(self, kind: str) -> list[Record]:
        """The rows of the answer of a kind."""
        return [row for row in self.rows if (row["kind"], row["method"]) == (kind, self.rows[0]["method"])]

    @property
    def title(self) -> str:
        """The title of the law."""
        return title_of(self.rows[0])


def predict_law(group: Group, points: Points, request: PredictKeys, targets: Sequence[float]) -> LawPrediction:
    """Predicts one quantity by the average over forms, by each form within it and by each method.

    A method has the statuses of the average and those of its own law and backtests.
    """
    laws = [doubted(group, fit_points(points, method, request.pins)) for method in request.method]
    fits = [fit_record(group, law, request.resamples) for law in laws]
    first = next((at for at, law in enumerate(laws) if law.fit.alpha.value is not None), 0)
    m, predictions = _over_forms(laws[first], targets, request)
    rows = [{"fit_id": fits[first]["fit_id"]} | row for row in predictions]
    combined = [row["reasons"] for row in rows if (row["kind"], row["method"]) == ("prediction", COMBINED)]
    for law, fit in zip(laws, fits, strict=True):
        predictions = [*_by_method(law, targets, combined or [()] * len(targets))]
        predictions = predictions or [{"kind": "none", "n_fitted": None, "status": law.fit.status}]
        rows += [{"fit_id": fit["fit_id"], "method": law.method.value} | row for row in predictions]
    named = {"law": points.law, **group.names(), "k": points.k, "n_fitted": len(laws[first].runs)}
    return LawPrediction(laws[first], m, fits[first], fits, [named | row for row in rows])


def _by_method(law: Law, targets: Sequence[float], combined: Sequence[Sequence[Status]]) -> Iterator[Record]:
    if law.fit.alpha.value is None:
        return
    own = judge_alone(law.fit.reasons or (), [test.is_inside for test in law.backtests])
    for answer, reasons in zip(map(law.fit.predict, targets), combined, strict=True):
        far = [Status.beyond] if answer.beyond > FAR else []
        yield prediction(answer.record(), [*own, *reasons, *far])
    yield from map(backtest, law.backtests)


def _over_forms(law: Law, targets: Sequence[float], request: PredictKeys) -> tuple[int | None, list[Record]]:
    """How many runs fail to predict the largest, and rows of the average and of single forms."""
    S, y, pinned = [float(run.non_embedding_params) for run in law.runs], law.fit.y, law.fit.pinned
    given = value_combinations(request.pins, y, {each.name: each.free for each in pinned}) if pinned else ()
    found = None if law.fit.alpha.value is None else _combined(law, len(S), targets, given, request.joint)
    if found is None:
        return None, []
    answers, combined, tests = found
    along_S = [each.y for each in answers if each.D is None]
    moved: Sequence[Influence | None] = [None] * len(answers)
    moved, labels = most_influential(S, y, targets, along_S, given) if along_S else moved, labels_of(law.runs)
    combined = [row | influence_keys(each, labels) for row, each in zip(combined, moved, strict=True)]

    def refit(held: dict[str, float]) -> list[Record] | None:
        others = _combined(law, len(S), targets, [FixedValues(held)] if held else [], request.joint)
        return None if others is None else others[1]

    m = _n_smaller(law, S, combined[0]["reasons"])
    without = _combined(law, m, targets, given, request.joint) if m else None
    beside = fixed_parameter_rows(pinned, combined, min(map(abs, y)), refit)
    rows = [{"method": COMBINED} | row for row in (*combined, *map(backtest, tests), *beside)]
    if without is not None:
        about = {"method": WITHOUT_LARGEST, "n_fitted": m}
        rows += [
            row | about | {name: now[name] for name in ("beyond", "status", "reasons")}
            for row, now in zip(without[1], combined, strict=True)
        ]
    return m, rows + [
        {"method": form} | prediction(row | values(each.within[form].estimate), ()) | {"status": None}
        for form in answers[0].within
        for each, row in zip(answers, combined, strict=True)
    ]


def _n_smaller(law: Law, S: Sequence[float], reasons: Sequence[Status]) -> int | None:
    """How many are smaller than the largest one or two sizes that a status is about."""
    n = abs(n_unexpected_tokens(S, [run.training_tokens for run in law.runs]))
    if not n and Status.intervals_missed in reasons:
        n = n_largest_off(S, law.fit.y)
    return n_smaller(S, n) if n else None


def _combined(
    law: Law, m: int, targets: Sequence[float], given: Sequence[FixedValues], joint: bool
) -> tuple[list[Prediction], list[Record], tuple[Backtest, ...]] | None:
    """Averaged predictions from the m smallest models, their rows, and backtests."""
    S, y = [float(run.non_embedding_params) for run in law.runs[:m]], law.fit.y[:m]
    tokens, p, rows = [run.training_tokens for run in law.runs[:m]], tail_probability(len(targets), joint), []
    found = predict_judged(S, y, targets, law.fit.reasons or (), given, p, tokens)
    if found is None:
        return None
    for each in found[0]:
        own: Record = {"widened": each.widened, "weights": each.weights, "remarks": [*each.remarks]}
        own |= {"n_joint": len(targets)} if joint else {}
        at = {"S": each.S, "beyond": each.beyond, **values(each.estimate)} | ({} if each.D is None else {"D": each.D})
        rows.append(prediction(at, each.reasons or (), **own))
    return found[0], rows, found[1]
