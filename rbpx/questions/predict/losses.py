"""Predicts a quantity from scores on another text, by calibrations with backtests."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import duckdb
import numpy as np

from rbpx.display.chart.figure import Figure, Mark, Origin, Rows, Scale, Undrawn, line
from rbpx.display.chart.laws import series_figure
from rbpx.display.table import STATUS, Column, Table, interval, table_of
from rbpx.display.vocabulary import in_digits, short, size_name, whole
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.losses.backtests import widened, widenings_at
from rbpx.laws.losses.calibration import FEWEST, Calibration, calibrate, hold_out_best, hold_out_family, is_far, rises
from rbpx.laws.numeric import Floats
from rbpx.laws.power.predicted import extrapolation_factor
from rbpx.laws.prediction.calibration import widen
from rbpx.laws.prediction.prediction import COMBINED
from rbpx.laws.prediction.verdict import Backtest, missed_by_backtests, too_few_hold
from rbpx.questions.predict import PredictKeys
from rbpx.questions.predict.rows import (
    LAW,
    TESTED,
    WIDENED,
    answer_sentence,
    backtest,
    backtest_summary,
    shown,
    title_of,
    value_in,
    values,
)
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.group import Group
from rbpx.runs.origin import spelled
from rbpx.runs.points.losses import Pairs, loss_pairs
from rbpx.runs.run import Run
from rbpx.runs.select.losses import family_of
from rbpx.status import Status, status_keys
from rbpx.store.store import Record

_Targets = Sequence[tuple[Run | None, float]]
"""The models that are on the other text only, None where x was typed, and their scores there."""

_FITTED: Final = Column("fitted", "family")
BACKTESTS: Final = table_of(
    "backtest", LAW, _FITTED, ("models", "n_fitted", whole), *TESTED,
    first="law family n_fitted mean_error",
)  # fmt: skip
PREDICTIONS: Final = table_of(
    "predictions", LAW, ("model", "size"),
    ("x", "x", short, "what the model shows on the other text"),
    _FITTED, *interval("predicted", "y", in_digits(4)), WIDENED, *TESTED,
    ("outside", "beyond", short, "how many times outside what was measured"),
    STATUS,
    first="law x y mean_error status, size inside, widened, family",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CalibrationPrediction:
    """One quantity, predicted from the models of one family, or of all for None.

    Attributes:
        calibration: predicts y, or the odds of misses; None with too few points.
        tests: widened backtests of the smallest x; with all families, of each from the others.
    """

    pairs: Pairs
    family: str | None
    calibration: Calibration | None
    predictions: Sequence[Record]
    tests: Sequence[Record]

    @property
    def names(self) -> Record:
        """The keys that all its rows share."""
        family, n = self.family or " + ".join(self.pairs.families), int(self.pairs.of(self.family).sum())
        return {"law": self.pairs.law, "family": family, "k": self.pairs.k, "x_k": self.pairs.x_k, "n_fitted": n}


def predict_from_losses(connection: duckdb.DuckDBPyConnection, group: Group, request: PredictKeys) -> Result:
    """Predicts from another loss; stores no fit."""
    found = [each for pairs in loss_pairs(connection, group, request) for each in _of(pairs, request)]
    rows = [
        {"law": of.pairs.law, **group.names()} | of.names | row
        for of in found
        for row in [*of.predictions, *of.tests] or [{"kind": "none", "status": Status.too_few_sizes}]
    ]
    return Result(
        [group], alike(rows), [*_tables(group, found)], [*_sentences(group, found)], partial(_figures, group, found)
    )


def _of(pairs: Pairs, request: PredictKeys) -> list[CalibrationPrediction]:
    own = [family for family in pairs.families if pairs.of(family).sum() >= FEWEST]
    alone = list(zip(pairs.alone, pairs.x_A.tolist(), strict=True))
    typed: list[tuple[Run | None, float]] = [(None, x) for x in request.x]
    found = [_by(pairs, family, [*(at for at in alone if family_of(at[0]) == family), *typed]) for family in own]
    if not own:
        return [_by(pairs, None, [*alone, *typed])]
    strangers = [at for at in alone if family_of(at[0]) not in own]
    return [*found, _by(pairs, None, strangers)] if strangers else found


def _by(pairs: Pairs, family: str | None, targets: _Targets) -> CalibrationPrediction:
    of_N, several = pairs.of(family), family is None and len(pairs.families) > 1
    x_N, y_N, of = pairs.x_N[of_N], pairs.fitted_N[of_N], np.array(pairs.family_N)[of_N].tolist()
    least = min([pairs.least_x, *(x for _, x in targets)])
    calibration = calibrate(x_N, y_N, least, None if family is not None else of)
    tests = hold_out_best(x_N, y_N)
    if several:
        tests = tuple(test for each in hold_out_family(x_N, y_N, of).values() for test in each)
    wider, predictions = pairs.compared(widened(tests, len(x_N))), list[Record]()
    if calibration is not None and targets:
        of_fit = _doubts(pairs, x_N, pairs.y_N[of_N], pairs.compared(tests), wider, family)
        scatter = pairs.scatter(calibration, family)
        beyond_T = [extrapolation_factor(1 / x, (1 / x_N).tolist()) for _, x in targets]
        answers = zip(calibration.at([x for _, x in targets]), widenings_at(tests, len(x_N), beyond_T), strict=True)
        for (run, x), beyond, (y, by) in zip(targets, beyond_T, answers, strict=True):
            y = pairs.as_y(widen(y, by), scatter)
            stranger = run is not None and len(pairs.families) == 1 and family_of(run) not in pairs.families
            far = [Status.beyond] if stranger or is_far(x, x_N) else []
            row: Record = {"kind": "prediction", "model_family": run and run.family, "size": run and run.size}
            row |= {"S": run and run.non_embedding_params, "method": COMBINED}
            row |= {"x": x, **values(y), "beyond": beyond, "widened": by}
            predictions.append(row | status_keys([*of_fit, *far]))
    at = {"method": COMBINED, "S": None}
    backtests = [backtest(test) | at | {"x": 1 / test.S} for test in wider]
    return CalibrationPrediction(pairs, family, calibration, predictions, backtests)


def _doubts(
    pairs: Pairs, x_N: Floats, y_N: Floats, tests: Sequence[Backtest], wider: Sequence[Backtest], family: str | None
) -> list[Status]:
    doubts = list(pairs.doubts)
    doubts += [] if rises(x_N, y_N) else [Status.no_trend]
    doubts += [Status.intervals_missed] if too_few_hold(test.is_inside for test in wider) else []
    if family is not None or len(pairs.families) == 1:
        order = np.argsort(1 / x_N, kind="stable")
        doubts += missed_by_backtests((1 / x_N)[order].tolist(), tests)
    return doubts


def _predictions(found: Sequence[CalibrationPrediction]) -> list[Record]:
    return [of.names | backtest_summary(of.tests) | row for of in found for row in of.predictions]


def _tables(group: Group, found: Sequence[CalibrationPrediction]) -> Iterator[Table]:
    rows = [shown(row) | {"size": _model(row)} for row in _predictions(found)]
    if rows:
        yield PREDICTIONS.of("Predictions from another loss", rows, group.title)
    note = " ".join(dict.fromkeys(of.pairs.of_guessing for of in found if of.pairs.of_guessing))
    backtests = [shown(of.names | backtest_summary(of.tests)) for of in found]
    yield BACKTESTS.of("Backtests", backtests, group.title, note=note, brief=not rows)


def _model(row: Record) -> str | None:
    return row["size"] and f"{row['model_family']} {size_name(row['size'])}"


def _sentences(group: Group, found: Sequence[CalibrationPrediction]) -> Iterator[str]:
    titles = {(of.pairs.law, of.pairs.k): of.pairs.x_title for of in found}

    def subject(row: Record) -> str:
        of = f"{_model(row)}, where" if row["size"] else "Where"
        x = f"{titles[row['law'], row['k']]} is {short(row['x'])}"
        return f"{of} {x}, {title_of(row)} on {group.first.dataset}"

    predictions = _predictions(found)
    if not any(len(of.pairs.x_N) for of in found):
        on, here = group.on, group.first.dataset
        yield f"Nothing to predict: no model with {on.law} on {on.dataset} is known on {here}."
    elif not predictions:
        yield (
            f"Nothing to predict: every model on {group.on.dataset} is on {group.first.dataset} too. For another one "
            "type what it shows there: x=2.9."
        )
    yield from answer_sentence(predictions, subject)


def _figures(group: Group, found: Sequence[CalibrationPrediction]) -> Iterator[Figure | Undrawn]:
    """As figure 1 of arXiv 2411.12925."""
    origin = Origin(spelled("runs_of_text", dataset=group.first.dataset), tuple(group.run_ids))
    caption = "Lines, bands: y on x as measured, and where 95 % of new models would lie. Bars: predictions."
    for pairs in dict.fromkeys(of.pairs for of in found):
        name, title = f"losses-{pairs.key.replace('_', '-')}", f"{pairs.title} against {pairs.x_title}"
        if not len(pairs.x_N):
            yield Undrawn(name, title, "No model has both.")
            continue
        laws = [of for of in found if of.pairs is pairs]
        measured = zip(pairs.family_N, pairs.x_N.tolist(), pairs.y_N.tolist(), strict=True)
        predicted = [
            (f"predicted, {row['model_family'] or of.names['family']}", float(row["x"]), value_in(row))
            for of in laws
            for row in of.predictions
        ]
        lines = [at for of in laws if of.family or len(pairs.families) == 1 or len(laws) == 1 for at in _line(of)]
        yield series_figure(
            name,
            title,
            [*((family, x, Estimate(y)) for family, x, y in measured), *predicted],
            Scale("x", pairs.x_title),
            Scale("y", pairs.title),
            (
                f"{pairs.title} of {len(pairs.x_N)} models against {pairs.x_title}; {len(predicted)} are predicted.",
                caption,
            ),
            origin,
            [Mark("band", lines), line(lines)] if lines else [],
        )


def _line(of: CalibrationPrediction) -> Rows:
    """Between the least and the greatest x, with the 95 % band of new models."""
    pairs, calibration = of.pairs, of.calibration
    if calibration is None:
        return []
    x = [*pairs.x_N[pairs.of(of.family)].tolist(), *(row["x"] for row in of.predictions)]
    scatter, rows = pairs.scatter(calibration, of.family), list[Record]()
    for at, told in calibration.along(min(x), max(x)):
        y = pairs.as_y(told, scatter)
        rows.append({"series": of.family or pairs.families[0], "x": at, "y": y.value, "lo": y.lo, "hi": y.hi})
    return rows
