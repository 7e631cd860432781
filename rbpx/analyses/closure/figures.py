"""Closure drawn: errors of what forms say of the largest size against k, and what the closest form leaves by rank."""

from collections.abc import Sequence
from typing import Final

from rbpx.analyses.closure.analysis import Closures
from rbpx.analyses.closure.results import Held, Residual
from rbpx.display.chart.figure import Figure, Origin, Undrawn, drawn
from rbpx.display.chart.marks import Chart, Mark, Scale, bars, line, points, rule
from rbpx.display.column import error, magnitude, text, whole, with_ends
from rbpx.display.numbers import decimals
from rbpx.display.view import View
from rbpx.groups.question import from_shares, spelled
from rbpx.laws.interval import Estimate

_Said = tuple[str, Held, float]
_MOST: Final = 4  # forms that are drawn
_ERRORS: Final = View[_Said](
    "errors",
    (
        text("form", "form", lambda row: row[0]),
        whole("k", "k", lambda row: row[1].k),
        magnitude("measured", "measured", lambda row: row[1].measured),
        magnitude("predicted", "predicted", lambda row: row[2]),
        error("error", "error", lambda row: row[2] / row[1].measured - 1),
    ),
)
_RESIDUALS: Final = View[Residual](
    "residuals",
    (
        whole("ranks from", "first_rank", lambda residual: residual.first_rank),
        whole("to", "last_rank", lambda residual: residual.last_rank),
        magnitude("middle", "rank", lambda residual: residual.rank, "geometric mean of the ranks"),
        whole("tokens", "n_tokens", lambda residual: residual.n_tokens),
        with_ends(
            "ratio", "ratio", lambda residual: Estimate(residual.ratio, residual.ratio_lo, residual.ratio_hi),
            decimals(3), "tokens over those expected",
        ),
    ),
)  # fmt: skip


def figures(results: Sequence[Closures], fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """The error of what each form says of the largest size, and what the closest leaves there."""
    return [figure for closures in results for figure in (_errors(closures), _residuals(closures))]


def _errors(closures: Closures) -> Figure | Undrawn:
    name, title = "errors", "Errors at the largest size"
    if not closures.forms:
        return Undrawn(name, title, f"No form was fitted: {closures.status.remedy}")
    drawn_forms, closest, group = closures.forms[:_MOST], closures.forms[0], closures.group
    of_k = [held for held in closest.held if held.k is not None]
    said = [(form.label, held, held.predicted) for form in drawn_forms for held in form.held if held.k is not None]
    said += [("separate laws", held, held.separate) for held in of_k]
    band = [
        {"k": held.k, "lo": held.predicted_lo / held.measured - 1, "hi": held.predicted_hi / held.measured - 1}
        for held in of_k
    ]
    x, y = Scale("k", "k", log=True), Scale("error", "error", form="%")
    return drawn(
        _ERRORS.table(title, said),
        Chart(x, y, (Mark("band", band, plain=True), line(), points()), "form"),
        f"Error of -ln RBP_k of {group.runs[-1].size} against k for {group.title}, by {closest.label} and others.",
        "Lines: (predicted − measured) / measured of −ln RBP_k at the largest size, by forms whose parameters are laws "
        "in S through the smaller sizes, and by a separate law at each k. Band: 95 % of the first form.",
        from_shares(group, closures.k_grid),
    )


def _residuals(closures: Closures) -> Figure | Undrawn:
    name, title = "residuals", "What the closest form leaves"
    if not closures.forms:
        return Undrawn(name, title, f"No form was fitted: {closures.status.remedy}")
    closest, group, largest = closures.forms[0], closures.group, closures.group.runs[-1]
    edges = [*(each.first_rank for each in closures.residuals), closures.residuals[-1].last_rank + 1]
    sql = spelled("rank_shares", run_ids=largest.run_ids, ties=group.ties.value, edges=edges)
    x, y = Scale("rank", "rank", log=True), Scale("ratio", "observed / expected")
    return drawn(
        _RESIDUALS.table(title, closures.residuals),
        Chart(x, y, (rule(ratio=1.0), line(), bars("ratio_lo", "ratio_hi"), points())),
        f"Tokens of each bin of ranks over those expected by {closest.label}, at {largest.size} of {group.title}.",
        f"Points: tokens of a bin of ranks over what {closest.label} has there when fitted to the largest size itself; "
        "bars: 95 %, documents. At 1 nothing is left.",
        Origin(sql, largest.run_ids),
    )
