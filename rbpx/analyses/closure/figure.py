"""Closure: the judged forms of one group in; their errors against k, and the residuals of the closest by rank, out."""

from typing import Any

import altair as alt

from rbpx.analyses.closure.analysis import Closures
from rbpx.analyses.closure.results import FormResult
from rbpx.display.chart.colours import MOST_SERIES
from rbpx.display.chart.drawing import colour, dash, data, linear, logarithmic, shape, spec_of, tips
from rbpx.display.chart.figure import Figure, Undrawn
from rbpx.display.chart.sheet import Sheet, decimal, magnitude, named, sheet_of, span, whole
from rbpx.groups.question import spelled

__all__ = ["figures"]

_SEPARATE = "separate laws"
_DRAWN = 4  # forms


def figures(result: Closures) -> list[Figure | Undrawn]:
    """The error of what each form says of the largest size, and what the closest leaves there."""
    names = [("errors", "Errors at the largest size"), ("residuals", "What the closest form leaves")]
    if not result.forms:
        return [Undrawn(name, title, "No form was fitted.") for name, title in names]
    closest, group = result.forms[0], result.group
    run_ids, ties = tuple(group.run_ids), group.ties.value
    largest = group.runs[-1].size
    k = list(result.k_grid)
    shares = spelled("shares", run_ids=run_ids, family=group.first.family, dataset=group.first.dataset, k=k, ties=ties)
    edges = [*(r.first_rank for r in result.residuals), *(r.last_rank + 1 for r in result.residuals[-1:])]
    binned = spelled("rank_shares", run_ids=group.runs[-1].run_ids, ties=ties, edges=edges)
    return [
        Figure(
            "errors",
            names[0][1],
            f"Error of -ln RBP_k of {largest} against k for {group.title}, by {closest.label} and others.",
            "Lines: (predicted − measured) / measured of −ln RBP_k at the largest size, by forms whose parameters are "
            "laws in S through the smaller sizes, and by a separate law at each k. Band: 95 % of the first form.",
            _errors(result),
            _error_values(result),
            shares,
            run_ids,
        ),
        Figure(
            "residuals",
            names[1][1],
            f"Tokens of each bin of ranks over those expected by {closest.label}, at {largest} of {group.title}.",
            f"Points: tokens of a bin of ranks over what {closest.label} has there when fitted to the largest size "
            "itself; band: 95 %, documents. At 1 nothing is left.",
            _residuals(result),
            _residual_values(result),
            binned,
            run_ids,
        ),
    ]


def _drawn(result: Closures) -> list[FormResult]:
    return list(result.forms[: min(_DRAWN, MOST_SERIES - 1)])


def _errors(result: Closures) -> dict[str, Any]:
    closest = result.forms[0]
    rows = [
        {"form": form.label, "k": held.k, "error": held.error}
        for form in _drawn(result)
        for held in form.held
        if held.k is not None
    ]
    rows += [
        {"form": _SEPARATE, "k": held.k, "error": held.separate / held.measured - 1}
        for held in closest.held
        if held.k is not None
    ]
    band = [
        {"k": held.k, "lo": held.predicted_lo / held.measured - 1, "hi": held.predicted_hi / held.measured - 1}
        for held in closest.held
        if held.k is not None
    ]
    order = [*(form.label for form in _drawn(result)), _SEPARATE]
    base = alt.Chart(data(rows)).encode(
        x=logarithmic(alt.X, "k", "k"), y=linear(alt.Y, "error", "error", form="%"), color=colour("form", "", order)
    )
    return spec_of(
        alt.layer(
            alt.Chart(data(band))
            .mark_area(opacity=0.15)
            .encode(x=logarithmic(alt.X, "k", "k"), y=alt.Y("lo:Q", title="error"), y2="hi:Q"),
            base.mark_line().encode(strokeDash=dash("form", order)),
            base.mark_point().encode(
                shape=shape("form", "", order), tooltip=tips(form="form", k="k|,", error="error|.1%")
            ),
        )
    )


def _error_values(result: Closures) -> Sheet:
    rows = [
        [named(form.label), whole(held.k), magnitude(held.measured), magnitude(held.predicted), decimal(held.error, 3)]
        for form in _drawn(result)
        for held in form.held
        if held.k is not None
    ]
    columns = [("form", "form"), ("k", "k"), ("measured", "measured"), ("predicted", "predicted"), ("error", "error")]
    return sheet_of("errors", "Errors at the largest size: values", columns, rows)


def _residuals(result: Closures) -> dict[str, Any]:
    rows = [
        {
            "rank": (r.first_rank * r.last_rank) ** 0.5,
            "ratio": r.ratio,
            "lo": r.ratio_lo,
            "hi": r.ratio_hi,
            "n": r.n_tokens,
        }
        for r in result.residuals
        if r.ratio is not None
    ]
    x = logarithmic(alt.X, "rank", "rank")
    base = alt.Chart(data(rows)).encode(x=x)
    tooltip = tips(rank="rank|,.0f", ratio="ratio|.3f", n="tokens|,")
    even = alt.Chart(data([{"one": 1.0}])).mark_rule(strokeDash=[2, 3]).encode(y=alt.Y("one:Q", title="ratio"))
    y = linear(alt.Y, "ratio", "observed / expected")
    return spec_of(
        alt.layer(
            base.mark_area(opacity=0.2).encode(y=alt.Y("lo:Q", title="observed / expected"), y2="hi:Q"),
            base.mark_line().encode(y=y),
            base.mark_point().encode(y=y, tooltip=tooltip),
            even,
        )
    )


def _residual_values(result: Closures) -> Sheet:
    rows = [
        [
            whole(r.first_rank),
            whole(r.last_rank),
            whole(r.n_tokens),
            decimal(r.ratio, 3),
            span(r.ratio_lo, r.ratio_hi, 3),
        ]
        for r in result.residuals
    ]
    columns = [("ranks from", "first_rank"), ("to", "last_rank"), ("tokens", "n_tokens"), ("ratio", "ratio")]
    return sheet_of(
        "residuals", "What the closest form leaves: values", [*columns, ("95 %", "ratio_lo ratio_hi")], rows
    )
