"""Backtests drawn: the error of each law at the largest size, predicted from fewer and fewer sizes."""

from collections.abc import Sequence
from typing import Final

from rbpx.analyses.predict.analysis import Foresight, Foresights
from rbpx.analyses.predict.surface import SurfaceForesights
from rbpx.analyses.question import one_by_one
from rbpx.display.chart.figure import Figure, Undrawn, drawn
from rbpx.display.chart.marks import Chart, Scale, points, rule
from rbpx.display.column import error, magnitude, text, with_ends
from rbpx.display.numbers import short
from rbpx.display.view import View
from rbpx.groups.question import from_fits
from rbpx.laws.backtest import Backtest

ERRORS: Final = View[tuple[Foresight, Backtest]](
    "backtest",
    text("law", "law", lambda row: row[0].title),
    text("fitted to", "fitted", lambda row: f"{row[1].n_fitted} smallest"),
    with_ends("predicted", "predicted", lambda row: row[1].predicted.estimate, short),
    magnitude("measured", "measured", lambda row: row[1].measured),
    error("error", "error", lambda row: row[1].error),
)


@one_by_one
def figures(of: Foresights | SurfaceForesights, fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """The errors at the largest size; of surfaces nothing is drawn."""
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
        f"Error of the prediction for {largest.size}, (predicted − measured) / measured, predicted over forms; laws in "
        "order of their mean error over all backtests. Colour and shape: how many of the smallest sizes were fitted.",
        from_fits(fit_ids, of.group),
    )
