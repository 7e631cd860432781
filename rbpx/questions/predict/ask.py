"""Answers what laws predict for other sizes, and how right they were: backtests, predictions, and both in words."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import duckdb

from rbpx.config.request import Request
from rbpx.display.chart.figure import Chart, Figure, Scale, Undrawn, drawn, points, rule
from rbpx.display.given import said_of_given
from rbpx.display.view import Table, View, decimal, error, magnitude, share, text, with_ends
from rbpx.display.vocabulary import short
from rbpx.laws.forms.candidates import Shape
from rbpx.laws.intervals.estimate import Estimate, by_name
from rbpx.laws.names import OnText
from rbpx.laws.power.predictor import outside
from rbpx.laws.prediction.prediction import COMBINED
from rbpx.laws.prediction.verdict import FAR
from rbpx.questions.predict.register import registering, said_by, select, targets_of
from rbpx.questions.predict.rows import (
    INSIDE,
    LAW,
    WIDER,
    given_table,
    predicted,
    prediction,
    predictions,
    said_of_moves,
    title_of,
    values,
)
from rbpx.questions.predict.sizes import Foresight, fits_of, foresee
from rbpx.questions.predict.surface import over_surface
from rbpx.questions.question import of_each
from rbpx.questions.result import Result
from rbpx.runs.fits import alike
from rbpx.runs.group import Group
from rbpx.runs.origin import from_fits
from rbpx.runs.points.frontier import frontier, said_of_points
from rbpx.runs.points.one_run import said_of_one_run
from rbpx.runs.points.sizes import known_points
from rbpx.runs.select.trainings import TrainingGroup
from rbpx.status import Status, in_order
from rbpx.store.store import Record

_MOST_LEFT_OUT: Final = 3  # of the sizes in a backtest
_NOTE: Final = (
    "Take the combined answer: over forms, weighted by evidence, with the 95 % interval of one new model on the same "
    "text. Beside it stands the law by each method."
)
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
    series, targets = known_points(connection, group, request, set(request.laws.names)), targets_of(group, request)
    series, cells = frontier(series) if request.frontier else (series, ())
    found = [foresee(group, each, request, targets) for each in series]
    found.sort(key=lambda of_law: math.inf if (error := of_law[0].tested["mean_error"]) is None else error)
    laws, answers = [each for of_law in found for each in of_law], [of_law[0] for of_law in found]
    fits = fits_of(laws)
    registered = (said_by(of.rows, of.fit, len(of.fit["run_ids"]), [of.law.fit.S, of.law.fit.y]) for of in laws)
    return Result(
        [group],
        alike([row for of in laws for row in of.rows]),
        [*_tables(group, laws, targets)],
        [*said_of_points(cells, group.asked), *_sentences(answers)],
        partial(_figures, group, answers, [fit["fit_id"] for fit in fits]),
        fits,
        then=registering(request, group, registered),
    )


def _tables(group: Group, laws: Sequence[Foresight], targets: Sequence[float]) -> Iterator[Table]:
    """The backtests of a group, laws in order of their errors, then its predictions."""
    shown = [of for of in laws if not isinstance(of.method, Shape)]  # no form within the combined
    n = len(group.runs)
    fitted = range(n - 1, max(n - _MOST_LEFT_OUT, 3) - 1, -1)
    yield _backtests(fitted).table("Backtest", [_backtest(of) for of in shown], group.title)
    rows = [(of.of("prediction") or _unknown(of, targets))[at] for at in range(len(targets)) for of in shown]
    yield predictions([*Shape], _FORMS).table("Predictions for new models", rows, group.title, note=_NOTE)
    yield from given_table([row for of in laws for row in of.of("constant")], group.title)


def _unknown(of: Foresight, targets: Sequence[float]) -> list[Record]:
    sizes = [run.non_embedding_params for run in of.law.runs]
    told = ({"S": S, "beyond": outside(S, sizes), **values(Estimate())} for S in targets)
    return [of.rows[0] | prediction(each, in_order([of.law.fit.status])) for each in told]


def _backtest(of: Foresight) -> Record:
    """A row of the table of backtests: the errors of the largest size are those of its first model."""
    tests, largest = of.of("backtest"), of.law.runs[-1].non_embedding_params
    errors = {f"error_from_{row['n_fitted']}": row["error"] for row in reversed(tests) if row["S"] == largest}
    numbers = {} if of.method == COMBINED else by_name(alpha=of.law.fit.alpha) | {"r2": of.law.fit.r2.value}
    return of.rows[0] | of.tested | errors | numbers


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
        with_ends("α", "alpha", spare=1, ends_spare=2),
        decimal("R²", "r2", digits=3, spare=3),
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
    errors = {of.title: of.tested["mean_error"] for of in answers if of.of("backtest")}
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
    """How good the backtests are, and to which predictions there are objections."""
    told = {of.title: of.of("prediction") for of in answers}
    yield from said_of_moves(told.values())
    off = {title for title, rows in told.items() if any(Status.one_run in row["reasons"] for row in rows)}
    yield from said_of_one_run(of.law for of in answers if of.title in off)
    backtests = {of.title: of.tested for of in answers if of.of("backtest")}
    if backtests:
        best = next(iter(backtests))
        inside, n = (sum(each[name] or 0 for each in backtests.values()) for name in ("n_inside", "n_intervals"))
        yield (
            f"Fitted to the smallest sizes and compared with the larger ones, {best} was predicted best, "
            f"{backtests[best]['mean_error']:.1%} off on average; the 95 % intervals over forms contained {inside} of "
            f"{n} measured values."
        )
    wider = {title: max((row["widened"] or 1.0 for row in rows), default=1.0) for title, rows in told.items()}
    named = ", ".join(f"{title} ({by:.2g} times)" for title, by in wider.items() if by > WIDER)
    if named:
        yield f"Fewer than four fifths of these intervals hold, so those of predictions are wider in ln y: {named}."
    standing = [title for title, rows in told.items() if Status.ok in (row["status"] for row in rows)]
    if backtests and not standing:
        yield "No law here can be relied on for a prediction; the status of each says why."
    elif 0 < len(standing) < len(answers):
        yield f"No check objects to the predictions of {', '.join(standing)}; there are objections to the others."
    for of in answers:
        yield from said_of_given(of.title, of.law.fit.pinned)
    far = [row for of in answers[:1] for row in told[of.title] if row["beyond"] > FAR]
    if far:
        sizes = ", ".join(f"{row['S']:.3g} ({row['beyond']:.3g} times)" for row in far)
        yield f"S = {sizes} lies more than {FAR:.0f} times beyond the sizes: an extrapolation that no backtest covers."


QUESTION = of_each(answer, select=select)
