"""Figures of closure: errors at the largest size against k, and residuals of the chosen form by rank."""

from collections.abc import Sequence
from typing import Final

from rbpx.analyses.closure.analysis import Closures
from rbpx.analyses.closure.held_out import Held, Residual
from rbpx.analyses.question import one_by_one
from rbpx.display.chart.figure import Chart, Figure, Mark, Origin, Scale, Undrawn, bars, drawn, line, points, rule
from rbpx.display.view import Column, View, error, magnitude, text, whole, with_ends
from rbpx.display.vocabulary import decimals
from rbpx.groups.documents import BINS
from rbpx.groups.origin import from_shares, spelled

_Said = tuple[str, Held, float]
_MOST: Final = 4  # forms that are drawn
_ERRORS: Final = View[_Said](
    "errors",
    text("form", "form", lambda row: row[0]),
    whole("k", "k", lambda row: row[1].k),
    magnitude("measured", "measured", lambda row: row[1].measured),
    magnitude("predicted", "predicted", lambda row: row[2]),
    error("error", "error", lambda row: row[2] / row[1].measured - 1),
)
_RATIO: Final[Sequence[Column[Residual]]] = with_ends(
    "ratio", "ratio", lambda residual: residual.ratio, decimals(3), "tokens over those expected: 1 means as expected"
)
_RESIDUALS: Final = View[Residual]("residuals", BINS, _RATIO)
_TITLES: Final = {_ERRORS.name: "Errors at the largest size", _RESIDUALS.name: "Residuals of the chosen form"}


@one_by_one
def figures(closures: Closures, fit_ids: Sequence[str]) -> list[Figure | Undrawn]:
    """The errors of the forms at the largest size, and the residuals of the chosen form there."""
    if not closures.forms:
        reason = f"No form was fitted: {closures.status.remedy}"
        return [Undrawn(name, title, reason) for name, title in _TITLES.items()]
    return [_errors(closures), _residuals(closures)]


def _errors(closures: Closures) -> Figure:
    chosen, group = closures.forms[0], closures.group
    of_k = [held for held in chosen.held if held.k is not None]
    drawn_forms = closures.forms[:_MOST]
    said = [(form.label, held, held.predicted) for form in drawn_forms for held in form.held if held.k is not None]
    said += [("separate laws", held, held.separate) for held in of_k]
    ends = [(held.k, held.predicted / held.measured, held.reach) for held in of_k]
    band = [{"k": k, "lo": ratio / reach - 1, "hi": ratio * reach - 1} for k, ratio, reach in ends]
    x, y = Scale("k", "k", log=True), Scale("error", "error", form="%")
    return drawn(
        _ERRORS.table(_TITLES[_ERRORS.name], said),
        Chart(x, y, (Mark("band", band, plain=True), line(), points()), "form"),
        f"Error of -ln RBP_k of {group.runs[-1].size} against k for {group.title}, by {chosen.label} and others.",
        "Lines: (predicted − measured) / measured of −ln RBP_k at the largest size, by forms whose parameters are laws "
        "in S through the smaller sizes, and by a separate law at each k. Band: 95 % of the first form, chosen by the "
        "smaller sizes.",
        from_shares(group, closures.k_grid),
    )


def _residuals(closures: Closures) -> Figure:
    chosen, group, largest = closures.forms[0], closures.group, closures.group.runs[-1]
    edges = [*(each.first_rank for each in closures.residuals), closures.residuals[-1].last_rank + 1]
    sql = spelled("rank_shares", run_ids=largest.run_ids, ties=group.ties.value, edges=edges)
    x, y = Scale("rank", "rank", log=True), Scale("ratio", "observed / expected")
    return drawn(
        _RESIDUALS.table(_TITLES[_RESIDUALS.name], closures.residuals),
        Chart(x, y, (rule(ratio=1.0), line(), bars("ratio_lo", "ratio_hi"), points())),
        f"Tokens of each bin of ranks over those expected by {chosen.label}, at {largest.size} of {group.title}.",
        f"Points: tokens of a bin of ranks over those that {chosen.label} expects there, fitted to the largest size "
        "itself; bars: 95 %, documents. 1 means as expected.",
        Origin(sql, largest.run_ids),
    )
