"""Answers `predict`."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import compress
from statistics import mean
from typing import Final

import duckdb

from rbpx.display.chart.figure import Chart, Figure, Scale, Undrawn, drawn, points, rule
from rbpx.display.fixed_parameters import said_of_given
from rbpx.display.section import Fact, fact_of
from rbpx.display.table import Table, interval, table_of
from rbpx.display.vocabulary import law_order, percent, short, spoken, the_largest
from rbpx.laws.forms.candidates import LawForm
from rbpx.laws.names import FORM_NAMES, OnText
from rbpx.laws.prediction.prediction import COMBINED, WITHOUT_LARGEST
from rbpx.laws.prediction.verdict import SHORT
from rbpx.questions.predict import PredictKeys
from rbpx.questions.predict.register import forecast_rows, forecast_writer, select, targets_of
from rbpx.questions.predict.rows import (
    LAW,
    TESTED,
    answer_sentence,
    backtest_summary,
    fixed_parameter_table,
    prediction_tables,
    shown,
    title_of,
    value_in,
    without_largest_clause,
)
from rbpx.questions.predict.sizes import LawPrediction, predict_law
from rbpx.questions.predict.surface import predict_from_surface
from rbpx.questions.question import OnPage, of_each
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.group import By, Group
from rbpx.runs.origin import from_fits
from rbpx.runs.points.frontier import frontier, said_of_points
from rbpx.runs.points.one_run import said_of_one_run, said_of_tokens
from rbpx.runs.points.sizes import law_points
from rbpx.runs.run import grouped, labels_of
from rbpx.status import Status
from rbpx.store.store import Record

_MOST_LEFT_OUT: Final = 3  # of the sizes in a backtest


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: PredictKeys) -> Result:
    """Backtests every requested law and extrapolates it to the requested sizes, by default ten times the largest."""
    if isinstance(request.axis, OnText):
        from rbpx.questions.predict.losses import predict_from_losses  # slow to import, and laws in size do not need it

        return predict_from_losses(connection, group, request)
    if group.by is By.training:
        return predict_from_surface(connection, group, request)
    (_, _, series), targets = law_points(connection, group, request), targets_of(group, request)
    series, cells = frontier(series) if request.frontier else (series, ())
    found = [predict_law(group, each, request, targets) for each in series]
    found.sort(
        key=lambda of: math.inf if (error := backtest_summary(of.of("backtest"))["mean_error"]) is None else error
    )
    fits, rows = [fit for of in found for fit in of.fits], alike([row for of in found for row in of.rows])
    asked = [] if request.typed["method"] is None else [method.value for method in request.method]
    told = {(of.law.law, of.law.k): {of.rows[0]["method"], WITHOUT_LARGEST, *asked} for of in found}
    is_told = [row["method"] in told[row["law"], row["k"]] for row in rows]
    answers = sorted((row for of in found for row in _answers(of)), key=_at)
    registered = (forecast_rows(of.rows, of.fit, len(of.fit["run_ids"]), [of.law.fit.S, of.law.fit.y]) for of in found)
    return Result(
        [group],
        [*compress(rows, is_told)],
        [*_tables(group, rows, answers, bool(asked))],
        [*answer_sentence(answers), *said_of_points(cells, group.asked), *_sentences(found)],
        partial(_figures, group, found, [fit["fit_id"] for fit in fits]),
        fits,
        notes=[*_said_of_measured(found, targets), *_said_of_largest(found)],
        then=forecast_writer(request, group, registered),
        beside=[row for row, told in zip(rows, is_told, strict=True) if not told],
    )


def _at(row: Record) -> float:
    return row.get("S") or 0.0


def _answers(of: LawPrediction) -> list[Record]:
    return [row | backtest_summary(of.of("backtest")) for row in (of.of("prediction") or of.of("none"))]


def _tables(group: Group, rows: Sequence[Record], answers: Sequence[Record], asks_method: bool) -> Iterator[Table]:
    n = len(group.runs)
    fitted = range(n - 1, max(n - _MOST_LEFT_OUT, 3) - 1, -1)
    shown = [row for row in rows if row["method"] not in [*LawForm, *FORM_NAMES]]  # no form within the combined
    nested = [row for row in shown if row["method"] != WITHOUT_LARGEST]
    laws = grouped(nested, lambda row: (row["law"], row["k"], row["method"])).values()
    told = sorted((row for row in shown if row["kind"] in ("prediction", "none")), key=_at)
    yield from prediction_tables("Predictions for new models", told, answers, group.title, [*LawForm], asks_method)
    yield from fixed_parameter_table([row for row in shown if row["kind"] == "constant"], group.title)
    yield _backtests(fitted).of("Backtests", [_backtest(group, of) for of in laws], group.title, brief=False)


def _backtest(group: Group, rows: Sequence[Record]) -> Record:
    """Errors at the largest size are those of its first model."""
    tests, largest = [row for row in rows if row["kind"] == "backtest"], group.runs[-1].non_embedding_params
    errors = {f"error_from_{row['n_fitted']}": row["error"] for row in reversed(tests) if row["S"] == largest}
    return shown(rows[0] | backtest_summary(tests)) | errors


def _backtests(fitted: Sequence[int]) -> Table:
    means = "error of the largest size, predicted from so many of the smallest"
    errors = [(f"from {n}", f"error_from_{n}", percent, means if n == fitted[0] else "") for n in fitted]
    first = f"law method mean_error {' '.join(key for _, key, *_ in errors)}"
    return table_of("backtest", LAW, ("by", "method"), TESTED[0], *errors, TESTED[1], first=first)


def _figures(group: Group, answers: Sequence[LawPrediction], fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    title = "Backtest: the largest size, predicted from smaller ones"
    largest, n = group.runs[-1], len(group.runs) - _MOST_LEFT_OUT
    tests = (row for of in answers for row in of.of("backtest") if row["n_fitted"] >= n)
    rows = [row for row in tests if row["S"] == largest.non_embedding_params]
    if not rows:
        yield Undrawn("backtest", title, "It needs four sizes: three to fit, one to test the law on.")
        return
    least = min(rows, key=lambda row: abs(row["error"]))
    errors = {of.title: backtest_summary(of.of("backtest"))["mean_error"] for of in answers if of.of("backtest")}
    order = tuple(f"{n} smallest" for n in sorted({row["n_fitted"] for row in rows}, reverse=True))
    x, y = Scale("error", "error of the prediction", zero=True, form=".2~%"), Scale("law", "", names=tuple(errors))
    marks = (rule(error=0.0), points(look={"size": 80}))
    yield drawn(
        ERRORS.of(title, map(_fitted, rows)),
        Chart(x, y, marks, "fitted", "fitted to the", order, max(160, 26 * len(errors))),
        f"Errors of predictions for {group.title}; mean error of each law: "
        f"{', '.join(f'{name} {mean:.1%}' for name, mean in errors.items())}. Smallest single error: "
        f"{title_of(least)}, {least['error']:+.1%}.",
        f"Error of the combined prediction for {largest.label}, (predicted − measured) / measured; laws in order of "
        "their mean error over all backtests. Colour and shape: how many of the smallest sizes were fitted.",
        from_fits(fit_ids, group),
    )


def _fitted(row: Record) -> Record:
    told = {"predicted": row["y"], "predicted_lo": row["lo"], "predicted_hi": row["hi"]}
    return shown(row) | told | {"fitted": f"{row['n_fitted']} smallest"}


ERRORS: Final = table_of(
    "backtest", LAW, ("fitted to", "fitted"), *interval("predicted", "predicted", short),
    ("measured", "measured", short), ("error", "error", percent),
)  # fmt: skip


def _sentences(answers: Sequence[LawPrediction]) -> Iterator[str]:
    told = [row for of in answers for row in of.of("prediction")]
    if any(Status.barely_determined in (row["remarks"] or ()) for row in told):
        yield f"The sizes span less than {SHORT:.0f} decades, which is why intervals are wide."
    yield from said_of_one_run(
        of.law for of in answers if any(Status.one_run in (row["remarks"] or ()) for row in of.of("prediction"))
    )
    for of in answers:
        yield from said_of_given(of.title, of.law.fit.pinned)


def _said_of_measured(answers: Sequence[LawPrediction], targets: Sequence[float]) -> Iterator[str]:
    for S in targets:
        points = [(of.title, y) for of in answers for at, y in zip(of.law.fit.S, of.law.fit.y, strict=True) if at == S]
        if points:
            told = ", ".join(f"{title} {abs(y):.4g}" for title, y in points)
            yield f"Measured at {spoken(S, 3)} parameters: {told}."
    for of in answers:
        largest, y = of.law.fit.S[-1], abs(of.law.fit.y[-1])
        larger = [row for row in of.of("prediction") if row["S"] > largest and row["y"] is not None]
        worse = [row["S"] for row in larger if abs(row["y"]) > y]
        if worse and (of.law.fit.alpha.value or 0) > 0:
            yield (
                f"{of.title} is {y:.4g} at {spoken(largest, 3)} parameters, less than predicted at "
                f"{spoken(worse[0], 3)}: the smaller sizes do not tell what larger ones do."
            )


def _said_of_largest(answers: Sequence[LawPrediction]) -> Iterator[str]:
    off = [of for of in answers if of.n_smaller is not None]
    for found in grouped(off, lambda of: (of.n_smaller, *labels_of(of.law.runs))).values():
        laws = sorted(found, key=lambda of: law_order(of.law.law, of.law.k))
        runs, m = laws[0].law.runs, laws[0].n_smaller or 0
        said, n = said_of_tokens(runs), len(runs) - m
        if said is None:
            lie = "lies" if n == 1 else "lie"
            shares = ", ".join(f"{of.title}{_share(of.of('backtest'), m)}" for of in laws)
            said = f"{the_largest(labels_of(runs)[m:])} {lie} off what the others predict: {shares}"
        yield f"{said}{without_largest_clause((row for row in laws[0].rows if row['method'] == WITHOUT_LARGEST), n)}."


def _share(backtests: Sequence[Record], m: int) -> str:
    off = [(row["measured"] - row["y"]) / abs(row["y"]) for row in backtests if row["n_fitted"] == m]
    return f" {abs(mean(off)):.1%} {'above' if mean(off) > 0 else 'below'}" if off else ""


def facts(result: Result) -> Iterator[Fact]:
    """Yields RBP and cross-entropy at the first size asked for."""
    told = [row for row in result.rows if row["kind"] == "prediction" and row["method"] == COMBINED]
    for name in ("rbp", "cross_entropy"):
        for row in [row for row in told if row["law"] == name and row["y"] is not None][:1]:
            yield fact_of(f"{title_of(row)} at S = {spoken(row['S'], 3)}", value_in(row), row["status"])


QUESTION = of_each(answer, select=select, page=OnPage(facts=facts))
