"""Backtests of one group in; the error of each law at the largest size, predicted from fewer and fewer sizes, out."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from rbpx.analyses.predict.analysis import Foresight, Foresights
from rbpx.display.chart.drawing import colour, data, linear, shape, spec_of, tips, zero_line
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet, error, magnitude, named, sheet_of, span, whole
from rbpx.display.names import law_title
from rbpx.groups.question import spelled
from rbpx.laws.over_forms import COMBINED

__all__ = ["figures", "name_of"]


def figures(result: Foresights, fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """The errors at the largest size."""
    title = "Backtest: the largest size, predicted from smaller ones"
    rows = _rows(result)
    if not rows:
        return [Undrawn("backtest", title, "It needs four sizes: three to fit, one to test the law on.")]
    best = min(rows, key=lambda row: abs(row["error"]))
    tested = [law for law in result.answers if law.mean_error is not None]
    errors = [f"{name_of(law)} {law.mean_error:.1%}" for law in tested if law.mean_error is not None]
    return [
        Figure(
            "backtest",
            title,
            f"Errors of predictions for {result.group.title}; mean error of each law: {', '.join(errors)}. Smallest "
            f"single error: {best['law']}, {best['error']:+.1%}.",
            f"Error of the prediction for {result.group.runs[-1].size}, (predicted − measured) / measured, "
            "predicted over forms; laws in order of their mean error over all backtests. Colour and shape: how many of "
            "the smallest sizes were fitted.",
            _chart(rows, [name_of(law) for law in tested]),
            _values(title, rows),
            spelled("laws", fit_ids=fit_ids),
            tuple(result.group.run_ids),
        )
    ]


def name_of(foresight: Foresight) -> str:
    """The law of a prediction, with how it was predicted unless that is over forms."""
    name = law_title(foresight.law.law, foresight.law.k)
    return name if foresight.method == COMBINED else f"{name}, {foresight.method}"


def _rows(result: Foresights) -> list[dict[str, Any]]:
    largest, n = result.group.runs[-1].non_embedding_params, len(result.group.runs)
    return [
        {
            "law": name_of(law),
            "fitted": f"{test.n_fitted} smallest",
            "n_fitted": test.n_fitted,
            "error": test.error,
            "predicted": test.predicted.y,
            "lo": test.predicted.lo,
            "hi": test.predicted.hi,
            "measured": test.measured,
        }
        for law in result.answers
        for test in law.backtests
        if test.S == largest and test.n_fitted >= n - 3
    ]


def _chart(rows: list[dict[str, Any]], laws: list[str]) -> dict[str, Any]:
    order = [f"{n} smallest" for n in sorted({row["n_fitted"] for row in rows}, reverse=True)]
    tooltip = tips(
        law="law",
        fitted="fitted to",
        error="error|+.2%",
        predicted="predicted|.4~g",
        lo="95 % from|.4~g",
        hi="to|.4~g",
        measured="measured|.4~g",
    )
    points = alt.Chart(data(rows)).mark_point(size=80).encode(
        x=linear(alt.X, "error", "error of the prediction", zero=True, form="+.0%"),
        y=alt.Y("law:N", sort=laws, title=None, axis=alt.Axis(grid=True, labelLimit=160)),
        color=colour("fitted", "fitted to the", order),
        shape=shape("fitted", "fitted to the", order),
        tooltip=tooltip,
    )  # fmt: skip
    return spec_of(alt.layer(zero_line("error", "error of the prediction"), points), height=max(160, 26 * len(laws)))


def _values(title: str, rows: list[dict[str, Any]]) -> Sheet:
    cells = [
        [
            named(row["law"]),
            whole(row["n_fitted"]),
            magnitude(row["predicted"]),
            span(row["lo"], row["hi"]),
            magnitude(row["measured"]),
            error(row["error"]),
        ]
        for row in rows
    ]
    columns = [("law", "law"), ("sizes fitted", "n_fitted"), ("predicted", "predicted"), ("95 %", "lo hi")]
    return sheet_of("backtest", f"{title}: values", [*columns, ("measured", "measured"), ("error", "error")], cells)
