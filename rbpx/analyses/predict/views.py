"""Backtests and predictions as tables: laws in order of their errors, and what new models would show."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rbpx.analyses.predict.analysis import Foresight, Foresights, analyse, check, keep
from rbpx.analyses.predict.figures import figures
from rbpx.analyses.predict.surface import SurfaceForesights
from rbpx.analyses.predict.words import sentences
from rbpx.analyses.question import Question, each
from rbpx.display.column import Cell, Column, decimal, error, magnitude, share, state, text, with_ends
from rbpx.display.numbers import UNKNOWN, short
from rbpx.display.view import Table, View
from rbpx.display.vocabulary import law_title
from rbpx.laws.averaged import COMBINED
from rbpx.laws.candidates import Shape
from rbpx.laws.interval import Estimate
from rbpx.laws.prediction import outside
from rbpx.status import Status

_MOST_LEFT_OUT: Final = 3  # of the sizes in a backtest


class Foretold(NamedTuple):
    """What a new model would show.

    Attributes:
        law: the quantity.
        by: a method, a form, or `combined`.
        S: its size.
        D: its tokens; None where the law is in size alone.
        y: the value with the interval of one new model.
        beyond: the factor by which it lies outside the models there are.
        weights: of the forms in percent; None unless combined.
        status: the first of the doubts.
    """

    law: str
    by: str
    S: float
    D: float | None
    y: Estimate
    beyond: float
    weights: str | None
    status: Status


def tables(results: Sequence[Foresights | SurfaceForesights]) -> list[Table]:
    """The backtests of a group, then its predictions."""
    return [table for each in results for table in (_of_sizes(each) if isinstance(each, Foresights) else _at(each))]


def _of_sizes(of: Foresights) -> list[Table]:
    shown = [law for law in of.laws if law.method in (COMBINED, law.law.method.value)]  # no form within the combined
    n = len(of.group.runs)
    rows = [_foretold(law, at, S) for at, S in enumerate(of.targets) for law in shown]
    note = (
        "Combined, the answer to take: over forms, weighted by evidence, with the 95 % interval of one new model on "
        "the same text. Beside it the law by each method."
    )
    weighted = "of the power law, the law with an offset and the one with a bend, in percent"
    return [
        _backtests(n).table("Backtest", shown, of.group.title),
        _predictions(weighted).table("Predictions for new models", rows, of.group.title, note=note),
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
            rows += [
                Foretold(name, form, *at, law.signed(y), point.beyond, said if form == COMBINED else None, point.status)
                for form, y in by.items()
            ]
    note = (
        "Combined, the answer to take: over the forms of a surface, weighted by exp(-BIC / 2), with the 95 % interval "
        "of one new run; where size and tokens vary together, a law in one axis near the line of the runs."
    )
    view = _predictions(f"of {', '.join(forms)}, in percent", has_tokens=True)
    return [view.table("Predictions for new runs", rows, of.group.title, note=note)]


def _foretold(law: Foresight, at: int, S: float) -> Foretold:
    names = law_title(law.law.law, law.law.k), law.method
    if not law.predictions:
        far = outside(S, [run.non_embedding_params for run in law.law.runs])
        return Foretold(*names, S, None, Estimate(None, None, None), far, None, law.law.fit.status)
    foreseen, weights = law.predictions[at], law.weights
    said = None if weights is None else "/".join(f"{100 * weights.get(form, 0.0):.0f}" for form in Shape)
    prediction = foreseen.prediction
    return Foretold(*names, S, None, prediction.estimate, prediction.beyond, said, foreseen.status)


def _predictions(weights: str, has_tokens: bool = False) -> View[Foretold]:
    D: Column[Foretold] = magnitude("D", "D", lambda row: row.D)
    return View(
        "predictions",
        (
            text("law", "law", lambda row: row.law),
            text("by", "method", lambda row: row.by),
            magnitude("S", "S", lambda row: row.S),
            *([D] if has_tokens else []),
            with_ends("predicted", "y", lambda row: row.y, short),
            magnitude("outside", "beyond", lambda row: row.beyond, "how many times beyond the models there are", 2),
            text("weights", "weights", lambda row: row.weights, weights, spare=1),
            state(lambda row: row.status),
        ),
    )


def _inside(law: Foresight) -> Cell:
    held = [test.is_inside for test in law.backtests if test.is_inside is not None]
    return Cell((f"{sum(held)}/{len(held)}",), (sum(held), len(held))) if held else Cell((UNKNOWN,), (None, None))


def _error_from(n_fitted: int, means: str) -> Column[Foresight]:
    """The error of the largest size, predicted from so many of the smallest."""

    def last(law: Foresight) -> float | None:
        largest = law.law.runs[-1].non_embedding_params
        return next((test.error for test in law.backtests if (test.S, test.n_fitted) == (largest, n_fitted)), None)

    return error(f"from {n_fitted}", f"error_from_{n_fitted}", last, means)


def _backtests(n_sizes: int) -> View[Foresight]:
    fitted = [n_sizes - left_out for left_out in range(1, min(_MOST_LEFT_OUT, max(n_sizes - 3, 0)) + 1)]
    means = ["error of the largest size, predicted from so many of the smallest", *[""] * len(fitted)]
    return View(
        "backtest",
        (
            text("law", "law", lambda law: law_title(law.law.law, law.law.k)),
            text("by", "method", lambda law: law.method),
            share(
                "mean |error|", "mean_error", lambda law: law.mean_error,
                means="of all backtests, which fit the smallest sizes and predict each larger one; laws in this order",
            ),
            *(_error_from(n, meant) for n, meant in zip(fitted, means, strict=False)),
            Column("inside", ("n_inside", "n_intervals"), _inside, "95 % intervals that held the measured value"),
            with_ends("α", "alpha", lambda law: None if law.weights else law.law.fit.exponent, spare=1, ends_spare=2),
            decimal("R²", "r2", lambda law: None if law.weights else law.law.fit.r2, 3, spare=3),
        ),
    )  # fmt: skip


QUESTION = Question(each(analyse), keep, tables, sentences, figures, check=check)
