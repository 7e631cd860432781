"""Extrapolates laws to other sizes, and backtests them on the sizes there are.

The answer is the prediction over forms (`rbpx.laws.prediction.prediction`), method `combined`: what a law says far
outside the sizes depends on its form, which a few sizes do not determine. The laws of single methods stand beside it.
To measure how well a law predicts, it is fitted to the m smallest sizes and compared with each larger one, on the same
tokens, for m from 3 up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rbpx.config.request import Request
from rbpx.laws.power.fixed_parameters import value_combinations
from rbpx.laws.power.predictor import Prediction
from rbpx.laws.prediction.calibration import widen
from rbpx.laws.prediction.influence import most_influential
from rbpx.laws.prediction.prediction import COMBINED, WITHOUT_LARGEST, average_forms
from rbpx.laws.prediction.verdict import REMARKS, Backtest, backtest_averaged, judge_averaged, widening_of
from rbpx.laws.prediction.warnings import n_largest_off, n_smaller, n_unexpected_tokens
from rbpx.laws.priors import FixedValues
from rbpx.questions.predict.rows import backtest, constants, left_out, moves, prediction, title_of, values
from rbpx.runs.fits import Law, doubted, fit_points, fit_record
from rbpx.runs.group import Group, labels_of
from rbpx.runs.points.sizes import Points
from rbpx.status import Status
from rbpx.store.store import Record


@dataclass(frozen=True, eq=False)
class Foresight:
    """One quantity: its predictions and its backtests.

    Attributes:
        law: by the first method that has numbers, which the answer over forms rests on.
        n_smaller: runs beside the largest, where they do not foretell these; None where they do.
        fit: the same as a row of `fits`.
        fits: those by all methods.
        rows: all that is known, told apart by `kind` and `method`: predictions at the sizes asked for, backtests, and
            what the combined answer would be without given constants and with others, and without the largest runs
            where the others do not foretell these; or that there is `none`. The answer comes first: `combined`, else
            the first method; then single forms, and the other methods.
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
        """The name of the law."""
        return title_of(self.rows[0])


def foresee(group: Group, points: Points, request: Request, targets: Sequence[float]) -> Foresight:
    """The answers for one law: the combined one, those of single forms, and those by each method.

    What speaks against the combined answer speaks against each of the others, which rest on the same points, and
    nothing else does; where there is no combined answer, what speaks against the law.
    """
    laws = [doubted(group, fit_points(points, method, request.pins)) for method in request.method]
    fits = [fit_record(group, law, request.resamples) for law in laws]
    first = next((at for at, law in enumerate(laws) if law.fit.alpha.value is not None), 0)
    m, told = _over_forms(laws[first], targets, request)
    rows = [{"fit_id": fits[first]["fit_id"]} | row for row in told]
    combined = [row["reasons"] for row in rows if (row["kind"], row["method"]) == ("prediction", COMBINED)]
    for law, fit in zip(laws, fits, strict=True):
        told = [*_by_method(law, targets, combined or [law.fit.reasons or ()] * len(targets))]
        told = told or [{"kind": "none", "n_fitted": None, "status": law.fit.status}]
        rows += [{"fit_id": fit["fit_id"], "method": law.method.value} | row for row in told]
    named = {"law": points.law, **group.names(), "k": points.k, "n_fitted": len(laws[first].runs)}
    return Foresight(laws[first], m, fits[first], fits, [named | row for row in rows])


def _by_method(law: Law, targets: Sequence[float], combined: Sequence[Sequence[Status]]) -> Iterator[Record]:
    """The predictions of one law, judged as the combined answer at the same size is, and its backtests."""
    if law.fit.alpha.value is None:
        return
    for told, reasons in zip(map(law.fit.predict, targets), combined, strict=True):
        yield prediction(told.record(), reasons)
    yield from map(backtest, law.backtests)


def _over_forms(law: Law, targets: Sequence[float], request: Request) -> tuple[int | None, list[Record]]:
    """The combined answer, also of the n smaller runs where they do not foretell the largest, then single forms.

    Nothing where no forms can be averaged.
    """
    S, y, pinned = [float(run.non_embedding_params) for run in law.runs], law.fit.y, law.fit.pinned
    given = value_combinations(request.pins, y, {each.name: each.free for each in pinned}) if pinned else ()
    found = None if law.fit.alpha.value is None else _combined(law, len(S), targets, given, request.joint)
    if found is None:
        return None, []
    answers, combined, tests = found
    moved, labels = most_influential(S, y, targets, [each.y for each in answers], given), labels_of(law.runs)
    combined = [row | moves(each, labels) for row, each in zip(combined, moved, strict=True)]

    def refit(held: dict[str, float]) -> list[Record] | None:
        others = _combined(law, len(S), targets, [FixedValues(held)] if held else [], request.joint)
        return None if others is None else others[1]

    m = _n_smaller(law, S, combined[0]["reasons"])
    without = _combined(law, m, targets, given, request.joint) if m else None
    beside = constants(pinned, combined, min(map(abs, y)), refit)
    rows = [{"method": COMBINED} | row for row in (*combined, *map(backtest, tests), *beside)]
    if without is not None:
        about = {"method": WITHOUT_LARGEST, "n_fitted": m}
        rows += [
            row | about | {name: now[name] for name in ("beyond", "status", "reasons")}
            for row, now in zip(without[1], combined, strict=True)
        ]
    return m, rows + [
        {"method": form} | prediction(row | values(each.within[form].estimate), row["reasons"])
        for form in answers[0].within
        for each, row in zip(answers, combined, strict=True)
    ]


def _n_smaller(law: Law, S: Sequence[float], reasons: Sequence[Status]) -> int | None:
    """How many runs are smaller than the largest one or two sizes that a status is about; None where none is."""
    n = abs(n_unexpected_tokens(S, [run.training_tokens for run in law.runs]))
    if not n and Status.intervals_missed in reasons:
        n = n_largest_off(S, law.fit.y)
    return n_smaller(S, n) if n else None


def _combined(
    law: Law, m: int, targets: Sequence[float], given: Sequence[FixedValues], joint: bool
) -> tuple[list[Prediction], list[Record], tuple[Backtest, ...]] | None:
    """The answers over forms of the m smallest models, the same judged and widened by their backtests, and these.

    None where there are none.
    """
    S, y = [float(run.non_embedding_params) for run in law.runs[:m]], law.fit.y[:m]
    answers = average_forms(S, y, targets, given, p=left_out(len(targets), joint))
    if answers is None:
        return None
    tests, rows = backtest_averaged(S, y, given), []
    by = widening_of(tests, m)
    for each in answers:
        holds = judge_averaged(law.fit.reasons or (), each, S, y, tests)
        reasons, remarks = ([status for status in holds if (status in REMARKS) is said] for said in (False, True))
        own: Record = {"widened": by, "weights": each.weights, "remarks": remarks}
        own |= {"n_joint": len(targets)} if joint else {}
        at = {"S": each.S, "beyond": each.beyond, **values(widen(each.estimate, by))}
        rows.append(prediction(at, reasons, **own))
    return answers, rows, tests
