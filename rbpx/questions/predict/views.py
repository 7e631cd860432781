"""Shows backtests, laws in order of their errors, and predictions of what new models would show."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from rbpx.display.chart.figure import Chart, Figure, Scale, Undrawn, drawn, points, rule
from rbpx.display.given import said_of_given
from rbpx.display.view import (
    Cell,
    Column,
    Table,
    View,
    decimal,
    error,
    magnitude,
    share,
    state,
    text,
    with_ends,
    written,
)
from rbpx.display.vocabulary import UNKNOWN, law_title, percent, short, significant
from rbpx.laws.forms.candidates import Shape
from rbpx.laws.intervals.estimate import Estimate
from rbpx.laws.predict.prediction import COMBINED, outside
from rbpx.laws.predict.verdict import FAR, Backtest
from rbpx.laws.surface.averaged import summary
from rbpx.questions.predict.analysis import Answered, Foresight, Foresights, analyse, keep
from rbpx.questions.predict.register import select
from rbpx.questions.predict.surface import Beside, SurfaceForesight, SurfaceForesights
from rbpx.questions.question import each, of_parts, one_by_one
from rbpx.runs.origin import from_fits
from rbpx.runs.points.frontier import said_of_points
from rbpx.runs.points.outliers import said_of_one_run, said_of_outliers
from rbpx.status import Status, first_of
from rbpx.store.store import Record

_MOST_LEFT_OUT: Final = 3  # of the sizes in a backtest
_WIDER: Final = 1.05  # times: less is not worth a word


class Foretold(NamedTuple):
    """What a new model would show.

    Attributes:
        law: the quantity.
        by: a method, a form, or `combined`.
        S: its size.
        D: its tokens; None where the law is in size alone.
        y: the value with the interval of one new model.
        expected_error: median |error| to expect, relative; None unless combined.
        beyond: the factor by which it lies outside the measured models.
        weights: the weights of the forms in percent; None unless combined.
        status: the first of the doubts.
    """

    law: str
    by: str
    S: float
    D: float | None
    y: Estimate
    expected_error: float | None
    beyond: float
    weights: str | None
    status: Status


@one_by_one
def tables(of: Answered) -> list[Table]:
    """The backtests of a group, then its predictions."""
    if not isinstance(of, Foresights | SurfaceForesights):
        from rbpx.questions.predict import losses_views

        return losses_views.tables(of)
    return _of_sizes(of) if isinstance(of, Foresights) else _at(of)


def _of_sizes(of: Foresights) -> list[Table]:
    shown = [law for law in of.laws if not isinstance(law.method, Shape)]  # no form within the combined
    n = len(of.group.runs)
    rows = [_foretold(law, at, S) for at, S in enumerate(of.targets) for law in shown]
    note = (
        "Take the combined answer: over forms, weighted by evidence, with the 95 % interval of one new model on the "
        "same text. Beside it stands the law by each method."
    )
    weighted = "of the power law, the law with an offset and the one with a bend, in percent"
    beside = [(law.title, each) for law in of.laws for each in law.beside]
    return [
        _backtests(n).table("Backtest", shown, of.group.title),
        _predictions(weighted).table("Predictions for new models", rows, of.group.title, note=note),
        *_beside(beside, of.group.title),
    ]


def _at(of: SurfaceForesights) -> list[Table]:
    forms = list(dict.fromkeys(form.fit.form for law in of.laws for form in law.forms))
    rows = []
    for law in of.laws:
        for point in law.points:
            weights = point.over_forms.weights
            said = "/".join(f"{100 * weights[name]:.0f}" for name in forms if name in weights) or None
            by = {COMBINED: point.over_forms.y, **point.over_forms.within}
            name, at = law_title(law.trained.law, law.trained.k), (point.S, point.D)
            for form, y in by.items():
                error, of_forms = (point.over_forms.expected_error, said) if form == COMBINED else (None, None)
                status = first_of(point.reasons_of(form))
                rows.append(Foretold(name, form, *at, law.signed(y), error, point.beyond, of_forms, status))
    note = (
        "Combined: over the forms of a surface and their misfit, with the 95 % interval of one new run, widened where "
        "larger budgets were foretold worse; where size and tokens vary together, a law in one axis near the line of "
        "the runs."
    )
    view = _predictions(f"of {', '.join(forms)}, in percent", has_tokens=True)
    beside = [(law_title(law.trained.law, law.trained.k), each) for law in of.laws for each in law.beside]
    return [view.table("Predictions for new runs", rows, of.group.title, note=note), *_beside(beside, of.group.title)]


def _beside(rows: Sequence[tuple[str, Beside]], about: str) -> list[Table]:
    return [BESIDE.table("What the given constants do", rows, about)] if rows else []


def _foretold(law: Foresight, at: int, S: float) -> Foretold:
    names = law.title, law.method
    if not law.predictions:
        far = outside(S, [run.non_embedding_params for run in law.law.runs])
        return Foretold(*names, S, None, Estimate(None, None, None), None, far, None, law.law.fit.status)
    foreseen, weights = law.predictions[at], law.weights
    said = None if weights is None else "/".join(f"{100 * weights.get(form, 0.0):.0f}" for form in Shape)
    prediction = foreseen.prediction
    return Foretold(
        *names, S, None, prediction.estimate, foreseen.expected_error, prediction.beyond, said, foreseen.status
    )


def _predictions(weights: str, has_tokens: bool = False) -> View[Foretold]:
    D: Column[Foretold] = magnitude("D", "D", lambda row: row.D)
    return View(
        "predictions",
        text("law", "law", lambda row: row.law),
        text("by", "method", lambda row: row.by),
        magnitude("S", "S", lambda row: row.S),
        [D] if has_tokens else [],
        with_ends("predicted", "y", lambda row: row.y, short),
        share(
            "|error|", "expected_error", lambda row: row.expected_error,
            means="to expect: half of such predictions are nearer to the truth", spare=1,
        ),
        magnitude("outside", "beyond", lambda row: row.beyond, "how many times beyond the measured models", 3),
        text("weights", "weights", lambda row: row.weights, weights, spare=2),
        state(lambda row: row.status),
    )  # fmt: skip


BESIDE: Final = View[tuple[str, Beside]](
    "given",
    text("law", "law", lambda row: row[0], spare=1),
    text("constant", "constant", lambda row: row[1].name),
    text(
        "is", "given", lambda row: row[1].what,
        "given as typed, free, or at an end of the interval that it has free; none with an E above the smallest y",
    ),
    with_ends("value", "at", lambda row: row[1].value, lambda value: significant(value, 4), ends_spare=2),
    written(
        "p", "p", lambda row: row[1].p, lambda value: significant(value, 2),
        "of the given value; below 0.05 the points speak against it",
    ),
    magnitude("S", "S", lambda row: row[1].S),
    magnitude("D", "D", lambda row: row[1].D, spare=3),
    with_ends("predicted", "y", lambda row: row[1].y, short),
)  # fmt: skip


def _inside(law: Foresight) -> Cell:
    held = law.held
    return Cell((f"{sum(held)}/{len(held)}",), (sum(held), len(held))) if held else Cell((UNKNOWN,), (None, None))


def _error_from(n_fitted: int, means: str) -> Column[Foresight]:
    """The column of the error of the largest size, predicted from so many of the smallest."""

    def last(law: Foresight) -> float | None:
        largest = law.law.runs[-1].non_embedding_params
        return next((test.error for test in law.backtests if (test.S, test.n_fitted) == (largest, n_fitted)), None)

    return error(f"from {n_fitted}", f"error_from_{n_fitted}", last, means)


def _backtests(n_sizes: int) -> View[Foresight]:
    fitted = [n_sizes - left_out for left_out in range(1, min(_MOST_LEFT_OUT, max(n_sizes - 3, 0)) + 1)]
    means = ["error of the largest size, predicted from so many of the smallest", *[""] * len(fitted)]
    return View(
        "backtest",
        text("law", "law", lambda law: law.title),
        text("by", "method", lambda law: law.method),
        share(
            "mean |error|", "mean_error", lambda law: law.mean_error,
            means="over all backtests, which fit the smallest sizes and predict each larger one; laws in this order",
        ),
        *(_error_from(n, meant) for n, meant in zip(fitted, means, strict=False)),
        Column("inside", ("n_inside", "n_intervals"), _inside, "95 % intervals that contain the measured value"),
        with_ends("α", "alpha", lambda law: None if law.weights else law.law.fit.exponent, spare=1, ends_spare=2),
        decimal("R²", "r2", lambda law: None if law.weights else law.law.fit.r2, 3, spare=3),
    )  # fmt: skip


ERRORS: Final = View[tuple[Foresight, Backtest]](
    "backtest",
    text("law", "law", lambda row: row[0].title),
    text("fitted to", "fitted", lambda row: f"{row[1].n_fitted} smallest"),
    with_ends("predicted", "predicted", lambda row: row[1].predicted.estimate, short),
    magnitude("measured", "measured", lambda row: row[1].measured),
    error("error", "error", lambda row: row[1].error),
)


@one_by_one
def figures(of: Answered, fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """Draw the errors at the largest size, or what losses foretell; surfaces have no figure."""
    if not isinstance(of, Foresights | SurfaceForesights):
        from rbpx.questions.predict import losses_views

        return losses_views.figures(of)
    return [_errors(of, fit_ids)] if isinstance(of, Foresights) else []


def _errors(of: Foresights, fit_ids: Sequence[str]) -> Figure | Undrawn:
    title = "Backtest: the largest size, predicted from smaller ones"
    largest, n = of.group.runs[-1], len(of.group.runs)
    rows = [
        (law, test)
        for law in of.answers
        for test in law.backtests
        if test.S == largest.non_embedding_params and test.n_fitted >= n - 3
    ]
    if not rows:
        return Undrawn("backtest", title, "It needs four sizes: three to fit, one to test the law on.")
    best, least = min(rows, key=lambda row: abs(row[1].error))
    tested = {law.title: law.mean_error for law in of.answers if law.mean_error is not None}
    order = tuple(f"{n} smallest" for n in sorted({test.n_fitted for _, test in rows}, reverse=True))
    x = Scale("error", "error of the prediction", zero=True, form="+.0%")
    marks = (rule(error=0.0), points(look={"size": 80}))
    height = max(160, 26 * len(tested))
    return drawn(
        ERRORS.table(title, rows),
        Chart(x, Scale("law", "", names=tuple(tested)), marks, "fitted", "fitted to the", order, height),
        f"Errors of predictions for {of.group.title}; mean error of each law: "
        f"{', '.join(f'{name} {mean:.1%}' for name, mean in tested.items())}. Smallest single error: {best.title}, "
        f"{least.error:+.1%}.",
        f"Error of the combined prediction for {largest.size}, (predicted − measured) / measured; laws in order of "
        "their mean error over all backtests. Colour and shape: how many of the smallest sizes were fitted.",
        from_fits(fit_ids, of.group),
    )


@one_by_one
def sentences(of: Answered) -> Iterator[str]:
    """How good the backtests are, and to which predictions there are objections."""
    if not isinstance(of, Foresights | SurfaceForesights):
        from rbpx.questions.predict import losses_views

        return losses_views.sentences(of)
    return _said_of_sizes(of) if isinstance(of, Foresights) else _held_out(of)


def _said_of_sizes(of: Foresights) -> Iterator[str]:
    yield from said_of_points(of.cells, of.group.asked)
    yield from _said_of_moves(_farthest(of))
    yield from said_of_one_run(
        law.law for law in of.answers if any(Status.one_run in each.reasons for each in law.predictions)
    )
    tested = [law for law in of.answers if law.mean_error is not None]
    if tested:
        inside = [is_inside for law in tested for is_inside in law.held]
        yield (
            f"Fitted to the smallest sizes and compared with the larger ones, {tested[0].title} was predicted best, "
            f"{tested[0].mean_error:.1%} off on average; the 95 % intervals over forms contained {sum(inside)} of "
            f"{len(inside)} measured values."
        )
    wider = {law.title: max((each.widened or 1.0 for each in law.predictions), default=1.0) for law in of.answers}
    named = ", ".join(f"{title} ({by:.2g} times)" for title, by in wider.items() if by > _WIDER)
    if named:
        yield f"Fewer than four fifths of these intervals hold, so those of predictions are wider in ln y: {named}."
    standing = [law.title for law in of.answers if Status.ok in (each.status for each in law.predictions)]
    if tested and not standing:
        yield "No law here can be relied on for a prediction; the status of each says why."
    elif 0 < len(standing) < len(of.answers):
        yield f"No check objects to the predictions of {', '.join(standing)}; there are objections to the others."
    for law in of.answers:
        yield from said_of_given(law.title, law.law.fit.pinned)
    far = [each.prediction for law in of.answers[:1] for each in law.predictions if each.prediction.beyond > FAR]
    if far:
        sizes = ", ".join(f"{each.S:.3g} ({each.beyond:.3g} times)" for each in far)
        yield f"S = {sizes} lies more than {FAR:.0f} times beyond the sizes: an extrapolation that no backtest covers."


def _farthest(of: Foresights) -> Iterator[tuple[str, float, Record]]:
    """Each answer where it is farthest out: its law, the size, and how far it moves with one run left out."""
    for law in (law for law in of.answers if law.predictions):
        farthest = max(law.predictions, key=lambda told: told.prediction.beyond)
        yield law.title, farthest.prediction.S, law.moves(farthest)


def _farthest_points(of: SurfaceForesights) -> Iterator[tuple[str, float, Record]]:
    """The same over a surface."""
    for law in of.laws:
        farthest = max(law.points, key=lambda point: point.beyond)
        yield law_title(law.trained.law, law.trained.k), farthest.S, law.moves(farthest)


def _said_of_moves(farthest: Iterable[tuple[str, float, Record]]) -> Iterator[str]:
    """How far answers move with one run left out."""
    moving = [(law, S, move) for law, S, move in farthest if move["moved"]]
    if moving:
        said = ", ".join(f"{law} {percent(move['moved'])} (without {move['moved_by']})" for law, _, move in moving)
        at = max(S for _, S, _ in moving)
        yield f"With one run left out the predictions at {at:.3g} move by at most: {said}."


def _held_out(of: SurfaceForesights) -> Iterator[str]:
    yield from said_of_points([cell for law in of.laws for cell in law.trained.cells], of.group.runs)
    yield from said_of_outliers([law.trained for law in of.laws])
    yield from _said_of_moves(_farthest_points(of))
    for law in of.laws:
        foretold = summary(law.budgets)
        if foretold is not None:
            error, inside, n = foretold
            yield (
                f"{law_title(law.trained.law, law.trained.k)}: the runs of larger budgets, each foretold from smaller "
                f"ones over forms, are {error:.1%} off on average; {inside} of {n} lie in their 95 % "
                f"intervals{_widened(law)}."
            )
        yield from said_of_given(law_title(law.trained.law, law.trained.k), law.best.fit.pinned)


def _widened(law: SurfaceForesight) -> str:
    most = max((point.over_forms.widened for point in law.points), default=1.0)
    return f", so intervals here are {most:.2g} times as wide in ln y" if most > _WIDER else ""


QUESTION = of_parts(each(analyse), keep, tables, sentences, figures, select=select)
