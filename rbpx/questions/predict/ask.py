"""Answers what laws predict for other sizes, and how right they were: backtests, predictions, and both in words."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.chart.figure import Chart, Figure, Scale, Undrawn, drawn, points, rule
from rbpx.display.given import said_of_given
from rbpx.display.view import Table, View, error, magnitude, share, text
from rbpx.display.vocabulary import short
from rbpx.laws.forms.candidates import Shape
from rbpx.laws.names import OnText
from rbpx.questions.predict.register import registering, said_by, select, targets_of
from rbpx.questions.predict.rows import (
    INSIDE,
    LAW,
    given_table,
    predicted,
    predictions,
    tested,
    title_of,
)
from rbpx.questions.predict.sizes import Foresight, foresee
from rbpx.questions.predict.surface import over_surface
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.group import Group, grouped
from rbpx.runs.origin import from_fits
from rbpx.runs.points.frontier import frontier, said_of_points
from rbpx.runs.points.one_run import said_of_one_run
from rbpx.runs.points.sizes import law_points
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Status
from rbpx.store.store import Record

_MOST_LEFT_OUT: Final = 3  # of the sizes in a backtest
_NOTE: Final = (
    "Take the combined answer: over forms, weighted by evidence, with the 95 % interval of one new model on the same "
    "text. Beside it stands the law by each method."
)
_NONE: Final = "No law here can be relied on for a prediction; the status of each says why"
_FORMS: Final = "the power law, the law with an offset and the one with a bend"


def answer(connection: duckdb.DuckDBPyConnection, group: Group, request: Request) -> Result:
    """Backtest every requested law and extrapolate it to the requested sizes, by default ten times the largest.

    With `D` given, predict at points of size and tokens, from all trainings of the group; in a loss on another text,
    from that.
    """
    if isinstance(request.axis, OnText):
        from rbpx.questions.predict.losses import from_losses  # which laws in size do without

        return from_losses(connection, group, request)
    if isinstance(group, TrainingGroup):
        return over_surface(connection, group, request)
    (_, _, series), targets = law_points(connection, group, request), targets_of(group, request)
    series, cells = frontier(series) if request.frontier else (series, ())
    found = [foresee(group, each, request, targets) for each in series]
    found.sort(key=lambda of: math.inf if (error := tested(of.of("backtest"))["mean_error"]) is None else error)
    fits, rows = [fit for of in found for fit in of.fits], alike([row for of in found for row in of.rows])
    registered = (said_by(of.rows, of.fit, len(of.fit["run_ids"]), [of.law.fit.S, of.law.fit.y]) for of in found)
    return Result(
        [group],
        rows,
        [*_tables(group, rows)],
        [*said_of_points(cells, group.asked), *_sentences(found)],
        partial(_figures, group, found, [fit["fit_id"] for fit in fits]),
        fits,
        then=registering(request, group, registered),
    )


def _tables(group: Group, rows: Sequence[Record]) -> Iterator[Table]:
    """The backtests of a group, laws in order of their errors, then its predictions."""
    n = len(group.runs)
    fitted = range(n - 1, max(n - _MOST_LEFT_OUT, 3) - 1, -1)
    shown = [row for row in rows if row["method"] not in [*Shape]]  # no form within the combined
    laws = grouped(shown, lambda row: (row["law"], row["k"], row["method"])).values()
    yield _backtests(fitted).table("Backtest", [_backtest(group, of) for of in laws], group.title)
    told = sorted((row for row in shown if row["kind"] in ("prediction", "none")), key=lambda row: row.get("S") or 0.0)
    yield predictions([*Shape], _FORMS).table("Predictions for new models", told, group.title, note=_NOTE)
    yield from given_table([row for row in shown if row["kind"] == "constant"], group.title)


def _backtest(group: Group, rows: Sequence[Record]) -> Record:
    """A row of the table of backtests: the errors of the largest size are those of its first model."""
    tests, largest = [row for row in rows if row["kind"] == "backtest"], group.runs[-1].non_embedding_params
    errors = {f"error_from_{row['n_fitted']}": row["error"] for row in reversed(tests) if row["S"] == largest}
    return rows[0] | tested(tests) | errors


def _backtests(fitted: Sequence[int]) -> View[Record]:
    means = "error of the largest size, predicted from so many of the smallest"
    return View(
        "backtest",
        LAW,
        text("by", "method"),
        share(
            "mean |error|", "mean_error",
            means="over all backtests, which fit the smallest sizes and predict each larger one; laws in this order",
        ),
        [error(f"from {n}", f"error_from_{n}", means=means if n == fitted[0] else "") for n in fitted],
        INSIDE,
    )  # fmt: skip


def _figures(group: Group, answers: Sequence[Foresight], fit_ids: Sequence[str]) -> Iterator[Figure | Undrawn]:
    """The errors of the combined answers at the largest size."""
    title = "Backtest: the largest size, predicted from smaller ones"
    largest, n = group.runs[-1], len(group.runs) - _MOST_LEFT_OUT
    tests = (row for of in answers for row in of.of("backtest") if row["n_fitted"] >= n)
    rows = [row for row in tests if row["S"] == largest.non_embedding_params]
    if not rows:
        yield Undrawn("backtest", title, "It needs four sizes: three to fit, one to test the law on.")
        return
    least = min(rows, key=lambda row: abs(row["error"]))
    errors = {of.title: tested(of.of("backtest"))["mean_error"] for of in answers if of.of("backtest")}
    order = tuple(f"{n} smallest" for n in sorted({row["n_fitted"] for row in rows}, reverse=True))
    x, y = Scale("error", "error of the prediction", zero=True, form="+.0%"), Scale("law", "", names=tuple(errors))
    marks = (rule(error=0.0), points(look={"size": 80}))
    yield drawn(
        ERRORS.table(title, rows),
        Chart(x, y, marks, "fitted", "fitted to the", order, max(160, 26 * len(errors))),
        f"Errors of predictions for {group.title}; mean error of each law: "
        f"{', '.join(f'{name} {mean:.1%}' for name, mean in errors.items())}. Smallest single error: "
        f"{title_of(least)}, {least['error']:+.1%}.",
        f"Error of the combined prediction for {largest.size}, (predicted − measured) / measured; laws in order of "
        "their mean error over all backtests. Colour and shape: how many of the smallest sizes were fitted.",
        from_fits(fit_ids, group),
    )


ERRORS: Final = View[Record](
    "backtest",
    LAW,
    text("fitted to", "fitted", lambda row: f"{row['n_fitted']} smallest"),
    predicted(short, "predicted"),
    magnitude("measured", "measured"),
    error("error", "error"),
)


def _sentences(answers: Sequence[Foresight]) -> Iterator[str]:
    """Which predictions hold, how good the backtests were, and what single runs and given constants do."""
    tests = [row for of in answers for row in of.of("backtest")]
    standing = [of.title for of in answers if any(row["status"] is Status.ok for row in of.of("prediction"))]
    if tests:
        held = tested(tests)
        relied = f"No check objects to the predictions of {', '.join(standing)}" if standing else _NONE
        yield (
            f"{relied}. Of {held['n_intervals'] or 0} intervals of backtests {held['n_inside'] or 0} held; "
            f"{answers[0].title} was predicted best, {tested(answers[0].of('backtest'))['mean_error']:.1%} off on "
            "average."
        )
    yield from said_of_one_run(
        of.law for of in answers if any(Status.one_run in row["reasons"] for row in of.of("prediction"))
    )
    for of in answers:
        yield from said_of_given(of.title, of.law.fit.pinned)


QUESTION = of_each(answer, select=select)
